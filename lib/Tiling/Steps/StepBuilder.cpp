//===- StepBuilder.cpp - Terse building of the code of a step -------------===//
#include "StepBuilder.h"
#include "attn/Entry/Interface.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn {

using Values = StepBuilder::Values;

static SmallVector<Value> tensorsOf(Operation *op) {
  SmallVector<Value> tensors(op->getOperands());
  llvm::append_range(tensors, op->getResults());
  return tensors;
}

static MemRefType memrefOf(RankedTensorType tensor, bool contiguous) {
  MLIRContext *context = tensor.getContext();
  SmallVector<int64_t> strides(tensor.getRank(), ShapedType::kDynamic);
  if (contiguous && !strides.empty())
    strides.back() = 1;
  Type element = tensor.getElementType().isInteger(1) ? IntegerType::get(context, 8) : tensor.getElementType();
  return MemRefType::get(tensor.getShape(), element, StridedLayoutAttr::get(context, ShapedType::kDynamic, strides));
}

StepBuilder::StepBuilder(OpBuilder &builder, CompiledOpInterface op, StringRef name, int64_t lanes)
    : b(builder), loc(op->getLoc()), lanes(lanes), op(op) {
  SmallVector<Value> tensors = tensorsOf(op), contiguous = op.getContiguous();
  SmallVector<Type> types;
  for (Value tensor : tensors)
    types.push_back(memrefOf(cast<RankedTensorType>(tensor.getType()), llvm::is_contained(contiguous, tensor)));
  types.push_back(b.getIndexType());
  function = func::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  for (auto [tensor, argument] : llvm::zip(tensors, entry->getArguments()))
    memrefs.try_emplace(tensor, argument);
  unit = entry->getArguments().back();
  b.setInsertionPointToStart(entry);
}

func::FuncOp StepBuilder::finish() {
  func::ReturnOp::create(b, loc);
  return function;
}

//===----------------------------------------------------------------------===//
// Units
//===----------------------------------------------------------------------===//

static int64_t numberOf(ArrayRef<Value> tensors, Value tensor) { return llvm::find(tensors, tensor) - tensors.begin(); }

SmallVector<StepBuilder::Range> StepBuilder::share(ArrayRef<Shared> dims) {
  SmallVector<Value> tensors = tensorsOf(op);
  SmallVector<Range> ranges(dims.size());
  Value rest = unit;
  for (size_t i = dims.size(); i-- > 0;) {
    Shared shared = dims[i];
    Value extent = dim(shared.tensor, shared.dim);
    if (shared.size == 0 && !onDevice()) {
      ranges[i] = {index(0), extent, false};
      continue;
    }
    int64_t size = onDevice() ? 1 : shared.size;
    Value count = make<arith::CeilDivUIOp>(extent, index(size));
    Value from = mul(modulo(rest, count), size);
    rest = make<arith::DivUIOp>(rest, count);
    std::optional<int64_t> known = getConstantIntValue(extent);
    bool whole = size == 1 || (known && *known % size == 0);
    ranges[i] = {from, whole ? add(from, size) : min(add(from, size), extent), size == 1};
    units.insert(units.begin(), {numberOf(tensors, shared.tensor), shared.dim, size});
  }
  return ranges;
}

//===----------------------------------------------------------------------===//
// Teams
//===----------------------------------------------------------------------===//

constexpr int64_t kTeam = 32;

void StepBuilder::formTeams() {
  if (!onDevice())
    return;
  function->setAttr(tile::kTeamAttr, b.getI64IntegerAttr(kTeam));
  member = gpu::LaneIdOp::create(b, loc, /*upper_bound=*/IntegerAttr());
}

void StepBuilder::forTeam(Range range, Body<Value> body) {
  if (!member)
    return forEach(range, body);
  loop(add(range.from, member), range.to, {}, [&](Value i, ValueRange) { return body(i), Values(); }, kTeam);
}

Values StepBuilder::foldTeam(Range range, ValueRange init, function_ref<Values(Value, ValueRange)> body) {
  return member ? loop(add(range.from, member), range.to, init, body, kTeam) : loop(range.from, range.to, init, body);
}

StepBuilder::Range StepBuilder::stretch(Range range) {
  if (!member)
    return range;
  Value size = divide(add(sub(range.to, range.from), kTeam - 1), index(kTeam));
  Value from = min(add(range.from, mul(member, size)), range.to);
  return {from, min(add(from, size), range.to), false};
}

Value StepBuilder::shuffle(Value v, gpu::ShuffleMode mode, Value by) {
  bool isIndex = v.getType().isIndex();
  if (isIndex)
    v = arith::IndexCastOp::create(b, loc, b.getI32Type(), v);
  Value width = arith::ConstantIntOp::create(b, loc, b.getI32Type(), kTeam);
  Value other = gpu::ShuffleOp::create(b, loc, v, by, width, mode).getShuffleResult();
  return isIndex ? arith::IndexCastOp::create(b, loc, b.getIndexType(), other).getResult() : other;
}

