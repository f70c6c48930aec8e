//===- Merge.cpp - Parts of the keys, and what is joined, become one result ===//
#include "Kernel.h"
#include "Kernels.h"
#include "Parameters.h"
#include "attn/Dialect/AttnTile/IR/LargestScore.h"
#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Device.h"
#include "attn/Support/Names.h"

using namespace mlir;

namespace attn::cuda {
namespace {

constexpr float kLog2E = 1.44269504088896341f;

/// Memrefs of an output that is joined and its log-sum-exp.
SmallVector<Type> joinedTypes(func::FuncOp task) {
  Type output = Parameters::memrefTypes(task)[3];
  SmallVector<int64_t> open(3, ShapedType::kDynamic);
  return {output, MemRefType::get(open, Float32Type::get(task.getContext()))};
}

/// out = sum(w_c acc_c) / sum(w_c l_c) with w_c = exp2((m_c - m) unit), lse = m + log2 l / unit in natural units: as
/// lib/Runtime/merge.c. What is joined is one more part, with acc = l out. A warp takes row after row, a lane every
/// 32nd column.
class MergeBuilder {
public:
  MergeBuilder(Emit &e, const KernelShape &shape, bool hasLse, Parameters parameters)
      : e(e), shape(shape), hasLse(hasLse), parameters(std::move(parameters)) {}

  void build();

private:
  /// What a row joins.
  struct Joined {
    Value reference, sum; // as of a part: 0 where nothing is joined
    Value weight;         // times sum
  };

  Value float32(Value pointer) { return e.load(e.b.getF32Type(), pointer); }
  Value field(int64_t offset) { return Parameters::field(e, block, offset / 8); }
  Values overParts(Values init, function_ref<Values(Value, ValueRange)> body);
  void row(Value row);
  Joined findJoined(Value head, Value token);
  void storeColumns(Value head, Value token, Value reference, const Joined &joined, Value inverse);
  void storeLse(Value head, Value token, Value reference, Value sum);
  Value referenceOf(Value part) { return float32(e.at(part, pairBytes)); }
  Value weight(Value of, Value reference) {
    return e.exp2(e.mulf(e.subf(of, reference), e.f32(shape.natural ? kLog2E : 4)));
  }
  Value sumOf(Value part) { return float32(e.at(e.at(part, pairBytes), 4)); }
  Value isNotZero(Value v) { return e.cmpf(arith::CmpFPredicate::UNE, v, e.f32(0)); }
  Value seen(Value part) { return isNotZero(sumOf(part)); }

