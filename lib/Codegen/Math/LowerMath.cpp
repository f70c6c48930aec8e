//===- LowerMath.cpp - Math functions without a math library --------------===//
#include "LowerMath.h"
#include "Elementwise.h"
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

namespace {

/// Sine and cosine from x less a multiple of pi/2, by polynomials on [-pi/4, pi/4] (Cephes). Beyond 2^22 quarters of a
/// turn, where the neighbours of an f32 are a radian apart, they are some number in [-1, 1]; of infinities NaN.
template <typename OpT>
struct TurnToPolynomial : OpRewritePattern<OpT> {
  explicit TurnToPolynomial(MLIRContext *context) : OpRewritePattern<OpT>(context, /*benefit=*/10) {}

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    Type f32 = rewriter.getF32Type();
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    auto number = [&](double v) { return e.number(v, f32); };
    Value x = op.getOperand(),
          magic = number(0x1.8p23); // a sum with it is rounded, and its low bits are a whole number
    Value rounded = e.make<math::FmaOp>(x, number(0.636619772367581343), magic), quadrant = e.bits(rounded);
    Value turns = e.make<arith::SubFOp>(magic, rounded), rest = x;
    for (double part : {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50}) // of pi/2
      rest = e.make<math::FmaOp>(turns, number(part), rest);
    rest = e.select(e.cmpf(arith::CmpFPredicate::OGT, e.make<math::AbsFOp>(rest), number(1)), number(0), rest);
    Value square = e.make<arith::MulFOp>(rest, rest);
    auto polynomial = [&](ArrayRef<double> coefficients) {
      Value y = number(coefficients.front());
      for (double c : coefficients.drop_front())
        y = e.make<math::FmaOp>(y, square, number(c));
      return y;
    };
    Value cube = e.make<arith::MulFOp>(square, rest);
    Value sine = e.make<math::FmaOp>(polynomial({-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1}), cube, rest);
    Value cosine = polynomial({2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2, -0.5, 1});
    if (std::is_same_v<OpT, math::CosOp>)
      quadrant = e.addi(quadrant, 1); // cos(x) = sin(x + pi/2)
    Value odd = e.cmpi(arith::CmpIPredicate::ne, e.andi(quadrant, 1), 0);
    Value sign = e.shl(e.andi(quadrant, 2), 30);
    Value turned = e.make<arith::XOrIOp>(e.bits(e.select(odd, cosine, sine)), sign);
    rewriter.replaceOp(op, e.fromBits(turned, f32));
    return success();
  }
};

} // namespace

LogicalResult lowerMath(Operation *root, RewritePatternSet own, ArrayRef<StringRef> instructions, StringRef target) {
  arith::populateCeilFloorDivExpandOpsPatterns(own); // which LLVM does not know
  own.add<TurnToPolynomial<math::SinOp>, TurnToPolynomial<math::CosOp>>(root->getContext());
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
