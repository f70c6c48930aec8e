//===- Captured.cpp - What the uses of a captured tensor ask of its elements ===//
#include "Captured.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

namespace attn::inputs {
namespace {

constexpr int64_t kSmall = 8; // extent of a dimension, and bound of a value, that nothing says more about

int64_t divideUp(int64_t a, int64_t b) { return b > 0 ? (a + b - 1) / b : a; }

bool isCast(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp, arith::TruncIOp, index::CastSOp,
             index::CastUOp>(op);
}

Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp())
    if (isCast(op))
      value = op->getOperand(0);
    else
      break;
  return value;
}

std::optional<int64_t> getConstant(Value value) {
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return number.getSExtValue();
  return std::nullopt;
}

/// How many different values from 0 on an index expression of a region takes; -1 where that cannot be read off.
class Bounds {
public:
  explicit Bounds(const ExtentTable &table) : table(table) {}

  int64_t of(Value value) const {
    value = skipCasts(value);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return ofArgument(argument);
    if (std::optional<int64_t> number = getConstant(value))
      return *number >= 0 ? *number + 1 : -1;
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumOperands() != 2)
      return -1;
    int64_t a = of(op->getOperand(0)), b = of(op->getOperand(1));
    StringRef name = op->getName().stripDialect();
    if (a < 0)
      return name.starts_with("rem") ? b - 1 : -1;
    if (name.contains("div"))
      return b > 1 ? divideUp(a, b - 1) : -1;
    if (b < 0)
      return name.starts_with("sub") ? a : -1;
    return llvm::StringSwitch<int64_t>(name)
        .StartsWith("rem", std::max<int64_t>(1, std::min(a, b - 1)))
        .StartsWith("add", a + b - 1)
        .StartsWith("mul", (a - 1) * (b - 1) + 1)
        .StartsWith("min", std::min(a, b))
        .StartsWith("max", std::max(a, b))
        .StartsWith("sub", a)
        .Default(-1);
  }

  /// Extents of b, h, i, j of the op that a value belongs to.
  int64_t getPosition(AttentionOp op, unsigned which) const {
    int64_t queries = table.get(op.getQueryRows(), 2), keys = table.get(op.getKeyRows(), 2);
    int64_t extents[] = {table.get(op.getQueryRows(), 0), table.get(op.getQueryRows(), 1),
                         op.getAlign() == Align::BottomRight ? std::max(queries, keys) : queries, keys};
    return extents[which];
  }

private:
  int64_t ofArgument(BlockArgument argument) const {
    auto op = dyn_cast_or_null<AttentionOp>(argument.getOwner()->getParentOp());
    if (!op)
      return -1;
    int64_t number = argument.getArgNumber() - (argument.getOwner() == op.getScoreBlock() ? 1 : 0);
    return number >= 0 && number < 4 ? getPosition(op, number) : -1;
  }

  const ExtentTable &table;
};

AttentionOp getAttention(Operation *user) { return user->getParentOfType<AttentionOp>(); }

/// The extent that one use asks of dimension `dim` of `tensor`; -1: it does not care.
int64_t getExtentForUse(Operation *user, Value tensor, unsigned dim, const ExtentTable &table) {
  Bounds bounds(table);
  if (auto extract = dyn_cast<tensor::ExtractOp>(user))
    return bounds.of(extract.getIndices()[dim]);
  if (auto contains = dyn_cast<ContainsOp>(user))
    return dim < contains.getIndices().size() ? bounds.of(contains.getIndices()[dim]) : -1;
  if (auto length = dyn_cast<KeyLengthOp>(user))
    return bounds.of(length.getB());
  if (auto document = dyn_cast<SameDocumentOp>(user))
    return dim == 0 ? bounds.of(document.getB()) : std::max(bounds.of(document.getI()), bounds.of(document.getJ()));
  if (auto blocks = dyn_cast<BlockMaskOp>(user)) {
    unsigned fromEnd = cast<ShapedType>(tensor.getType()).getRank() - 1 - dim;
    Value index[] = {blocks.getJ(), blocks.getI(), blocks.getH(), blocks.getB()};
    int64_t bound = bounds.of(index[fromEnd]);
    return fromEnd < 2 ? divideUp(bound, blocks.getSize()) : bound;
  }
  return -1;
}

/// What the value that tensor.extract reads is compared with or used for.
std::optional<Filling> getFillingForResult(tensor::ExtractOp extract, Value result, const Bounds &bounds,
                                           const ExtentTable &table) {
  for (OpOperand &use : result.getUses()) {
    Operation *user = use.getOwner();
    if (isCast(user)) {
      if (auto filling = getFillingForResult(extract, user->getResult(0), bounds, table))
        return filling;
    } else if (isa<arith::CmpIOp, index::CmpOp>(user)) {
      Value other = skipCasts(user->getOperand(1 - use.getOperandNumber()));
      auto sibling = other.getDefiningOp<tensor::ExtractOp>();
      if (sibling && sibling.getTensor() == extract.getTensor())
        return Filling{Filling::Documents};
      if (int64_t bound = bounds.of(other); bound > 0)
        return Filling{Filling::Uniform, 0, std::max<int64_t>(bound, 1)};
    } else if (auto next = dyn_cast<tensor::ExtractOp>(user); next && use.getOperandNumber() > 0) {
      int64_t extent = getCapturedExtent(next.getTensor(), use.getOperandNumber() - 1, table);
      return Filling{Filling::Uniform, 0, std::max<int64_t>(extent - 1, 0)};
    } else if (auto contains = dyn_cast<ContainsOp>(user)) {
      return Filling{Filling::Uniform, 0, std::max<int64_t>(bounds.getPosition(getAttention(user), 3) - 1, 0)};
    }
  }
  return std::nullopt;
}

