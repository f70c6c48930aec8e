//===- Lanes.cpp - Mask and score regions in vector code ------------------===//
#include "Lanes.h"

#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::cpu {

// Tokens are counted below 2^31. Lanes past the last query may wrap: nothing of them is kept.
static constexpr int64_t kPositionLimit = INT32_MAX;

static bool fits32(int64_t lo, int64_t hi) { return lo >= INT32_MIN && hi <= INT32_MAX; }

static void setBounds(Lanes &lanes, Type type) {
  unsigned bits = type.isIndex() ? 64 : type.isInteger() ? type.getIntOrFloatBitWidth() : 0;
  lanes.lo = bits ? llvm::minIntN(bits) : 0; // i1: true is -1
  lanes.hi = bits ? llvm::maxIntN(bits) : 0;
}

// Bounds of sums and products in 128 bits; a result that may leave 64 bits has no useful bounds.
static void setBounds(Lanes &lanes, Type type, __int128 lo, __int128 hi) {
  setBounds(lanes, type);
  if (lo >= lanes.lo && hi <= lanes.hi) {
    lanes.lo = lo;
    lanes.hi = hi;
  }
}

LaneRegion::LaneRegion(Emit &e, Block &body, Place place, int64_t vectors)
    : e(e), body(body), place(place), vectors(vectors), hasScore(body.getArgument(0).getType().isF32()) {
  unsigned first = hasScore ? 1 : 0;
  if (hasScore)
    dependences[body.getArgument(0)] = OnQuery | OnKey;
  dependences[body.getArgument(first + 2)] = OnQuery;
  dependences[body.getArgument(first + 3)] = OnKey;
  for (Operation &op : body.without_terminator()) {
    int on = 0;
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        on |= dependence(operand);
    });
    for (Value result : op.getResults())
      dependences[result] = on;
  }
}

Lanes LaneRegion::get(Value v, Environment *env) const {
  if (env)
    if (auto it = env->find(v); it != env->end())
      return it->second;
  if (auto it = rowValues.find(v); it != rowValues.end())
    return it->second;
  if (auto it = invariant.find(v); it != invariant.end())
    return it->second;
  Lanes outside; // a value from outside the region is the same for all lanes
  outside.value = v;
  setBounds(outside, v.getType());
  return outside;
}

void LaneRegion::evaluate(Operation &op, Environment &into, Environment *env) {
  SmallVector<Lanes> operands;
  for (Value operand : op.getOperands())
    operands.push_back(get(operand, env));
  into[op.getResult(0)] = compute(op, operands);
}

void LaneRegion::prepare() {
  unsigned first = hasScore ? 1 : 0;
  auto bind = [&](unsigned argument, Value v, int64_t lo, int64_t hi) {
    Lanes lanes;
    lanes.value = v;
    lanes.lo = lo;
    lanes.hi = hi;
    invariant[body.getArgument(argument)] = lanes;
  };
  bind(first, place.batch, 0, kPositionLimit);
  bind(first + 1, place.head, 0, kPositionLimit);
  bind(first + 4, place.numQueries, 0, kPositionLimit);
  bind(first + 5, place.numKeys, 0, kPositionLimit);
  for (auto [i, memref] : llvm::enumerate(place.captured))
    bind(first + 6 + i, memref, 0, 0);

  for (Operation &op : body.without_terminator())
    if (dependence(op.getResult(0)) == 0)
      evaluate(op, invariant, nullptr);
  queryValues.resize(vectors);
  for (int64_t v = 0; v < vectors; ++v) {
    Lanes query;
    query.kind = Lanes::Affine;
    query.value = e.add(place.query, v * e.lanes * place.step);
    query.step = place.step;
    query.lo = place.nonnegative ? 0 : -kPositionLimit;
    query.hi = kPositionLimit;
    queryValues[v][body.getArgument(first + 2)] = query;
    for (Operation &op : body.without_terminator())
      if (dependence(op.getResult(0)) == OnQuery)
        evaluate(op, queryValues[v], &queryValues[v]);
  }
}

