//===- LowerGPUMath.cpp - Math functions without a math library -----------===//
#include "../Math/LowerMath.h"
#include "attn/Codegen/GPU/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace attn {
#define GEN_PASS_DEF_LOWERGPUMATH
#include "attn/Codegen/GPU/Passes.h.inc"

using namespace mlir;

namespace {

/// ex2.approx is off by 2 units in the last place at most.
struct ExpToExp2 : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return failure();
    Value factor = arith::ConstantOp::create(rewriter, op.getLoc(), rewriter.getF32FloatAttr(1.44269504088896341f));
    Value exponent = arith::MulFOp::create(rewriter, op.getLoc(), op.getOperand(), factor);
    rewriter.replaceOpWithNewOp<math::Exp2Op>(op, exponent);
    return success();
  }
};

struct LowerGPUMath : impl::LowerGPUMathBase<LowerGPUMath> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpToExp2>(&getContext(), /*benefit=*/10);
    if (failed(lowerMath(getOperation(), std::move(patterns), {math::Exp2Op::getOperationName()}, "a GPU")))
      signalPassFailure();
  }
};

} // namespace
} // namespace attn