/// Of indices; one in a few is -1, no row.
std::optional<Filling> getFillingForIndices(CompiledOpInterface user, Value indices, const ExtentTable &table) {
  std::optional<ExtentPlace> indexed = user.getIndexed(indices);
  if (!indexed)
    return std::nullopt;
  int64_t extent = table.get(indexed->tensor, indexed->dim);
  return Filling{Filling::Uniform, -1 - extent / 8, extent - 1};
}

std::optional<Filling> getFillingForUse(Operation *user, Value tensor, const ExtentTable &table) {
  Bounds bounds(table);
  if (auto compiled = dyn_cast<CompiledOpInterface>(user))
    return getFillingForIndices(compiled, tensor, table);
  if (isa<SameDocumentOp>(user))
    return Filling{Filling::Documents};
  if (isa<BlockMaskOp>(user))
    return Filling{Filling::Uniform, 0, 1};
  if (isa<KeyLengthOp>(user))
    return Filling{Filling::Uniform, 0, bounds.getPosition(getAttention(user), 3)};
  if (auto contains = dyn_cast<ContainsOp>(user)) {
    int64_t bound = bounds.of(contains.getValue());
    // One entry in a few is -1, the padding of shorter lists.
    return Filling{Filling::Uniform, -1 - (bound > 8 ? bound / 8 : 0), (bound > 0 ? bound : kSmall) - 1};
  }
  if (auto extract = dyn_cast<tensor::ExtractOp>(user); extract && !isa<FloatType>(extract.getType()))
    return getFillingForResult(extract, extract.getResult(), bounds, table);
  return std::nullopt;
}

/// Documents along the last dimension: ids from 0 on, each 1 to about a quarter of the row long.
void drawDocuments(HostTensor &tensor, std::mt19937_64 &random) {
  int64_t length = tensor.shape.back(), rows = length ? tensor.getNumElements() / length : 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t id = 0, left = 0;
    for (int64_t at = 0; at < length; ++at, --left) {
      if (left == 0) {
        left = 1 + int64_t(random() % uint64_t(std::max<int64_t>(1, length / 4)));
        id += at > 0;
      }
      tensor.setInt(row * length + at, id);
    }
  }
}

/// Pairs of normal numbers by Box and Muller: the same on every machine.
void drawNormal(HostTensor &tensor, std::mt19937_64 &random) {
  auto uniform = [&] { return (double(random() >> 11) + 0.5) * 0x1p-53; };
  for (int64_t index = 0, e = tensor.getNumElements(); index < e; index += 2) {
    double radius = std::sqrt(-2 * std::log(uniform())), angle = 2 * 3.14159265358979323846 * uniform();
    tensor.setDouble(index, radius * std::cos(angle));
    if (index + 1 < e)
      tensor.setDouble(index + 1, radius * std::sin(angle));
  }
}

} // namespace

int64_t getCapturedExtent(Value tensor, unsigned dim, const ExtentTable &table) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  int64_t extent = -1;
  for (Operation *user : tensor.getUsers())
    extent = std::max(extent, getExtentForUse(user, tensor, dim, table));
  return extent < 0 ? kSmall : std::min<int64_t>(extent, INT32_MAX); // as extents are below 2^31
}

Filling getFilling(Value tensor, const ExtentTable &table) {
  Type type = cast<RankedTensorType>(tensor.getType()).getElementType();
  if (isa<FloatType>(type))
    return {};
  if (type.isInteger(1))
    return {Filling::Uniform, 0, 1};
  for (Operation *user : tensor.getUsers())
    if (std::optional<Filling> filling = getFillingForUse(user, tensor, table))
      return *filling;
  return {Filling::Uniform};
}

HostTensor draw(ArrayRef<int64_t> shape, Type elementType, const Filling &filling, std::mt19937_64 &random) {
  HostTensor tensor = HostTensor::create(shape, elementType);
  if (filling.kind == Filling::Documents && tensor.getRank() > 0)
    drawDocuments(tensor, random);
  else if (filling.kind == Filling::Normal)
    drawNormal(tensor, random);
  else
    for (int64_t index = 0, e = tensor.getNumElements(); index < e; ++index) {
      int64_t value = filling.least + int64_t(random() % uint64_t(filling.most - filling.least + 1));
      tensor.setInt(index, std::max<int64_t>(value, -1));
    }
  return tensor;
}

} // namespace attn::inputs