Value StepBuilder::combine(Value v, function_ref<Value(Value, Value)> how) {
  for (int64_t mask = kTeam / 2; member && mask > 0; mask /= 2)
    v = how(v, shuffle(v, gpu::ShuffleMode::XOR, arith::ConstantIntOp::create(b, loc, b.getI32Type(), mask)));
  return v;
}

Value StepBuilder::sumBefore(Value own) {
  if (!member)
    return index(0);
  Value sum = own;
  for (int64_t distance = 1; distance < kTeam; distance *= 2) {
    Value from = arith::IndexCastOp::create(b, loc, b.getI32Type(), max(sub(member, index(distance)), index(0)));
    Value other = shuffle(sum, gpu::ShuffleMode::IDX, from);
    sum = select(less(member, index(distance)), sum, add(sum, other));
  }
  return sub(sum, own);
}

void StepBuilder::syncTeam() {
  if (member)
    gpu::BarrierOp::create(b, loc);
}

void StepBuilder::forEach(Range range, Body<Value> body) {
  if (range.single)
    return body(range.from);
  loop(range.from, range.to, {}, [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

void StepBuilder::forLanes(Range range, Body<Value, int64_t> body) {
  if (onDevice())
    return forEach(range, [&](Value i) { body(i, 1); });
  Value count = sub(range.to, range.from), vectors = sub(count, modulo(count, index(lanes)));
  Value end = add(range.from, vectors);
  auto run = [&](Value from, Value to, int64_t width) {
    auto body_ = [&](Value i, ValueRange) {
      body(i, width);
      return Values();
    };
    loop(from, to, {}, body_, width);
  };
  run(range.from, end, lanes);
  if (std::optional<int64_t> known = getConstantIntValue(vectors); !known || getConstantIntValue(count) != known)
    run(end, range.to, 1);
}

Value StepBuilder::sumLanes(Range range, function_ref<Value(Value, int64_t)> number) {
  auto run = [&](Value from, Value to, int64_t width) {
    auto addNext = [&](Value i, ValueRange total) { return Values{add(total[0], number(i, width))}; };
    return loop(from, to, f32(0, width), addNext, width)[0];
  };
  if (lanes == 1)
    return run(range.from, range.to, 1);
  Value count = sub(range.to, range.from), end = add(range.from, sub(count, modulo(count, index(lanes))));
  return add(sumOf(run(range.from, end, lanes)), run(end, range.to, 1));
}

Value StepBuilder::sumOf(Value vector) {
  return vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, vector, arith::FastMathFlags::reassoc);
}

void StepBuilder::once(Range range, Body<> body) {
  if (!onDevice())
    return body();
  ifThen(equal(range.from, index(0)), body);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

Value StepBuilder::memref(Value tensor) { return memrefs.lookup(tensor); }

Value StepBuilder::allocate(Value rows, int64_t width) {
  std::optional<int64_t> known = getConstantIntValue(rows);
  auto type = MemRefType::get({known.value_or(ShapedType::kDynamic), width}, b.getF32Type());
  Value memref =
      memref::AllocaOp::create(b, loc, type, known ? ValueRange() : ValueRange(rows), b.getI64IntegerAttr(64));
  memrefs.try_emplace(memref, memref);
  return memref;
}

void StepBuilder::prefetch(Value tensor, ValueRange at) {
  memref::PrefetchOp::create(b, loc, memref(tensor), at, /*isWrite=*/false, /*localityHint=*/3, /*isDataCache=*/true);
}

Value StepBuilder::dim(Value tensor, unsigned d) {
  int64_t known = cast<RankedTensorType>(tensor.getType()).getDimSize(d);
  return known >= 0 ? index(known) : memref::DimOp::create(b, loc, memref(tensor), d).getResult();
}

static Type withWidth(Type element, int64_t width) { return width == 1 ? element : VectorType::get(width, element); }

Value StepBuilder::load(Value tensor, ValueRange at, int64_t width) {
  Type element = cast<MemRefType>(memref(tensor).getType()).getElementType();
  Value v = width == 1
                ? memref::LoadOp::create(b, loc, memref(tensor), at).getResult()
                : vector::LoadOp::create(b, loc, VectorType::get(width, element), memref(tensor), at).getResult();
  if (isa<IntegerType>(element))
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), v);
  return element.isF32() || element.isIndex()
             ? v
             : arith::ExtFOp::create(b, loc, withWidth(b.getF32Type(), width), v).getResult();
}

void StepBuilder::store(Value v, Value tensor, ValueRange at) {
  Type element = cast<MemRefType>(memref(tensor).getType()).getElementType();
  auto vector = dyn_cast<VectorType>(v.getType());
  Type type = withWidth(element, vector ? vector.getNumElements() : 1);
  if (isa<IntegerType>(element) && v.getType().isIndex())
    v = arith::IndexCastOp::create(b, loc, element, v);
  else if (v.getType() != type)
    v = arith::TruncFOp::create(b, loc, type, v);
  if (vector)
    vector::StoreOp::create(b, loc, v, memref(tensor), at);
  else
    memref::StoreOp::create(b, loc, v, memref(tensor), at);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value StepBuilder::f32(float v, int64_t width) {
  FloatAttr number = b.getF32FloatAttr(v);
  if (width == 1)
    return arith::ConstantOp::create(b, loc, number);
  return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(VectorType::get(width, b.getF32Type()), number));
}

Value StepBuilder::splat(Value v, int64_t width) {
  return width == 1 ? v : vector::BroadcastOp::create(b, loc, VectorType::get(width, v.getType()), v).getResult();
}

static bool isNumber(Value v) { return isa<FloatType>(getElementTypeOrSelf(v.getType())); }

Value StepBuilder::add(Value x, Value y) { return isNumber(x) ? make<arith::AddFOp>(x, y) : make<arith::AddIOp>(x, y); }
Value StepBuilder::sub(Value x, Value y) { return isNumber(x) ? make<arith::SubFOp>(x, y) : make<arith::SubIOp>(x, y); }
Value StepBuilder::mul(Value x, Value y) { return isNumber(x) ? make<arith::MulFOp>(x, y) : make<arith::MulIOp>(x, y); }
Value StepBuilder::divide(Value x, Value y) {
  return isNumber(x) ? make<arith::DivFOp>(x, y) : make<arith::DivUIOp>(x, y);
}
Value StepBuilder::min(Value x, Value y) {
  return isNumber(x) ? make<arith::MinimumFOp>(x, y) : make<arith::MinSIOp>(x, y);
}
Value StepBuilder::max(Value x, Value y) {
  return isNumber(x) ? make<arith::MaximumFOp>(x, y) : make<arith::MaxSIOp>(x, y);
}
Value StepBuilder::less(Value x, Value y) {
  return isNumber(x) ? make<arith::CmpFOp>(arith::CmpFPredicate::OLT, x, y)
                     : make<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y);
}
Value StepBuilder::equal(Value x, Value y) {
  return isNumber(x) ? make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, x, y)
                     : make<arith::CmpIOp>(arith::CmpIPredicate::eq, x, y);
}
Value StepBuilder::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, loc, x, y, z); }
Value StepBuilder::exp(Value x) { return math::ExpOp::create(b, loc, x); }
Value StepBuilder::log(Value x) { return math::LogOp::create(b, loc, x); }
Value StepBuilder::sqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value StepBuilder::abs(Value x) { return math::AbsFOp::create(b, loc, x); }
Value StepBuilder::sin(Value x) { return math::SinOp::create(b, loc, x); }
Value StepBuilder::cos(Value x) { return math::CosOp::create(b, loc, x); }
Value StepBuilder::toF32(Value v) {
  Value narrow = arith::IndexCastOp::create(b, loc, b.getI64Type(), v);
  return arith::SIToFPOp::create(b, loc, b.getF32Type(), narrow);
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

Values StepBuilder::loop(Value from, Value to, ValueRange init, function_ref<Values(Value, ValueRange)> body,
                         int64_t step) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, next);
  return Values(loop.getResults());
}

