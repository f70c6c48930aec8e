//===- LowerGPUMath.cpp - Math functions without a math library -----------===//
#include "attn/Codegen/GPU/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_LOWERGPUMATH
#include "attn/Codegen/GPU/Passes.h.inc"

using namespace mlir;

namespace {

// One instruction, or a few that LLVM writes inline.
bool isInline(Operation *op) {
  return isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::SqrtOp, math::CopySignOp,
             math::RoundEvenOp, math::TruncOp, math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::Exp2Op>(op);
}

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
    arith::populateCeilFloorDivExpandOpsPatterns(patterns); // which LLVM does not know
    patterns.add<ExpToExp2>(&getContext(), /*benefit=*/10);
    populateMathPolynomialApproximationPatterns(patterns, MathPolynomialApproximationOptions());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) || isInline(op))
        return;
      op->emitError()
          << "'" << op->getName()
          << "' has no inline form on a GPU; a score region may use math.exp, exp2, expm1, log, log2, log1p, "
             "tanh, sin, cos, erf, sqrt, absf, floor, ceil and fma";
      signalPassFailure();
    });
  }
};

} // namespace
} // namespace attn
