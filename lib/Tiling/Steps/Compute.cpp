//===- Compute.cpp - Loops over the elements of tensors -------------------===//
#include "Steps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace attn {
namespace {

using Values = StepBuilder::Values;

constexpr int64_t kRowsOfUnit = 16;
constexpr int64_t kRowsAtOnce = 4; // whose totals stay in registers, so that what they share is read once

/// Writes the loops of one op.
class ComputeBuilder {
public:
  ComputeBuilder(StepBuilder &s, ComputeOp op)
      : s(s), op(op), maps(op.getIndexMaps()), outer(op.getNumOutputLoops()), loops(op.getNumLoops(), Value()) {}

  void build();

private:
  bool isVector();
  Value extent(unsigned loop);
  Value index(AffineExpr expr);
  Value read(unsigned input, int64_t width);
  Value body(Value total, int64_t width);
  Values sum(unsigned loop, ValueRange totals, Value row, int64_t width);
  void writeRows(Value row, int64_t count, int64_t width);
  void forRows(StepBuilder::Range rows, int64_t width);

  StepBuilder &s;
  ComputeOp op;
  SmallVector<AffineMap> maps;
  unsigned outer;
  SmallVector<Value> loops; // their variables
};

/// Does the innermost loop of the output run along the last dimension of an input, or not appear in it at all?
bool isAlong(AffineMap map, unsigned loop) {
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool alone = isa<AffineDimExpr>(expr) && cast<AffineDimExpr>(expr).getPosition() == loop;
    if (expr.isFunctionOfDim(loop) && !(alone && dim + 1 == map.getNumResults()))
      return false;
  }
  return true;
}

// Vectors run along the last dimension, which then has stride 1: that is sure of tensors of rank 4.
bool ComputeBuilder::isVector() {
  for (auto [tensor, map] : llvm::zip(op.getTensors(), maps)) {
    bool appears = map.isFunctionOfDim(outer - 1);
    if (!isAlong(map, outer - 1) || (appears && cast<RankedTensorType>(tensor.getType()).getRank() != 4))
      return false;
  }
  return llvm::all_of(op.getBody().front().without_terminator(), [](Operation &inner) {
    return inner.hasTrait<OpTrait::ConstantLike>() || OpTrait::hasElementwiseMappableTraits(&inner);
  });
}

Value ComputeBuilder::extent(unsigned loop) {
  if (int64_t known = op.getKnownExtent(loop); known >= 0)
    return s.index(known);
  ExtentPlace place = *op.getPlace(loop);
  return s.dim(place.tensor, place.dim);
}

Value ComputeBuilder::index(AffineExpr expr) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return s.index(constant.getValue());
  auto binary = cast<AffineBinaryOpExpr>(expr);
  Value left = index(binary.getLHS()), right = index(binary.getRHS());
  return binary.getKind() == AffineExprKind::Add ? s.add(left, right) : s.mul(left, right);
}

Value ComputeBuilder::read(unsigned input, int64_t width) {
  SmallVector<Value> at;
  for (AffineExpr expr : maps[input].getResults())
    at.push_back(index(expr));
  bool along = width > 1 && maps[input].isFunctionOfDim(outer - 1);
  Value v = s.load(op.getInputs()[input], at, along ? width : 1);
  return along ? v : s.splat(v, width);
}

Value ComputeBuilder::body(Value total, int64_t width) {
  IRMapping map;
  Block &block = op.getBody().front();
  for (unsigned input = 0; input < op.getInputs().size(); ++input)
    map.map(block.getArgument(input), read(input, width));
  map.map(block.getArguments().back(), total);
  for (Operation &inner : block.without_terminator()) {
    Operation *copy = s.b.clone(inner, map);
    if (width == 1)
      continue;
    if (inner.hasTrait<OpTrait::ConstantLike>())
      map.map(inner.getResult(0), s.splat(copy->getResult(0), width));
    else
      for (Value result : copy->getResults())
        result.setType(VectorType::get(width, result.getType()));
  }
  return map.lookupOrDefault(block.getTerminator()->getOperand(0));
}

/// The totals of consecutive rows, from `row` on where there are several; the loops from `loop` on are still to come.
Values ComputeBuilder::sum(unsigned loop, ValueRange totals, Value row, int64_t width) {
  if (loop < loops.size())
    return s.loop(s.index(0), extent(loop), totals, [&](Value at, ValueRange totals) {
      loops[loop] = at;
      return sum(loop + 1, totals, row, width);
    });
  Values next;
  for (auto [r, total] : llvm::enumerate(totals)) {
    if (row)
      loops[outer - 2] = s.add(row, r);
    next.push_back(body(total, width));
  }
  return next;
}

void ComputeBuilder::writeRows(Value row, int64_t count, int64_t width) {
  Values totals(count, s.f32(op.getInitial().convertToFloat(), width));
  totals = sum(outer, totals, row, width);
  for (auto [r, total] : llvm::enumerate(totals)) {
    if (row)
      loops[outer - 2] = s.add(row, r);
    s.store(total, op.getOutput(), ArrayRef(loops).take_front(outer));
  }
}

void ComputeBuilder::forRows(StepBuilder::Range rows, int64_t width) {
  if (s.onDevice())
    return writeRows(rows.from, 1, width);
  Value count = s.sub(rows.to, rows.from);
  Value whole = s.add(rows.from, s.sub(count, s.modulo(count, s.index(kRowsAtOnce))));
  auto run = [&](Value from, Value to, int64_t rowsAtOnce) {
    auto write = [&](Value row, ValueRange) {
      writeRows(row, rowsAtOnce, width);
      return Values();
    };
    s.loop(from, to, {}, write, rowsAtOnce);
  };
  run(rows.from, whole, kRowsAtOnce);
  run(whole, rows.to, 1);
}

void ComputeBuilder::build() {
  SmallVector<StepBuilder::Shared> dims;
  for (unsigned loop = 0; loop < outer; ++loop)
    dims.push_back({op.getOutput(), loop, loop + 1 == outer ? 0 : loop + 2 == outer ? kRowsOfUnit : 1});
  SmallVector<StepBuilder::Range> mine = s.share(dims);
  if (outer < 2) {
    auto one = [&](Value at) {
      loops[0] = at;
      writeRows({}, 1, 1);
    };
    return outer ? s.forEach(mine[0], one) : writeRows({}, 1, 1);
  }
  for (unsigned loop = 0; loop + 2 < outer; ++loop)
    loops[loop] = mine[loop].from;
  auto columns = [&](Value at, int64_t width) {
    loops[outer - 1] = at;
    forRows(mine[outer - 2], width);
  };
  if (isVector())
    s.forLanes(mine[outer - 1], columns);
  else
    s.forEach(mine[outer - 1], [&](Value at) { columns(at, 1); });
}

} // namespace

void buildCompute(StepBuilder &s, ComputeOp op) { ComputeBuilder(s, op).build(); }

} // namespace attn
