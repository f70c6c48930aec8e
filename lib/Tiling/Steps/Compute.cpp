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
  bool canHaveLanes(ArrayRef<Value> tensors, unsigned loop);
  bool isSum();
  Value extent(unsigned loop);
  Value index(AffineExpr expr);
  Value read(unsigned input, int64_t width);
  Value body(Value total, int64_t width);
  Values addNext(ValueRange totals, Value row, int64_t width);
  Values sum(unsigned loop, ValueRange totals, Value row, int64_t width);
  Values sumLanes(ValueRange totals, Value row);
  void writeRows(Value row, int64_t count, int64_t width);
  void forRows(StepBuilder::Range rows, int64_t width);

  StepBuilder &s;
  ComputeOp op;
  SmallVector<AffineMap> maps;
  unsigned outer;
  SmallVector<Value> loops;  // their variables
  unsigned along = 0;        // the loop that vectors run along
  bool isLaneByLane = false; // it is the last one of the sum
};

/// Does a loop run along the last dimension of a tensor, or not appear in it at all?
bool isAlong(AffineMap map, unsigned loop) {
  for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
    bool alone = isa<AffineDimExpr>(expr) && cast<AffineDimExpr>(expr).getPosition() == loop;
    if (expr.isFunctionOfDim(loop) && !(alone && dim + 1 == map.getNumResults()))
      return false;
  }
  return true;
}

// Vectors run along the last dimension, which then has stride 1: that is sure of tensors of rank 4.
bool ComputeBuilder::canHaveLanes(ArrayRef<Value> tensors, unsigned loop) {
  for (auto [tensor, map] : llvm::zip(tensors, maps)) {
    bool appears = map.isFunctionOfDim(loop);
    if (!isAlong(map, loop) || (appears && cast<RankedTensorType>(tensor.getType()).getRank() != 4))
      return false;
  }
  return llvm::all_of(op.getBody().front().without_terminator(), [](Operation &inner) {
    return inner.hasTrait<OpTrait::ConstantLike>() || OpTrait::hasElementwiseMappableTraits(&inner);
  });
}

/// Is what the body gives the total plus something: a sum, in any order?
bool ComputeBuilder::isSum() {
  Value total = op.getBody().front().getArguments().back();
  auto add = op.getBody().front().getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  return add && total.hasOneUse() && (add.getLhs() == total || add.getRhs() == total);
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
  bool hasLanes = width > 1 && maps[input].isFunctionOfDim(along);
  Value v = s.load(op.getInputs()[input], at, hasLanes ? width : 1);
  return hasLanes ? v : s.splat(v, width);
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

/// The totals of consecutive rows, from `row` on where there are several.
Values ComputeBuilder::addNext(ValueRange totals, Value row, int64_t width) {
  Values next;
  for (auto [r, total] : llvm::enumerate(totals)) {
    if (row)
      loops[outer - 2] = s.add(row, r);
    next.push_back(body(total, width));
  }
  return next;
}

/// The same with the loops from `loop` on still to come.
Values ComputeBuilder::sum(unsigned loop, ValueRange totals, Value row, int64_t width) {
  if (loop == loops.size())
    return addNext(totals, row, width);
  if (isLaneByLane && loop + 1 == loops.size())
    return sumLanes(totals, row);
  return s.loop(s.index(0), extent(loop), totals, [&](Value at, ValueRange totals) {
    loops[loop] = at;
    return sum(loop + 1, totals, row, width);
  });
}

/// The last loop in vectors, whose lanes are added in the end.
Values ComputeBuilder::sumLanes(ValueRange totals, Value row) {
  Value end = extent(along), whole = s.sub(end, s.modulo(end, s.index(s.lanes)));
  auto run = [&](Value from, Value to, ValueRange init, int64_t width) {
    auto next = [&](Value at, ValueRange so) {
      loops[along] = at;
      return addNext(so, row, width);
    };
    return s.loop(from, to, init, next, width);
  };
  Values lanes = run(s.index(0), whole, Values(totals.size(), s.f32(0, s.lanes)), s.lanes), joined;
  for (auto [vector, total] : llvm::zip(lanes, totals))
    joined.push_back(s.add(total, s.sumOf(vector)));
  return run(whole, end, joined, 1);
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
  if (canHaveLanes(op.getTensors(), along = outer - 1))
    return s.forLanes(mine[outer - 1], columns);
  along = loops.size() - 1;
  isLaneByLane = !s.onDevice() && along >= outer && isSum() && canHaveLanes(llvm::to_vector(op.getInputs()), along);
  s.forEach(mine[outer - 1], [&](Value at) { columns(at, 1); });
}

} // namespace

void buildCompute(StepBuilder &s, ComputeOp op) { ComputeBuilder(s, op).build(); }

} // namespace attn
