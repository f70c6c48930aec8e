//===- Regions.cpp - Mask and score regions of a tile ---------------------===//
//
// The regions of attn.attention read captured tensors; those of a tile read memrefs, and hold only arith, math and
// memref ops, so that a target has one kind of op to write rules for.
//
//===----------------------------------------------------------------------===//
#include "Task.h"
#include "attn/Pattern/Expand.h"
#include "attn/Pattern/GuardInteger.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn {

//===----------------------------------------------------------------------===//
// index ops to arith ops
//===----------------------------------------------------------------------===//

static arith::CmpIPredicate toArith(index::IndexCmpPredicate p) {
  using From = index::IndexCmpPredicate;
  using To = arith::CmpIPredicate;
  switch (p) {
  case From::EQ:
    return To::eq;
  case From::NE:
    return To::ne;
  case From::SLT:
    return To::slt;
  case From::SLE:
    return To::sle;
  case From::SGT:
    return To::sgt;
  case From::SGE:
    return To::sge;
  case From::ULT:
    return To::ult;
  case From::ULE:
    return To::ule;
  case From::UGT:
    return To::ugt;
  case From::UGE:
    return To::uge;
  }
  llvm_unreachable("unknown predicate");
}

template <typename From, typename To>
static bool replaceBinary(OpBuilder &b, Operation *op) {
  auto from = dyn_cast<From>(op);
  if (!from)
    return false;
  op->getResult(0).replaceAllUsesWith(To::create(b, op->getLoc(), op->getOperand(0), op->getOperand(1)));
  op->erase();
  return true;
}

template <typename... Pairs>
static bool replaceAnyBinary(OpBuilder &b, Operation *op) {
  return (replaceBinary<typename Pairs::first_type, typename Pairs::second_type>(b, op) || ...);
}

static void indexToArith(OpBuilder &b, Operation *op) {
  using std::pair;
  b.setInsertionPoint(op);
  if (replaceAnyBinary<
          pair<index::AddOp, arith::AddIOp>, pair<index::SubOp, arith::SubIOp>, pair<index::MulOp, arith::MulIOp>,
          pair<index::DivSOp, arith::DivSIOp>, pair<index::DivUOp, arith::DivUIOp>,
          pair<index::CeilDivSOp, arith::CeilDivSIOp>, pair<index::CeilDivUOp, arith::CeilDivUIOp>,
          pair<index::FloorDivSOp, arith::FloorDivSIOp>, pair<index::RemSOp, arith::RemSIOp>,
          pair<index::RemUOp, arith::RemUIOp>, pair<index::MaxSOp, arith::MaxSIOp>, pair<index::MaxUOp, arith::MaxUIOp>,
          pair<index::MinSOp, arith::MinSIOp>, pair<index::MinUOp, arith::MinUIOp>, pair<index::AndOp, arith::AndIOp>,
          pair<index::OrOp, arith::OrIOp>, pair<index::XOrOp, arith::XOrIOp>, pair<index::ShlOp, arith::ShLIOp>,
          pair<index::ShrSOp, arith::ShRSIOp>, pair<index::ShrUOp, arith::ShRUIOp>>(b, op))
    return;
  Value replacement;
  Type type = op->getNumResults() ? op->getResult(0).getType() : Type();
  if (auto cmp = dyn_cast<index::CmpOp>(op))
    replacement = arith::CmpIOp::create(b, op->getLoc(), toArith(cmp.getPred()), cmp.getLhs(), cmp.getRhs());
  else if (auto cast = dyn_cast<index::CastSOp>(op))
    replacement = arith::IndexCastOp::create(b, op->getLoc(), type, cast.getInput());
  else if (auto cast = dyn_cast<index::CastUOp>(op))
    replacement = arith::IndexCastUIOp::create(b, op->getLoc(), type, cast.getInput());
  else if (auto constant = dyn_cast<index::ConstantOp>(op))
    replacement = arith::ConstantIndexOp::create(b, op->getLoc(), constant.getValue().getSExtValue());
  else if (auto constant = dyn_cast<index::BoolConstantOp>(op))
    replacement = arith::ConstantOp::create(b, op->getLoc(), b.getBoolAttr(constant.getValue()));
  if (!replacement)
    return;
  op->getResult(0).replaceAllUsesWith(replacement);
  op->erase();
}

