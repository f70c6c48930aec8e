//===- LowerCPUMath.cpp - Math functions by polynomials -------------------===//
#include "attn/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_LOWERCPUMATH
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;

namespace {

// One instruction, or a few that LLVM writes inline, on every target.
bool isInline(Operation *op) {
  return isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::SqrtOp, math::CopySignOp,
             math::RoundEvenOp, math::TruncOp, math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp>(
      op);
}

struct LowerCPUMath : impl::LowerCPUMathBase<LowerCPUMath> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateCeilFloorDivExpandOpsPatterns(patterns); // which LLVM does not know
    MathPolynomialApproximationOptions options;
    populateMathPolynomialApproximationPatterns(patterns, options);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) || isInline(op))
        return;
      op->emitError()
          << "'" << op->getName()
          << "' has no inline form on a CPU; a score region may use math.exp, exp2, expm1, log, log2, log1p, "
             "tanh, sin, cos, erf, sqrt, absf, floor, ceil and fma";
      signalPassFailure();
    });
  }
};

} // namespace
} // namespace attn
