//===- LowerCPUMath.cpp - Math functions without a library ---------------===//
#include "../Math/LowerMath.h"
#include "ExpandFloats.h"
#include "attn/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace attn {
#define GEN_PASS_DEF_LOWERCPUMATH
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;

namespace {

/// 2^x = 2^n e^(f ln 2) with n the integer nearest to x and f the rest, which is exact; 2^n in two halves, so that the
/// result may be subnormal. Upstream knows no polynomial for it.
struct Exp2ToExp : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), f32 = rewriter.getF32Type();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    cpu::Elementwise e(rewriter, op.getLoc(), type);
    Value x = e.make<arith::MaximumFOp>(op.getOperand(), e.number(-160, f32));
    x = e.make<arith::MinimumFOp>(x, e.number(130, f32));
    Value nearest = e.make<math::RoundEvenOp>(x), rest = e.make<arith::SubFOp>(x, nearest);
    Value power = e.make<math::ExpOp>(e.make<arith::MulFOp>(rest, e.number(0.693147180559945309f, f32)));
    Value n = e.make<arith::FPToSIOp>(e.integer(32), nearest), half = e.make<arith::ShRSIOp>(n, e.whole(1, 32));
    for (Value part : {half, e.make<arith::SubIOp>(n, half)})
      power = e.make<arith::MulFOp>(power, e.fromBits(e.shl(e.addi(part, 127), 23), f32));
    rewriter.replaceOp(op, power);
    return success();
  }
};

struct LowerCPUMath : impl::LowerCPUMathBase<LowerCPUMath> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<Exp2ToExp>(&getContext());
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