//===----------------------------------------------------------------------===//
// Captured tensors to memrefs
//===----------------------------------------------------------------------===//

// Booleans lie in bytes.
static Value loadElement(OpBuilder &b, Location loc, Value memref, ValueRange indices, Type type) {
  Value v = memref::LoadOp::create(b, loc, memref, indices);
  if (v.getType() == type)
    return v;
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(v.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, v, zero);
}

namespace {

class RegionFiller {
public:
  RegionFiller(Block &body, const KernelSource &source, RegionInputs inputs)
      : body(body), source(source), inputs(inputs), b(body.getParentOp()->getContext()) {}

  /// The stand-in, a cast that `lower` removes, for a value of the attention's surroundings.
  Value standIn(Value outside);
  void lower();
  void makeCapturesExplicit();

private:
  void lowerOp(Operation *op);
  Value memrefOf(Value tensor) { return tensor.getDefiningOp<UnrealizedConversionCastOp>().getOperand(0); }
  Value contains(ContainsOp op);

  Block &body;
  const KernelSource &source;
  RegionInputs inputs;
  OpBuilder b;
};

Value RegionFiller::standIn(Value outside) {
  b.setInsertionPointToStart(&body);
  Value memref;
  AttentionOp op = source.op;
  if (auto found = source.captures.findTensor(outside))
    memref = inputs.tensors[*found];
  else
    for (auto [operand, view] :
         llvm::zip(ArrayRef<Value>{getQueryOperand(op), op.getKeyRows(), op.getValue()}, inputs.qkv))
      if (operand == outside)
        memref = view;
  assert(memref && "a region reads a tensor that is not among its captures");
  return UnrealizedConversionCastOp::create(b, outside.getLoc(), outside.getType(), memref).getResult(0);
}

// Membership is one read of bits whose last byte is 0, so that a value past the end reads "no".
Value RegionFiller::contains(ContainsOp op) {
  Value memref = memrefOf(op.getSet());
  unsigned operand = llvm::find(inputs.tensors, memref) - inputs.tensors.begin(), member = 0;
  for (const Table &table : source.captures.tables) {
    if (table.kind != Table::Kind::Members)
      continue;
    if (table.operand == operand)
      break;
    ++member;
  }
  SmallVector<Value> at(op.getIndices());
  Value value = op.getValue();
  if (!value.getType().isIndex())
    value = arith::IndexCastOp::create(b, op.getLoc(), b.getIndexType(), value);
  Location loc = op.getLoc();
  auto index = [&](int64_t v) -> Value { return arith::ConstantIndexOp::create(b, loc, v); };
  auto toI32 = [&](Value v) -> Value { return arith::IndexCastOp::create(b, loc, b.getI32Type(), v); };
  at.push_back(arith::ShRSIOp::create(b, loc, value, index(3)));
  Value byte = memref::LoadOp::create(b, loc, inputs.members[member], at);
  byte = arith::ExtUIOp::create(b, loc, b.getI32Type(), byte);
  Value place = toI32(arith::AndIOp::create(b, loc, value, index(7)));
  Value bit = arith::TruncIOp::create(b, loc, b.getI1Type(), arith::ShRUIOp::create(b, loc, byte, place));
  Value real = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, value, index(0));
  return arith::AndIOp::create(b, loc, bit, real);
}

void RegionFiller::lowerOp(Operation *op) {
  b.setInsertionPoint(op);
  Value replacement;
  if (auto extract = dyn_cast<tensor::ExtractOp>(op))
    replacement = loadElement(b, op->getLoc(), memrefOf(extract.getTensor()), extract.getIndices(), extract.getType());
  else if (auto dim = dyn_cast<tensor::DimOp>(op))
    replacement = memref::DimOp::create(b, op->getLoc(), memrefOf(dim.getSource()), dim.getIndex());
  else if (auto set = dyn_cast<ContainsOp>(op))
    replacement = contains(set);
  if (!replacement)
    return indexToArith(b, op);
  op->getResult(0).replaceAllUsesWith(replacement);
  op->erase();
}