void LaneRegion::startRow(Value row) {
  rowValues.clear();
  Lanes key;
  key.value = e.add(place.key, e.mul(row, place.step));
  key.lo = 0;
  key.hi = kPositionLimit;
  rowValues[body.getArgument((hasScore ? 1 : 0) + 3)] = key;
  for (Operation &op : body.without_terminator())
    if (dependence(op.getResult(0)) == OnKey)
      evaluate(op, rowValues, nullptr);
}

Value LaneRegion::yielded(int64_t v, Value score) {
  Environment env = queryValues[v];
  if (hasScore) {
    Lanes s;
    s.kind = Lanes::Vector;
    s.value = score;
    env[body.getArgument(0)] = s;
  }
  for (Operation &op : body.without_terminator())
    if (dependence(op.getResult(0)) == (OnQuery | OnKey))
      evaluate(op, env, &env);
  Value result = body.getTerminator()->getOperand(0);
  return vectorOf(get(result, &env), result.getType());
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

static VectorType vectorType(Type element, int64_t lanes) { return VectorType::get({lanes}, element); }

static Value iota(Emit &e, Type element, int64_t step) {
  SmallVector<Attribute> values;
  for (int64_t i = 0; i < e.lanes; ++i)
    values.push_back(IntegerAttr::get(element, i * step));
  return arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(vectorType(element, e.lanes), values));
}

// Changes the element type of an integer or index vector or scalar.
static Value castTo(Emit &e, Value v, Type element) {
  Type from = getElementTypeOrSelf(v.getType());
  if (from == element)
    return v;
  Type type = isa<VectorType>(v.getType()) ? Type(vectorType(element, e.lanes)) : element;
  if (from.isIndex() || element.isIndex())
    return e.make<arith::IndexCastOp>(type, v);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return e.make<arith::ExtSIOp>(type, v);
  return e.make<arith::TruncIOp>(type, v);
}

Value LaneRegion::vectorOf(const Lanes &lanes, Type element) {
  if (lanes.kind == Lanes::Vector)
    return isa<FloatType>(element) ? lanes.value : castTo(e, lanes.value, element);
  Value scalar = isa<FloatType>(element) ? lanes.value : castTo(e, lanes.value, element);
  Value splat = vector::BroadcastOp::create(e.b, e.loc, vectorType(element, e.lanes), scalar);
  if (lanes.kind == Lanes::Uniform)
    return splat;
  return arith::AddIOp::create(e.b, e.loc, splat, iota(e, element, lanes.step));
}

