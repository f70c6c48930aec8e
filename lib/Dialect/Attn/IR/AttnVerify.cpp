//===- AttnVerify.cpp - The constraints of attn.attention -------------------===//
//
// Constraints are numbered in AttnOps.td. Every message says what is wrong and ends with the number.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

namespace {
/// The dimensions of a [batch, heads, tokens, features] tensor.
enum Dim : unsigned { Batch, Heads, Tokens, Features };

/// A static extent of a tensor under the name it has in messages.
struct Extent {
  StringRef tensor;
  RankedTensorType type;
  unsigned dim;
  int64_t size() const { return type.getDimSize(dim); }
};

constexpr int64_t maxHeadDim = 576;
constexpr int64_t maxTokens = int64_t(1) << 31;
} // namespace

static LogicalResult verifyEqual(AttentionOp op, StringRef what, Extent a, Extent b, StringRef constraint) {
  if (ShapedType::isDynamic(a.size()) || ShapedType::isDynamic(b.size()) || a.size() == b.size())
    return success();
  return op.emitOpError() << a.tensor << " and " << b.tensor << " differ in " << what << ": " << a.size()
                          << " (dimension " << a.dim << " of " << a.type << ") and " << b.size() << " (dimension "
                          << b.dim << " of " << b.type << "); make them equal " << constraint;
}

/// What stands in place of query and key.
static LogicalResult verifyScores(AttentionOp op) {
  Value scores = op.getScores();
  if (!scores && op.getQuery() && op.getKey())
    return success();
  if (!scores || op.getQuery() || op.getKey() || op.getTable() || op.getBias())
    return op.emitOpError("takes query and key, perhaps with relative, or scores in place of all these (A20)");
  auto type = cast<RankedTensorType>(scores.getType());
  int64_t rank = type.getRank();
  Type element = type.getElementType();
  if (rank != 3 && rank != 4)
    return op.emitOpError()
           << "scores must have rank 4, [batch, heads, queries, keys], or 3, the same for all batches, "
           << "but " << type << " has rank " << rank << "; reshape them (A20)";
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op.emitOpError() << "scores have elements of type " << element << "; convert them to f32, f16 or bf16 (A20)";
  return success();
}

/// Ranks are right already.
static LogicalResult verifyScoreExtents(AttentionOp op) {
  if (!op.getScores())
    return success();
  auto type = cast<RankedTensorType>(op.getScores().getType());
  unsigned first = type.getRank() - 3;
  RankedTensorType out = op.getOutputType(), v = op.getValueType();
  return failure((first && failed(verifyEqual(op, "batch", {"scores", type, 0}, {"value", v, Batch}, "(A20)"))) ||
                 failed(verifyEqual(op, "heads", {"scores", type, first}, {"output", out, Heads}, "(A20)")) ||
                 failed(verifyEqual(op, "queries", {"scores", type, first + 1}, {"output", out, Tokens}, "(A20)")) ||
                 failed(verifyEqual(op, "keys", {"scores", type, first + 2}, {"value", v, Tokens}, "(A20)")));
}

static LogicalResult verifyRanks(AttentionOp op) {
  for (auto [name, type] : {std::pair<StringRef, RankedTensorType>("query", op.getQueryType()),
                            {"key", op.getKeyType()},
                            {"value", op.getValueType()}})
    if (type.getRank() != 4)
      return op.emitOpError() << name << " must have rank 4, [batch, heads, tokens, head_dim], but " << type
                              << " has rank " << type.getRank() << "; reshape it (A1)";
  return success();
}

static LogicalResult verifyElementTypes(AttentionOp op) {
  Type element = op.getQueryType().getElementType();
  StringRef first = op.getScores() ? "output" : "query";
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op.emitOpError() << first << " has elements of type " << element << "; convert it to f32, f16 or bf16 (A2)";
  for (auto [name, type] : {std::pair<StringRef, RankedTensorType>("key", op.getKeyType()),
                            {"value", op.getValueType()},
                            {"output", op.getOutputType()}})
    if (type.getElementType() != element)
      return op.emitOpError() << name << " has elements of type " << type.getElementType() << " where " << first
                              << " has " << element << "; convert one of them (A2)";
  return success();
}

