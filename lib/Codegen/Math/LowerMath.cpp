//===- LowerMath.cpp - Math functions without a math library --------------===//
#include "LowerMath.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attn {

// One instruction, or a few that LLVM writes inline, on every target.
static bool isInline(Operation *op) {
  return isa<math::FmaOp, math::AbsFOp, math::AbsIOp, math::FloorOp, math::CeilOp, math::SqrtOp, math::CopySignOp,
             math::RoundEvenOp, math::TruncOp, math::CtPopOp, math::CountLeadingZerosOp, math::CountTrailingZerosOp>(
      op);
}

LogicalResult lowerMath(Operation *root, RewritePatternSet own, ArrayRef<StringRef> instructions, StringRef target) {
  arith::populateCeilFloorDivExpandOpsPatterns(own); // which LLVM does not know
  populateMathPolynomialApproximationPatterns(own, MathPolynomialApproximationOptions());
  if (failed(applyPatternsGreedily(root, std::move(own))))
    return failure();
  bool all = true;
  root->walk([&](Operation *op) {
    bool instruction = llvm::is_contained(instructions, op->getName().getStringRef());
    if (!isa<math::MathDialect>(op->getDialect()) || isInline(op) || instruction)
      return;
    op->emitError() << "'" << op->getName() << "' has no inline form on " << target
                    << "; a score region may use math.exp, exp2, expm1, log, log2, log1p, tanh, sin, cos, erf, sqrt, "
                       "absf, floor, ceil and fma";
    all = false;
  });
  return success(all);
}

} // namespace attn