// index values are computed in 32 bits where their bounds, and the bounds of all that they meet, allow it.
Type LaneRegion::elementFor(Type type, std::initializer_list<const Lanes *> all) const {
  if (!type.isIndex())
    return type;
  for (const Lanes *lanes : all)
    if (!fits32(lanes->lo, lanes->hi))
      return e.b.getI64Type();
  return e.b.getI32Type();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

// Bounds of the integer ops that keep indices small: the rest takes the bounds of the type.
static void bound(Lanes &out, Operation &op, ArrayRef<Lanes> x) {
  Type type = getElementTypeOrSelf(op.getResult(0).getType());
  setBounds(out, type);
  if (!type.isIntOrIndex())
    return;
  using W = __int128;
  llvm::TypeSwitch<Operation *>(&op)
      .Case([&](arith::ConstantOp c) {
        if (auto value = dyn_cast<IntegerAttr>(c.getValue()); value)
          out.lo = out.hi = value.getInt();
      })
      .Case([&](arith::AddIOp) { setBounds(out, type, W(x[0].lo) + x[1].lo, W(x[0].hi) + x[1].hi); })
      .Case([&](arith::SubIOp) { setBounds(out, type, W(x[0].lo) - x[1].hi, W(x[0].hi) - x[1].lo); })
      .Case([&](arith::MulIOp) {
        W p[] = {W(x[0].lo) * x[1].lo, W(x[0].lo) * x[1].hi, W(x[0].hi) * x[1].lo, W(x[0].hi) * x[1].hi};
        setBounds(out, type, *std::min_element(p, p + 4), *std::max_element(p, p + 4));
      })
      .Case<arith::MinSIOp>([&](auto) { setBounds(out, type, std::min(x[0].lo, x[1].lo), std::min(x[0].hi, x[1].hi)); })
      .Case<arith::MaxSIOp>([&](auto) { setBounds(out, type, std::max(x[0].lo, x[1].lo), std::max(x[0].hi, x[1].hi)); })
      .Case<arith::SelectOp>(
          [&](auto) { setBounds(out, type, std::min(x[1].lo, x[2].lo), std::max(x[1].hi, x[2].hi)); })
      .Case<arith::IndexCastOp, arith::ExtSIOp>([&](auto) { setBounds(out, type, x[0].lo, x[0].hi); })
      .Case<arith::IndexCastUIOp, arith::ExtUIOp>([&](auto) {
        auto from = dyn_cast<IntegerType>(op.getOperand(0).getType());
        if (x[0].lo >= 0)
          setBounds(out, type, x[0].lo, x[0].hi);
        else if (from && from.getWidth() < 64)
          setBounds(out, type, 0, (W(1) << from.getWidth()) - 1);
      })
      .Case<arith::FloorDivSIOp, arith::DivSIOp, arith::DivUIOp, arith::CeilDivSIOp>([&](auto) {
        if (x[1].lo >= 1 && (x[0].lo >= 0 || !isa<arith::DivUIOp>(op)))
          setBounds(out, type, std::min<int64_t>(x[0].lo, 0), std::max<int64_t>(x[0].hi, 0));
      })
      .Case<arith::RemSIOp, arith::RemUIOp>([&](auto) {
        if (x[1].lo >= 1 && (x[0].lo >= 0 || isa<arith::RemSIOp>(op)))
          setBounds(out, type, x[0].lo >= 0 ? 0 : 1 - W(x[1].hi), W(x[1].hi) - 1);
      });
}

Lanes LaneRegion::compute(Operation &op, ArrayRef<Lanes> operands) {
  if (isa<memref::LoadOp>(op))
    return read(op, operands);
  bool uniform = llvm::all_of(operands, [](const Lanes &x) { return x.kind == Lanes::Uniform; });
  if (uniform) {
    Lanes out;
    IRMapping map;
    for (auto [operand, lanes] : llvm::zip(op.getOperands(), operands))
      map.map(operand, lanes.value);
    out.value = e.b.clone(op, map)->getResult(0);
    bound(out, op, operands);
    return out;
  }
  if (auto lanes = affine(op, operands))
    return *lanes;
  if (auto lanes = compareAffine(op, operands))
    return *lanes;
  return arithmetic(op, operands);
}

// Sums of progressions, and products with a constant, are progressions.
std::optional<Lanes> LaneRegion::affine(Operation &op, ArrayRef<Lanes> x) {
  if (x.size() != 2 || x[0].kind == Lanes::Vector || x[1].kind == Lanes::Vector)
    return std::nullopt;
  if (!op.getResult(0).getType().isIndex())
    return std::nullopt;
  Lanes out;
  out.kind = Lanes::Affine;
  bound(out, op, x);
  if (!fits32(out.lo, out.hi) && (out.lo == INT64_MIN || out.hi == INT64_MAX))
    return std::nullopt; // may wrap: no progression
  if (isa<arith::AddIOp>(op)) {
    out.value = e.add(x[0].value, x[1].value);
    out.step = x[0].step + x[1].step;
  } else if (isa<arith::SubIOp>(op)) {
    out.value = e.sub(x[0].value, x[1].value);
    out.step = x[0].step - x[1].step;
  } else if (isa<arith::MulIOp>(op)) {
    const Lanes &scaled = x[0].kind == Lanes::Affine ? x[0] : x[1], &factor = x[0].kind == Lanes::Affine ? x[1] : x[0];
    if (factor.lo != factor.hi || factor.kind != Lanes::Uniform || std::abs(factor.lo) > (1 << 20))
      return std::nullopt;
    out.value = e.mul(scaled.value, factor.value);
    out.step = scaled.step * factor.lo;
  } else {
    return std::nullopt;
  }
  if (out.step == 0)
    out.kind = Lanes::Uniform;
  return out;
}

static bool isUnsigned(arith::CmpIPredicate p) { return p >= arith::CmpIPredicate::ult; }

static arith::CmpIPredicate toSigned(arith::CmpIPredicate p) {
  if (!isUnsigned(p))
    return p;
  return arith::CmpIPredicate(unsigned(p) - unsigned(arith::CmpIPredicate::ult) + unsigned(arith::CmpIPredicate::slt));
}

// base + step * lane <op> rhs  becomes  step * lane <op> rhs - base: a constant vector against a broadcast in 32 bits.
// The difference is clamped to where it can no longer change the answer.
std::optional<Lanes> LaneRegion::compareAffine(Operation &op, ArrayRef<Lanes> x) {
  auto compare = dyn_cast<arith::CmpIOp>(op);
  if (!compare || x[0].kind == Lanes::Vector || x[1].kind == Lanes::Vector)
    return std::nullopt;
  if (!getElementTypeOrSelf(compare.getLhs().getType()).isIndex())
    return std::nullopt;
  arith::CmpIPredicate predicate = compare.getPredicate();
  if (isUnsigned(predicate) && (x[0].lo < 0 || x[1].lo < 0))
    return std::nullopt;
  int64_t step = x[0].step - x[1].step, reach = std::abs(step) * e.lanes;
  if (reach >= (1 << 29))
    return std::nullopt;
  auto small = [](const Lanes &l) { return l.lo > INT64_MIN / 4 && l.hi < INT64_MAX / 4; };
  if (!small(x[0]) || !small(x[1]))
    return std::nullopt;
  Value rhs = e.sub(x[1].value, x[0].value);
  rhs = e.max(e.min(rhs, e.index(1 << 30)), e.index(-(1 << 30)));
  Value narrow = castTo(e, rhs, e.b.getI32Type());
  Lanes out;
  out.kind = Lanes::Vector;
  setBounds(out, op.getResult(0).getType());
  out.value = arith::CmpIOp::create(e.b, e.loc, toSigned(predicate), iota(e, e.b.getI32Type(), step),
                                    vector::BroadcastOp::create(e.b, e.loc, e.ivec, narrow));
  return out;
}

// Any elementwise op, on vectors. Index arithmetic runs in 32 bits where the bounds of operands and result allow it,
// and division of values that cannot be negative is unsigned, which vectorises.
Lanes LaneRegion::arithmetic(Operation &op, ArrayRef<Lanes> x) {
  Lanes out;
  out.kind = Lanes::Vector;
  bound(out, op, x);
  Type result = op.getResult(0).getType();
  bool wide = false;
  for (auto [operand, lanes] : llvm::zip(op.getOperands(), x))
    wide |= operand.getType().isIndex() && !fits32(lanes.lo, lanes.hi);
  wide |= result.isIndex() && !fits32(out.lo, out.hi);
  Type indexAs = wide ? e.b.getI64Type() : e.b.getI32Type();
  auto elementOf = [&](Type type) { return type.isIndex() ? indexAs : type; };

  Values operands;
  for (auto [operand, lanes] : llvm::zip(op.getOperands(), x)) {
    bool scalarCondition = isa<arith::SelectOp>(op) && operands.empty() && lanes.kind == Lanes::Uniform;
    operands.push_back(scalarCondition ? lanes.value : vectorOf(lanes, elementOf(operand.getType())));
  }
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    Type element = elementOf(result);
    auto from = dyn_cast<IntegerType>(op.getOperand(0).getType()); // index values are wide enough already
    bool widens = from && from.getWidth() < element.getIntOrFloatBitWidth();
    if (isa<arith::IndexCastUIOp>(op) && x[0].lo < 0 && widens)
      out.value = e.make<arith::ExtUIOp>(vectorType(element, e.lanes), operands[0]);
    else
      out.value = castTo(e, operands[0], element);
    return out;
  }
  StringRef name = op.getName().getStringRef();
  if (isa<arith::FloorDivSIOp, arith::DivSIOp>(op) && x[0].lo >= 0 && x[1].lo >= 1)
    name = arith::DivUIOp::getOperationName();
  if (isa<arith::RemSIOp>(op) && x[0].lo >= 0 && x[1].lo >= 1)
    name = arith::RemUIOp::getOperationName();
  OperationState state(e.loc, name);
  state.addOperands(operands);
  state.addTypes(vectorType(elementOf(result), e.lanes));
  state.addAttributes(op.getAttrs());
  state.propertiesAttr = op.getPropertiesAsAttribute();
  if (name != op.getName().getStringRef())
    state.propertiesAttr = nullptr, state.attributes.clear();
  out.value = e.b.create(state)->getResult(0);
  return out;
}