  Emit &e;
  const KernelShape &shape;
  bool hasLse;
  Parameters parameters;
  Value block, pair, batch, firstHead, rows, start;
  Value sumsBytes, pairBytes; // from a part to the sums of weighted values of the row, and to its m and l
};

// body(pointer to the part, carried)
Values MergeBuilder::overParts(Values init, function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(e.b, e.loc, e.index(0), e.toIndex(parameters.parts), e.index(1), init);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value bytes =
      e.mul(e.make<arith::MulIOp>(e.toI64(loop.getInductionVar()), rows), 4 * attn_partial_floats(shape.valueDim));
  scf::YieldOp::create(e.b, e.loc, body(e.at(start, bytes), loop.getRegionIterArgs()));
  return Values(loop.getResults());
}

/// The log-sum-exp as the reference and sum of a part. The sum makes up for the rounding of the reference; that of a
/// log-sum-exp so large that one step of it is more counts no more than that of a score.
MergeBuilder::Joined MergeBuilder::findJoined(Value head, Value token) {
  Value lse = float32(parameters.more[1].address(e, {batch, head, token})), sum = e.f32(1);
  auto clamp = [&](Value v, Value most) { return e.select(e.cmpf(arith::CmpFPredicate::OGT, v, most), most, v); };
  Value none = e.cmpf(arith::CmpFPredicate::OEQ, lse, e.negativeInfinity());
  lse = clamp(lse, e.f32(std::numeric_limits<float>::max()));
  if (shape.natural)
    return {lse, e.select(none, e.f32(0), sum), {}};
  Value reference = clamp(e.mulf(lse, e.f32(0.25f * kLog2E)), e.f32(tile::kLargestScore));
  constexpr double kUnit = 2.772588722239781; // in natural units
  constexpr float kHigh = kUnit, kLow = kUnit - double(kHigh);
  Value rest = e.fma(reference, e.f32(-kLow), e.fma(reference, e.f32(-kHigh), lse));
  rest = e.maxf(e.minf(rest, e.f32(1)), e.f32(-1));
  sum = e.exp2(e.mulf(rest, e.f32(kLog2E)));
  return {reference, e.select(none, e.f32(0), sum), {}};
}

void MergeBuilder::storeColumns(Value head, Value token, Value reference, const Joined &joined, Value inverse) {
  const Descriptor &out = parameters.memrefs[3];
  Value from = e.toIndex(e.lane());
  auto loop = scf::ForOp::create(e.b, e.loc, from, e.index(shape.valueDim), e.index(kWarp));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  Value column = loop.getInductionVar(), bytes = e.toI64(e.mul(column, 4));
  Value sum = overParts({e.f32(0)}, [&](Value part, ValueRange carried) -> Values {
    Value own = weight(referenceOf(part), reference);
    Value more = e.fma(own, float32(e.at(e.at(part, sumsBytes), bytes)), carried[0]);
    return {e.select(seen(part), more, carried[0])};
  })[0];
  if (joined.weight) {
    Value v = e.load(shape.element, parameters.more[0].address(e, {batch, head, token, column}));
    if (!shape.element.isF32())
      v = e.make<arith::ExtFOp>(e.b.getF32Type(), v);
    sum = e.select(isNotZero(joined.weight), e.fma(joined.weight, v, sum), sum);
  }
  Value v = e.mulf(sum, inverse);
  if (!shape.element.isF32())
    v = e.make<arith::TruncFOp>(shape.element, v);
  e.store(v, out.address(e, {batch, head, token, column}));
}

void MergeBuilder::storeLse(Value head, Value token, Value reference, Value sum) {
  Value lse = logSumExp(e, shape, reference, sum);
  e.ifThen(e.equal(e.lane(), e.i32(0)), [&] { e.store(lse, parameters.memrefs[4].address(e, {batch, head, token})); });
}

void MergeBuilder::row(Value row) {
  int64_t width = 4 * attn_sum_floats(shape.valueDim);
  sumsBytes = e.toI64(e.mul(row, width));
  pairBytes = e.add(e.mul(e.toI64(rows), width), e.toI64(e.mul(row, 8)));
  Value head = e.add(firstHead, e.modulo(row, shape.pack));
  Value position = e.add(e.toIndex(field(offsetof(AttnTask, row))), e.divide(row, shape.pack));
  Value step = e.toIndex(field(offsetof(AttnTask, query_step)));
  Value token = e.add(e.toIndex(field(offsetof(AttnTask, query_token))), e.make<arith::MulIOp>(position, step));
  Joined joined;
  if (!parameters.more.empty())
    joined = findJoined(head, token);
  Value low = joined.reference ? joined.reference : e.negativeInfinity();
  Value reference = overParts({low}, [&](Value part, ValueRange carried) -> Values {
    Value m = e.maxf(carried[0], referenceOf(part));
    return {e.select(seen(part), m, carried[0])};
  })[0];
  Value sum = overParts({e.f32(0)}, [&](Value part, ValueRange carried) -> Values {
    Value more = e.fma(weight(referenceOf(part), reference), sumOf(part), carried[0]);
    return {e.select(seen(part), more, carried[0])};
  })[0];
  if (joined.reference) {
    joined.weight = e.mulf(weight(joined.reference, reference), joined.sum);
    joined.weight = e.select(isNotZero(joined.sum), joined.weight, joined.sum);
    sum = e.addf(sum, joined.weight);
  }
  Value none = e.cmpf(arith::CmpFPredicate::OEQ, sum, e.f32(0));
  Value inverse = e.select(none, e.f32(0), e.make<arith::DivFOp>(e.f32(1), sum));
  storeColumns(head, token, reference, joined, inverse);
  if (hasLse)
    storeLse(head, token, reference, sum);
}

void MergeBuilder::build() {
  Value number = e.toI64(NVVM::BlockIdXOp::create(e.b, e.loc, e.b.getI32Type()));
  Value tiles = e.make<arith::DivUIOp>(parameters.count, parameters.parts);
  pair = e.toIndex(e.make<arith::DivUIOp>(number, tiles));
  block = parameters.block(e, e.make<arith::MulIOp>(e.make<arith::RemUIOp>(number, tiles), parameters.parts));
  Value packs = e.divide(parameters.memrefs[3].extents[1], shape.pack);
  batch = e.make<arith::DivUIOp>(pair, packs);
  firstHead = e.mul(e.make<arith::RemUIOp>(pair, packs), shape.pack);
  rows = e.mul(field(offsetof(AttnTask, rows)), shape.pack);
  start = e.at(parameters.partials, parameters.partialBytes(e, block, pair, attn_partial_floats(shape.valueDim)));
  auto loop = scf::ForOp::create(e.b, e.loc, e.toIndex(e.warp()), e.toIndex(rows), e.index(shape.warps));
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointToStart(loop.getBody());
  row(loop.getInductionVar());
}

} // namespace

void makeMergeKernel(func::FuncOp task, gpu::GPUModuleOp device, const KernelShape &shape, bool hasLse, bool joins) {
  OpBuilder b(task.getContext());
  Emit e(b, task.getLoc());
  std::string name = getMergeName(getDeviceName(task.getName()));
  SmallVector<Type> more = joins ? joinedTypes(task) : SmallVector<Type>();
  LLVM::LLVMFuncOp kernel = declareKernel(e, task, device, name, shape.threads(), more);
  MergeBuilder(e, shape, hasLse, Parameters::read(e, task, kernel.getBody().front(), more)).build();
  LLVM::ReturnOp::create(b, e.loc, ValueRange());
}

} // namespace attn::cuda