void RegionFiller::lower() {
  for (Operation &op : llvm::make_early_inc_range(body))
    if (!isa<UnrealizedConversionCastOp>(op))
      lowerOp(&op);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
  for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
    guardInteger(b, &op);
}

// What the region reads from outside becomes an operand and a block argument; constants are copied into it.
void RegionFiller::makeCapturesExplicit() {
  Operation *parent = body.getParentOp();
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(*body.getParent(), outside);
  for (Value v : outside) {
    Value inside;
    Operation *def = v.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>()) {
      b.setInsertionPointToStart(&body);
      inside = b.clone(*def)->getResult(0);
    } else {
      parent->insertOperands(parent->getNumOperands(), v);
      inside = body.addArgument(v.getType(), v.getLoc());
    }
    replaceAllUsesInRegionWith(v, inside, *body.getParent());
  }
}

} // namespace

static Block &startBody(Region &region, OpBuilder &b, bool score) {
  Block &body = region.emplaceBlock();
  Location loc = region.getLoc();
  if (score)
    body.addArgument(b.getF32Type(), loc);
  for (int i = 0; i < 6; ++i)
    body.addArgument(b.getIndexType(), loc);
  return body;
}

void fillMask(tile::MaskOp op, const KernelSource &source, RegionInputs inputs) {
  OpBuilder b(op.getContext());
  Block &body = startBody(op.getBody(), b, /*score=*/false);
  RegionFiller filler(body, source, inputs);
  ExpandOptions options;
  options.numQueries = body.getArgument(4);
  options.numKeys = body.getArgument(5);
  options.capture = [&](Value outside) { return filler.standIn(outside); };
  options.reindexing = &source.reindexing;
  AttentionOp attention = source.op;
  b.setInsertionPointToEnd(&body);
  Value keep = expandMaskInto(b, *attention.getMaskBlock(), body.getArguments().take_front(4), options);
  tile::YieldOp::create(b, op.getLoc(), keep);
  filler.lower();
  filler.makeCapturesExplicit();
}

/// The logarithm of how many of `members` hold; 0 for none.
static Value logOfCount(OpBuilder &b, Location loc, ArrayRef<Value> members) {
  auto number = [&](double v) -> Value {
    return arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(float(v)));
  };
  Value count, log = number(0);
  for (Value member : members) {
    Value one = arith::ExtUIOp::create(b, loc, b.getI32Type(), member);
    count = count ? arith::AddIOp::create(b, loc, count, one).getResult() : one;
  }
  for (size_t n = 2; n <= members.size(); ++n) {
    Value least = arith::ConstantIntOp::create(b, loc, b.getI32Type(), n);
    Value reached = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, count, least);
    log = arith::SelectOp::create(b, loc, reached, number(std::log(double(n))), log);
  }
  return log;
}

void fillModify(tile::ModifyOp op, const KernelSource &source, RegionInputs inputs, ModifyBy by) {
  OpBuilder b(op.getContext());
  Block &body = startBody(op.getBody(), b, /*score=*/true);
  RegionFiller filler(body, source, inputs);
  AttentionOp attention = source.op;
  ExpandOptions options;
  options.numQueries = body.getArgument(5);
  options.numKeys = body.getArgument(6);
  options.capture = [&](Value outside) { return filler.standIn(outside); };
  b.setInsertionPointToEnd(&body);
  Value score = body.getArgument(0);
  if (by != ModifyBy::Count)
    score = cloneScoreInto(b, *attention.getScoreBlock(), score, body.getArguments().slice(1, 4), options);
  if (by != ModifyBy::Score) {
    SmallVector<Value> members;
    options.members = &members;
    expandMaskInto(b, *attention.getMaskBlock(), body.getArguments().slice(1, 4), options);
    score = arith::AddFOp::create(b, op.getLoc(), score, logOfCount(b, op.getLoc(), members));
  }
  tile::YieldOp::create(b, op.getLoc(), score);
  filler.lower();
  filler.makeCapturesExplicit();
}

bool leavesMask(AttentionOp op, const Reindexing &reindexing) {
  if (!op.getMaskBlock())
    return false;
  ExpandedMask mask(op);
  mask.dropConjuncts(reindexing);
  return mask.getOnce() || !matchPattern(mask.getResult(), m_One());
}

} // namespace attn