//===----------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------===//

Value LaneRegion::clamp(Value memref, int64_t dim, const Lanes &index) {
  Value last = e.sub(e.make<memref::DimOp>(memref, e.index(dim)), e.index(1));
  if (index.kind == Lanes::Uniform)
    return e.max(e.min(index.value, last), e.index(0));
  Type element = elementFor(e.b.getIndexType(), {&index});
  Value vector = vectorOf(index, element);
  Value lastVector = vector::BroadcastOp::create(e.b, e.loc, vector.getType(), castTo(e, last, element));
  Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(vector.getType()));
  return e.make<arith::MaxSIOp>(e.make<arith::MinSIOp>(vector, lastVector), zero);
}

// LLVM widens a vector of bf16 that lives across blocks, and narrows it again by calls: narrow floats are read as the
// integers that lie there.
static Value asIntegers(Emit &e, Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  if (!isa<Float16Type, BFloat16Type>(type.getElementType()))
    return memref;
  Type same = type.clone(e.b.getIntegerType(16)); // the same descriptor in LLVM
  return UnrealizedConversionCastOp::create(e.b, e.loc, same, memref).getResult(0);
}

Lanes LaneRegion::read(Operation &op, ArrayRef<Lanes> operands) {
  Value memref = asIntegers(e, operands[0].value);
  ArrayRef<Lanes> indices = operands.drop_front();
  bool uniform = llvm::all_of(indices, [](const Lanes &x) { return x.kind == Lanes::Uniform; });
  Lanes out = uniform ? readUniform(memref, indices) : gather(memref, indices);
  Type element = op.getResult(0).getType();
  if (memref != operands[0].value)
    out.value = e.make<arith::BitcastOp>(uniform ? element : vectorType(element, e.lanes), out.value);
  setBounds(out, element);
  return out;
}

