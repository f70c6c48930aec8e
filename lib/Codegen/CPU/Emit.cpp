//===- Emit.cpp - Terse building of vector code ---------------------------===//
#include "Emit.h"
#include <cmath>

using namespace mlir;

namespace attn::cpu {

Values Emit::loop(Value lo, Value hi, int64_t step, ValueRange init,
                  llvm::function_ref<Values(Value, ValueRange)> body) {
  auto op = scf::ForOp::create(b, loc, lo, hi, index(step), init);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  Values carried = body(op.getInductionVar(), op.getRegionIterArgs());
  if (!init.empty())
    scf::YieldOp::create(b, loc, carried);
  return Values(op.getResults());
}

void Emit::loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(lo, hi, step, {}, [&](Value iv, ValueRange) {
    body(iv);
    return Values();
  });
}

void Emit::ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise) {
  auto op = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&op.getThenRegion().front());
  then();
  if (!otherwise)
    return;
  b.setInsertionPointToStart(&op.getElseRegion().front());
  otherwise();
}

/// `type`, or a vector of it where x is one.
static Type shapedAs(Value x, Type type) {
  auto vector = dyn_cast<VectorType>(x.getType());
  return vector ? Type(VectorType::get(vector.getShape(), type)) : type;
}

// A bf16 is the upper half of an f32: no vector of bf16 is left for LLVM to convert element by element.
Value Emit::widen(Value x) {
  Type element = getElementTypeOrSelf(x.getType());
  if (element.isF32())
    return x;
  if (!element.isBF16())
    return arith::ExtFOp::create(b, loc, shapedAs(x, b.getF32Type()), x);
  Value bits = arith::BitcastOp::create(b, loc, shapedAs(x, b.getI16Type()), x);
  Type wide = shapedAs(x, b.getI32Type());
  Value half = arith::ExtUIOp::create(b, loc, wide, bits);
  Value sixteen = arith::ConstantOp::create(
      b, loc,
      isa<VectorType>(wide) ? TypedAttr(DenseElementsAttr::get(cast<VectorType>(wide), 16)) : b.getI32IntegerAttr(16));
  return arith::BitcastOp::create(b, loc, shapedAs(x, b.getF32Type()), arith::ShLIOp::create(b, loc, half, sixteen));
}

Value Emit::narrow(Value x, Value memref) {
  Type element = cast<MemRefType>(memref.getType()).getElementType();
  return element.isF32() ? x : arith::TruncFOp::create(b, loc, shapedAs(x, element), x).getResult();
}

// Minimax coefficients of 2^f on [0, 1) and on [-1/2, 1/2] among polynomials that are 1 at 0, so that powers of whole
// numbers are exact; relative errors 8.3e-8 and 9.2e-8.
static constexpr float kUpwards[] = {1, 0.6931513f, 0.24016444f, 0.055799913f, 0.009017031f, 0.00186713f};
static constexpr float kCentred[] = {1, 0.693147f, 0.24022242f, 0.055507336f, 0.009671513f, 0.0013264727f};

/// The polynomial of f = 4 x.
static Value polynomial(Emit &e, ArrayRef<float> coefficients, Value x) {
  Value y;
  for (int i = int(coefficients.size()) - 1; i >= 0; --i) {
    Value c = e.splat(std::ldexp(coefficients[i], 2 * i));
    y = y ? e.fma(y, x, c) : c;
  }
  return y;
}

// vreduceps takes x modulo 1/4, vscalefps multiplies by a power of two rounded down. Both take infinities and NaN in
// their stride. The sum is rounded down too: it must not reach the next whole number before x does.
static Value exp2AVX512(Emit &e, Value x, const Reference &reference) {
  OpBuilder &b = e.b;
  auto constant = [&](int64_t v, unsigned bits) -> Value {
    return arith::ConstantIntOp::create(b, e.loc, b.getIntegerType(bits), v);
  };
  Value zero = e.splat(0), all = constant(-1, 16), quarterDown = constant(0x21, 32), down = constant(9, 32),
        current = constant(4, 32);
  auto call = [&](StringRef name, ValueRange args) {
    return LLVM::CallIntrinsicOp::create(b, e.loc, e.vec, b.getStringAttr(name), args).getResult(0);
  };
  Value f = call("llvm.x86.avx512.mask.reduce.ps.512", {x, quarterDown, zero, all, current});
  Value exponent = call("llvm.x86.avx512.vfmadd.ps.512", {x, e.splat(4), reference.offset, down});
  return call("llvm.x86.avx512.mask.scalef.ps.512", {polynomial(e, kUpwards, f), exponent, zero, all, current});
}

/// Sums with it are rounded to whole numbers, and their low bits are the biased exponent of a float.
static constexpr float kRound = 0x1.8p23f + 127;

// One FMA takes the distance from the reference and rounds it. x is clamped to where the exponent stays in its bits.
static Value exp2Portable(Emit &e, Value x, const Reference &reference) {
  OpBuilder &b = e.b;
  x = e.atMost(e.atLeast(x, reference.least), reference.most);
  Value rounded = e.fma(x, e.splat(4), reference.offset), whole = e.subf(rounded, reference.offset);
  Value y = polynomial(e, kCentred, e.fma(whole, e.splat(-0.25f), x));
  Value bits = arith::ShLIOp::create(b, e.loc, arith::BitcastOp::create(b, e.loc, e.ivec, rounded), e.splatInt(23));
  return e.mulf(y, arith::BitcastOp::create(b, e.loc, e.vec, bits));
}

Reference Emit::reference(Value minusM, ExpForm form) {
  if (form == ExpForm::AVX512) { // infinite, it is made NaN: no weight gets lost in silence
    Value offset = mulf(minusM, splat(4));
    return {fma(offset, splat(0), offset), {}, {}};
  }
  Value near = cmpf(arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, minusM), splat(0x1p19f));
  return {select(near, fma(minusM, splat(4), splat(kRound)), splat(NAN)), subf(splat(-31.5f), minusM),
          subf(splat(31.75f), minusM)};
}

Value Emit::exp2(Value x, const Reference &reference, ExpForm form) {
  return form == ExpForm::AVX512 ? exp2AVX512(*this, x, reference) : exp2Portable(*this, x, reference);
}

Value Emit::roundUp(Value x) {
  Value whole = subf(addf(x, splat(0x1.8p21f)), splat(0x1.8p21f)), quarter = addf(whole, splat(0.25f));
  Value small = cmpf(arith::CmpFPredicate::OLT, math::AbsFOp::create(b, loc, x), splat(0x1p19f));
  return select(small, select(cmpf(arith::CmpFPredicate::OLT, whole, x), quarter, whole), x);
}

} // namespace attn::cpu