static Extent extentOf(AttentionOp op, ExtentPlace place, StringRef tensor) {
  StringRef name = place.tensor == op.getQueryIndices() ? "query_rows"
                   : place.tensor == op.getKeyIndices() ? "key_rows"
                                                        : tensor;
  return {name, cast<RankedTensorType>(place.tensor.getType()), place.dim};
}

static Extent headsOf(AttentionOp op) { return extentOf(op, op.getQueryHeads(), "query"); }
static Extent queriesOf(AttentionOp op) { return extentOf(op, op.getQueryCount(), "query"); }
static Extent keyHeadsOf(AttentionOp op) { return extentOf(op, op.getKeyHeads(), "key"); }

/// One list of rows, of the queries or of the keys.
static LogicalResult verifyList(AttentionOp op, StringRef name, Value list, StringRef tensor, RankedTensorType of) {
  auto type = cast<RankedTensorType>(list.getType());
  int64_t rank = type.getRank();
  if (rank < 1 || rank > 3 || !(type.getElementType().isInteger(32) || type.getElementType().isInteger(64)))
    return op.emitOpError() << name
                            << " must be a tensor [batch, groups, rows], [batch, rows] or [rows] of i32 or i64, not "
                            << type << " (A21)";
  if (rank > 1 && failed(verifyEqual(op, "batch", {name, type, 0}, {tensor, of, Batch}, "(A21)")))
    return failure();
  int64_t groups = rank == 3 ? type.getDimSize(1) : ShapedType::kDynamic, heads = of.getDimSize(Heads);
  if (ShapedType::isDynamic(groups) || ShapedType::isDynamic(heads) || (heads > 0 && groups % heads == 0))
    return success();
  return op.emitOpError() << name << " has " << groups << " groups (dimension 1 of " << type << "), no multiple of the "
                          << heads << " heads of " << tensor << "; change one of them (A21)";
}

static LogicalResult verifyLists(AttentionOp op) {
  if (!op.hasIndices())
    return success();
  StringRef extra = op.getScores()                    ? "scores"
                    : op.getTable()                   ? "relative"
                    : op.getAlign() != Align::TopLeft ? "align(bottom_right)"
                                                      : "";
  if (!extra.empty())
    return op.emitOpError() << "has rows by number with " << extra
                            << ", which counts rows, not what they are numbered; leave it out, or gather the rows with "
                               "attn.gather_rows (A21)";
  if (op.getQueryIndices() && failed(verifyList(op, "query_rows", op.getQueryIndices(), "query", op.getQueryType())))
    return failure();
  return op.getKeyIndices() ? verifyList(op, "key_rows", op.getKeyIndices(), "key", op.getKeyType()) : success();
}

static LogicalResult verifyInputs(AttentionOp op) {
  RankedTensorType q = op.getQueryType(), k = op.getKeyType(), v = op.getValueType();
  if (failed(verifyEqual(op, "batch", {"query", q, Batch}, {"key", k, Batch}, "(A3)")) ||
      failed(verifyEqual(op, "batch", {"query", q, Batch}, {"value", v, Batch}, "(A3)")) ||
      failed(verifyEqual(op, "heads", {"key", k, Heads}, {"value", v, Heads}, "(A3)")) ||
      failed(verifyEqual(op, "number of keys", {"key", k, Tokens}, {"value", v, Tokens}, "(A3)")) ||
      (!op.getScores() && failed(verifyEqual(op, "head_dim", {"query", q, Features}, {"key", k, Features}, "(A3)"))))
    return failure();
  int64_t heads = headsOf(op).size(), keyHeads = keyHeadsOf(op).size();
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(keyHeads) || (keyHeads > 0 && heads % keyHeads == 0))
    return success();
  return op.emitOpError() << heads << " query heads cannot share " << keyHeads
                          << " key/value heads evenly; make the number of query heads a multiple of it (A4)";
}

