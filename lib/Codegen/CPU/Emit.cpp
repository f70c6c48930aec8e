//===- Emit.cpp - Terse building of vector code ---------------------------===//
#include "Emit.h"

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

// Minimax coefficients of 2^f on [0, 1), relative error 7.5e-8.
static constexpr float kExp2[] = {0.999999925f,  0.693153072f,   0.240153623f,
                                  0.0558262997f, 0.00898936203f, 0.0018775676f};

static Value polynomial(Emit &e, Value f) {
  Value y = e.splat(kExp2[5]);
  for (int i = 4; i >= 0; --i)
    y = e.fma(y, f, e.splat(kExp2[i]));
  return y;
}

// vreduceps takes x - floor(x), vscalefps multiplies by 2^floor(x); both take infinities and NaN in their stride.
static Value exp2AVX512(Emit &e, Value x) {
  OpBuilder &b = e.b;
  auto constant = [&](int64_t v, unsigned bits) -> Value {
    return arith::ConstantIntOp::create(b, e.loc, b.getIntegerType(bits), v);
  };
  Value zero = e.splat(0), all = constant(-1, 16), down = constant(1, 32), current = constant(4, 32);
  auto call = [&](StringRef name, ValueRange args) {
    return LLVM::CallIntrinsicOp::create(b, e.loc, e.vec, b.getStringAttr(name), args).getResult(0);
  };
  Value f = call("llvm.x86.avx512.mask.reduce.ps.512", {x, down, zero, all, current});
  return call("llvm.x86.avx512.mask.scalef.ps.512", {polynomial(e, f), x, zero, all, current});
}

// The exponent is added as an integer; x is clamped so that the sum stays a finite, normal number.
static Value exp2Portable(Emit &e, Value x) {
  OpBuilder &b = e.b;
  x = e.atMost(e.atLeast(x, e.splat(-126)), e.splat(127.5f));
  Value floor = math::FloorOp::create(b, e.loc, x);
  Value y = polynomial(e, e.subf(x, floor));
  Value n = arith::FPToSIOp::create(b, e.loc, e.ivec, floor);
  Value shifted = arith::ShLIOp::create(b, e.loc, n, e.splatInt(23));
  Value bits = arith::AddIOp::create(b, e.loc, arith::BitcastOp::create(b, e.loc, e.ivec, y), shifted);
  return arith::BitcastOp::create(b, e.loc, e.vec, bits);
}

Value Emit::exp2(Value x, ExpForm form) {
  return form == ExpForm::AVX512 ? exp2AVX512(*this, x) : exp2Portable(*this, x);
}

} // namespace attn::cpu