Value StepBuilder::fold(Value from, Value to, Value init, function_ref<Value(Value, Value)> body) {
  return loop(from, to, init, [&](Value i, ValueRange total) { return Values{body(i, total[0])}; })[0];
}

Value StepBuilder::choose(Value condition, function_ref<Value()> then, function_ref<Value()> otherwise) {
  return choose(condition, [&] { return Values{then()}; }, [&] { return Values{otherwise()}; })[0];
}

Values StepBuilder::choose(Value condition, function_ref<Values()> then, function_ref<Values()> otherwise) {
  auto yield = [&](function_ref<Values()> values) {
    return [values](OpBuilder &b, Location loc) { scf::YieldOp::create(b, loc, values()); };
  };
  return Values(scf::IfOp::create(b, loc, condition, yield(then), yield(otherwise)).getResults());
}

Value StepBuilder::dot(Value extent, function_ref<std::pair<Value, Value>(Value, int64_t)> factors, bool inOrder) {
  auto run = [&](Value from, Value to, Value init, int64_t width) {
    auto body = [&](Value d, ValueRange total) {
      auto [x, y] = factors(d, width);
      return Values{fma(x, y, total[0])};
    };
    return loop(from, to, init, body, width)[0];
  };
  if (lanes == 1)
    return run(index(0), extent, f32(0), 1);
  Value vectors = sub(extent, modulo(extent, index(lanes)));
  Value wide = run(index(0), vectors, f32(0, lanes), lanes);
  Value sum = vector::ReductionOp::create(b, loc, vector::CombiningKind::ADD, wide,
                                          inOrder ? arith::FastMathFlags::none : arith::FastMathFlags::reassoc);
  return run(vectors, extent, sum, 1);
}

void StepBuilder::ifThen(Value condition, Body<> then, Body<> otherwise) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  otherwise();
}

} // namespace attn