static LogicalResult verifyResults(AttentionOp op) {
  RankedTensorType q = op.getQueryType(), v = op.getValueType(), out = op.getOutputType();
  if (out.getRank() != 4)
    return op.emitOpError() << "output must have rank 4, [batch, heads, tokens, value_dim], but " << out << " has rank "
                            << out.getRank() << " (A5)";
  if (failed(verifyEqual(op, "batch", {"output", out, Batch}, {"query", q, Batch}, "(A5)")) ||
      failed(verifyEqual(op, "heads", {"output", out, Heads}, headsOf(op), "(A5)")) ||
      failed(verifyEqual(op, "tokens", {"output", out, Tokens}, queriesOf(op), "(A5)")) ||
      failed(verifyEqual(op, "value_dim", {"output", out, Features}, {"value", v, Features}, "(A5)")))
    return failure();
  if (!op.getLse())
    return success();
  auto lse = cast<RankedTensorType>(op.getLse().getType());
  if (lse.getRank() != 3 || !lse.getElementType().isF32())
    return op.emitOpError() << "lse must be a tensor [batch, heads, tokens] of f32, not " << lse << " (A6)";
  return failure(failed(verifyEqual(op, "batch", {"lse", lse, Batch}, {"query", q, Batch}, "(A6)")) ||
                 failed(verifyEqual(op, "heads", {"lse", lse, Heads}, headsOf(op), "(A6)")) ||
                 failed(verifyEqual(op, "tokens", {"lse", lse, Tokens}, queriesOf(op), "(A6)")));
}

// The log-sum-exp of the result may be absent, so what is joined is held to what that would be.
static LogicalResult verifyJoined(AttentionOp op) {
  if (!op.getJoinedOutput() != !op.getJoinedLse())
    return op.emitOpError("joins an output without its log-sum-exp, or the other way; give both (A15)");
  if (!op.getJoinedOutput())
    return success();
  auto output = cast<RankedTensorType>(op.getJoinedOutput().getType());
  auto lse = cast<RankedTensorType>(op.getJoinedLse().getType());
  RankedTensorType out = op.getOutputType();
  if (output.getRank() != 4 || output.getElementType() != out.getElementType())
    return op.emitOpError() << "joins an output of type " << output << " where its own is " << out
                            << "; give one of the same rank and element type (A15)";
  if (lse.getRank() != 3 || !lse.getElementType().isF32())
    return op.emitOpError() << "joins a log-sum-exp of type " << lse
                            << "; give a tensor [batch, heads, tokens] of f32 (A15)";
  StringRef names[] = {"batch", "heads", "tokens", "value_dim"};
  for (unsigned d : {Batch, Heads, Tokens, Features})
    if (failed(verifyEqual(op, names[d], {"joined output", output, d}, {"output", out, d}, "(A15)")) ||
        (d != Features && failed(verifyEqual(op, names[d], {"joined lse", lse, d}, {"output", out, d}, "(A15)"))))
      return failure();
  return success();
}

static LogicalResult verifyRelative(AttentionOp op) {
  if (op.getBias() && !op.getTable())
    return op.emitOpError("has a bias of distances without their table; give both (A18)");
  RankedTensorType q = op.getQueryType();
  for (auto [name, tensor, rank, dims] :
       {std::tuple<StringRef, Value, int64_t, StringRef>("table", op.getTable(), 3, "[heads, distances, head_dim]"),
        {"bias", op.getBias(), 2, "[heads, head_dim]"}}) {
    if (!tensor)
      continue;
    auto type = cast<RankedTensorType>(tensor.getType());
    if (type.getRank() != rank || type.getElementType() != q.getElementType())
      return op.emitOpError() << name << " of relative must be a tensor " << dims << " of " << q.getElementType()
                              << ", as query, not " << type << " (A18)";
    if (failed(verifyEqual(op, "heads", {name, type, 0}, {"query", q, Heads}, "(A18)")) ||
        failed(verifyEqual(op, "head_dim", {name, type, unsigned(rank) - 1}, {"query", q, Features}, "(A18)")))
      return failure();
  }
  if (op.getTable() && cast<RankedTensorType>(op.getTable().getType()).getDimSize(1) == 0)
    return op.emitOpError("table of relative has no distance; give it one (A18)");
  return success();
}

