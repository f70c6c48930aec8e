//===- LowerCPUMath.cpp - Math functions by polynomials -------------------===//
#include "../Math/LowerMath.h"
#include "attn/Codegen/CPU/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

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
    Type type = op.getType(), integer = rewriter.getI32Type();
    if (!getElementTypeOrSelf(type).isF32())
      return failure();
    if (auto vector = dyn_cast<VectorType>(type))
      integer = vector.clone(integer);
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto constant = [&](TypedAttr value, Type type) -> Value {
      if (auto vector = dyn_cast<VectorType>(type))
        value = SplatElementsAttr::get(vector, Attribute(value));
      return arith::ConstantOp::create(b, value);
    };
    auto number = [&](float value) { return constant(b.getF32FloatAttr(value), type); };
    auto whole = [&](int32_t value) { return constant(b.getI32IntegerAttr(value), integer); };
    Value x = arith::MinimumFOp::create(b, arith::MaximumFOp::create(b, op.getOperand(), number(-160)), number(130));
    Value nearest = math::RoundEvenOp::create(b, x), rest = arith::SubFOp::create(b, x, nearest);
    Value power = math::ExpOp::create(b, arith::MulFOp::create(b, rest, number(0.693147180559945309f)));
    Value n = arith::FPToSIOp::create(b, integer, nearest), half = arith::ShRSIOp::create(b, n, whole(1));
    for (Value part : {half, arith::SubIOp::create(b, n, half).getResult()}) {
      Value bits = arith::ShLIOp::create(b, arith::AddIOp::create(b, part, whole(127)), whole(23));
      power = arith::MulFOp::create(b, power, arith::BitcastOp::create(b, type, bits));
    }
    rewriter.replaceOp(op, power);
    return success();
  }
};

struct LowerCPUMath : impl::LowerCPUMathBase<LowerCPUMath> {
  using Base::Base;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns); // a call where the CPU has no instruction
    patterns.add<Exp2ToExp>(&getContext());
    if (failed(lowerMath(getOperation(), std::move(patterns), {}, "a CPU")))
      signalPassFailure();
  }
};

} // namespace
} // namespace attn