Lanes LaneRegion::readUniform(Value memref, ArrayRef<Lanes> indices) {
  Values at;
  for (auto [dim, index] : llvm::enumerate(indices))
    at.push_back(clamp(memref, dim, index));
  Lanes out;
  out.value = e.load(memref, at);
  return out;
}

// The element offsets are summed per lane in 64 bits, then gathered from the flat memory of the tensor.
Lanes LaneRegion::gather(Value memref, ArrayRef<Lanes> indices) {
  auto meta = memref::ExtractStridedMetadataOp::create(e.b, e.loc, memref);
  Type i64 = e.b.getI64Type();
  Value base = meta.getOffset(), offsets;
  for (auto [dim, index] : llvm::enumerate(indices)) {
    Value at = clamp(memref, dim, index), stride = meta.getStrides()[dim];
    if (index.kind == Lanes::Uniform) {
      base = e.add(base, e.mul(at, stride));
      continue;
    }
    Value wide = castTo(e, at, i64);
    Value factor = vector::BroadcastOp::create(e.b, e.loc, vectorType(i64, e.lanes), castTo(e, stride, i64));
    Value term = arith::MulIOp::create(e.b, e.loc, wide, factor);
    offsets = offsets ? Value(arith::AddIOp::create(e.b, e.loc, offsets, term)) : term;
  }
  auto element = cast<MemRefType>(memref.getType()).getElementType();
  auto flatType = MemRefType::get({ShapedType::kDynamic}, element);
  Value flat = memref::ReinterpretCastOp::create(e.b, e.loc, flatType, meta.getBaseBuffer(), e.b.getIndexAttr(0),
                                                 ArrayRef<OpFoldResult>{e.index(INT32_MAX)},
                                                 ArrayRef<OpFoldResult>{e.b.getIndexAttr(1)});
  VectorType type = vectorType(element, e.lanes);
  Value all = arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(e.mask, true));
  Value pass = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(type));
  Lanes out;
  out.kind = Lanes::Vector;
  out.value = vector::GatherOp::create(e.b, e.loc, type, flat, ValueRange{base}, offsets, all, pass);
  return out;
}

} // namespace attn::cpu