static LogicalResult verifyNormalizer(AttentionOp op) {
  if (op.getSink()) {
    auto sink = cast<RankedTensorType>(op.getSink().getType());
    if (sink.getRank() != 1 || !sink.getElementType().isF32())
      return op.emitOpError() << "sink must be a tensor [heads] of f32, not " << sink << " (A16)";
    if (failed(verifyEqual(op, "heads", {"sink", sink, 0}, headsOf(op), "(A16)")))
      return failure();
  }
  StringRef extra = op.getLse() ? "lse" : op.getJoinedLse() ? "join" : op.getSink() ? "sink" : "";
  if (op.isSoftmax() || extra.empty())
    return success();
  return op.emitOpError() << "has " << extra << " with normalizer(" << stringifyNormalizer(op.getNormalizer())
                          << "), but only the weights of a softmax have a sum to speak of; leave one out (A17)";
}

static LogicalResult verifyLimits(AttentionOp op) {
  for (auto [name, type] :
       {std::pair<StringRef, RankedTensorType>("query", op.getQueryType()), {"value", op.getValueType()}}) {
    int64_t features = type.getDimSize(Features), tokens = type.getDimSize(Tokens);
    if (!ShapedType::isDynamic(features) && (features < 1 || features > maxHeadDim))
      return op.emitOpError() << name << " has head_dim " << features << "; it must be from 1 to " << maxHeadDim
                              << (features < 1 ? ": give it features" : ": split the heads") << " (A7)";
    if (!ShapedType::isDynamic(tokens) && tokens >= maxTokens)
      return op.emitOpError() << name << " has " << tokens
                              << " tokens; fewer than 2^31 can be numbered: split the sequence (A7)";
  }
  FloatAttr scale = op.getScaleAttr();
  if (scale && !scale.getValue().isFinite())
    return op.emitOpError() << "scale must be finite, not " << scale << "; leave it out for 1 / sqrt(head_dim) (A8)";
  return success();
}

LogicalResult AttentionOp::verify() {
  return failure(failed(verifyScores(*this)) || failed(verifyRanks(*this)) || failed(verifyElementTypes(*this)) ||
                 failed(verifyLists(*this)) || failed(verifyInputs(*this)) || failed(verifyResults(*this)) ||
                 failed(verifyScoreExtents(*this)) || failed(verifyJoined(*this)) || failed(verifyNormalizer(*this)) ||
                 failed(verifyRelative(*this)) || failed(verifyLimits(*this)));
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

namespace {
/// What a region is called, what it takes and yields, and which ops it holds.
struct RegionRules {
  StringRef name;
  SmallVector<Type> arguments;
  Type yields;
  bool predicates;
  StringRef allowed;
};
} // namespace

static RegionRules maskRules(MLIRContext *context) {
  return {"mask", SmallVector<Type>(4, IndexType::get(context)), IntegerType::get(context, 1), true,
          "predicates of attn; arith, index and math ops on scalars (integers of up to 64 bits, index, f16, bf16, f32, "
          "f64); tensor.extract and tensor.dim"};
}

static RegionRules scoreRules(MLIRContext *context) {
  SmallVector<Type> arguments(5, IndexType::get(context));
  arguments[0] = Float32Type::get(context);
  return {"score", arguments, Float32Type::get(context), false,
          "arith, index and math ops on scalars (integers of up to 64 bits, index, f16, bf16, f32, f64); "
          "tensor.extract and tensor.dim"};
}

static LogicalResult verifySignature(AttentionOp op, Block &block, const RegionRules &rules) {
  if (block.getArgumentTypes() != TypeRange(rules.arguments)) {
    InFlightDiagnostic error = op.emitOpError() << "the " << rules.name << " block must take (";
    llvm::interleaveComma(rules.arguments, error);
    error << "), not (";
    llvm::interleaveComma(block.getArgumentTypes(), error);
    return error << ") (A9)";
  }
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield)
    return block.back().emitOpError() << "cannot end a " << rules.name << " region; end it with attn.yield (A10)";
  if (yield.getValues().empty() || (yield.getValues().size() > 1 && !rules.predicates))
    return yield.emitOpError() << "must yield one value from a " << rules.name << " region, not "
                               << yield.getValues().size() << " (A10)";
  for (Type type : yield.getValues().getTypes())
    if (type != rules.yields)
      return yield.emitOpError() << "must yield " << rules.yields << " from a " << rules.name << " region, not " << type
                                 << " (A10)";
  if (yield.getValues().size() > 1 && !op.isSoftmax())
    return yield.emitOpError() << "counts " << yield.getValues().size() << " conditions with normalizer("
                               << stringifyNormalizer(op.getNormalizer()) << "), but only a softmax counts; join them "
                               << "by 'or' (A19)";
  return success();
}

