//===- LowerCPUMath.cpp - Math functions without a library ---------------===//
#include "../Math/LowerMath.h"
#include "ExpandFloats.h"
#include "attn/Codegen/CPU/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/bit.h"

namespace attn {
#define GEN_PASS_DEF_LOWERCPUMATH
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;

namespace {

/// e^x and 2^x as 2^n 2^f, n the integer nearest to the power of two and f the rest, at most 1/2: a minimax polynomial,
/// relative error 9.2e-8. Of a number beyond all powers the nearest one that has none is taken.
template <typename OpT>
struct ExpToPolynomial : OpRewritePattern<OpT> {
  ExpToPolynomial(MLIRContext *context, bool avx512) : OpRewritePattern<OpT>(context, /*benefit=*/10), avx512(avx512) {}

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), f32 = rewriter.getF32Type();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    Elementwise e(rewriter, op.getLoc(), type);
    auto number = [&](double v) { return e.number(v, f32); };
    constexpr bool natural = std::is_same_v<OpT, math::ExpOp>;
    // Comparisons that a NaN fails, so that it is what remains.
    Value x = op.getOperand(), least = number(natural ? -104 : -151), most = number(natural ? 89 : 129);
    x = e.select(e.cmpf(arith::CmpFPredicate::OGT, least, x), least, x);
    x = e.select(e.cmpf(arith::CmpFPredicate::OLT, most, x), most, x);
    Value magic = number(kMagic), rounded, rest;
    if (natural) {
      Value high = number(0x1.715476p+0), low = number(0x1.4ae0cp-26);
      rounded = e.make<math::FmaOp>(x, high, magic);
      Value whole = e.make<arith::SubFOp>(rounded, magic);
      rest = e.make<math::FmaOp>(x, low, e.make<math::FmaOp>(x, high, e.make<arith::NegFOp>(whole)));
    } else {
      rounded = e.make<arith::AddFOp>(x, magic);
      rest = e.make<arith::SubFOp>(x, e.make<arith::SubFOp>(rounded, magic));
    }
    constexpr double coefficients[] = {0.0013264727, 0.009671513, 0.055507336, 0.24022242, 0.693147, 1};
    Value power = number(coefficients[0]);
    for (double c : llvm::drop_begin(coefficients))
      power = e.make<math::FmaOp>(power, rest, number(c));
    rewriter.replaceOp(op, scale(e, power, rounded));
    return success();
  }

private:
  static constexpr float kMagic = 0x1.8p23f; // a sum with it is rounded to a whole number, which its low bits are

  /// `power` times 2^n.
  Value scale(Elementwise &e, Value power, Value rounded) const {
    Type f32 = e.b.getF32Type();
    if (avx512 && e.shape && e.shape.getNumElements() == 16) {
      Value n = e.make<arith::SubFOp>(rounded, e.number(kMagic, f32)), zero = e.number(0, f32);
      auto constant = [&](int64_t v, unsigned bits) -> Value {
        return arith::ConstantIntOp::create(e.b, e.loc, e.b.getIntegerType(bits), v);
      };
      return LLVM::CallIntrinsicOp::create(e.b, e.loc, e.shape, e.b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
                                           ValueRange{power, n, zero, constant(-1, 16), constant(4, 32)})
          .getResult(0);
    }
    // In two halves: the result may be subnormal, or almost infinite.
    Value n = e.addi(e.bits(rounded), -int64_t(llvm::bit_cast<uint32_t>(kMagic)));
    Value half = e.make<arith::ShRSIOp>(n, e.whole(1, 32));
    for (Value part : {half, e.make<arith::SubIOp>(n, half)})
      power = e.make<arith::MulFOp>(power, e.fromBits(e.shl(e.addi(part, 127), 23), f32));
    return power;
  }

  bool avx512;
};

struct LowerCPUMath : impl::LowerCPUMathBase<LowerCPUMath> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpToPolynomial<math::ExpOp>, ExpToPolynomial<math::Exp2Op>>(&getContext(), avx512Exp);
    cpu::populateNarrowFloatPatterns(patterns, /*expandF16=*/!f16Conversions);
    cpu::populateRemainderPatterns(patterns);
    if (!rounding)
      cpu::populateRoundingPatterns(patterns);
    if (!fma)
      cpu::populateFmaPatterns(patterns);
    if (failed(lowerMath(getOperation(), std::move(patterns), {}, "a CPU")))
      signalPassFailure();
  }
};

} // namespace
} // namespace attn