/// What the back ends and the reference compute with.
static bool isScalar(Type type) {
  if (auto integer = dyn_cast<IntegerType>(type))
    return integer.getWidth() <= 64;
  return isa<IndexType, Float16Type, BFloat16Type, Float32Type, Float64Type>(type);
}

static bool isAllowed(Operation &op, const RegionRules &rules) {
  StringRef dialect = op.getName().getDialectNamespace();
  bool isArithmetic = dialect == "arith" || dialect == "index" || dialect == "math";
  if (isArithmetic)
    return op.hasTrait<OpTrait::ConstantLike>() ||
           (llvm::all_of(op.getOperandTypes(), isScalar) && llvm::all_of(op.getResultTypes(), isScalar));
  bool isPredicate = isa<AttnDialect>(op.getDialect()) && isa<MaskOpInterface>(op);
  return isa<tensor::ExtractOp, tensor::DimOp>(op) || (rules.predicates && isPredicate);
}

/// A value from outside: what it may be, and who may use it.
static LogicalResult verifyCapture(OpOperand &use, const RegionRules &rules) {
  Operation *user = use.getOwner();
  Type type = use.get().getType();
  if (isa<YieldOp>(user) || isScalar(type)) {
    if (matchPattern(use.get(), m_Constant()))
      return success();
    return user->emitOpError() << "uses a scalar of type " << type << " from outside the " << rules.name
                               << " region, which is known only at run time; compute it inside, or pass it in a tensor "
                                  "of rank 0 or [batch] and read it "
                                  "with tensor.extract (A12)";
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isScalar(tensor.getElementType()))
    return user->emitOpError() << "reads " << type << " from outside the " << rules.name
                               << " region; only ranked tensors of integers of up to 64 bits, index, f16, bf16, f32 or "
                                  "f64 can be captured (A13)";
  return success();
}

static LogicalResult verifyRegion(AttentionOp op, Block *block, const RegionRules &rules) {
  if (!block)
    return success();
  if (failed(verifySignature(op, *block, rules)))
    return failure();
  for (Operation &inner : *block) {
    if (!isa<YieldOp>(inner) && !isAllowed(inner, rules))
      return inner.emitOpError() << "cannot stand in a " << rules.name << " region; allowed are: " << rules.allowed
                                 << " (A11)";
    for (OpOperand &use : inner.getOpOperands())
      if (use.get().getParentBlock() != block && failed(verifyCapture(use, rules)))
        return failure();
  }
  return success();
}

LogicalResult AttentionOp::verifyRegions() {
  return failure(failed(verifyRegion(*this, getScoreBlock(), scoreRules(getContext()))) ||
                 failed(verifyRegion(*this, getMaskBlock(), maskRules(getContext()))));
}
