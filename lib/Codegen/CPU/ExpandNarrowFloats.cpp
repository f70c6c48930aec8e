//===- ExpandNarrowFloats.cpp - f16 and bf16 by f32 arithmetic ------------===//
#include "ExpandFloats.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attn::cpu {
namespace {

using IntIs = arith::CmpIPredicate;

bool isNarrow(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isF16() || element.isBF16();
}

Value convert(Elementwise &e, Value x, Type element) {
  if (Elementwise::width(x) < element.getIntOrFloatBitWidth())
    return e.make<arith::ExtFOp>(e.of(element), x);
  return e.make<arith::TruncFOp>(e.of(element), x);
}

/// Sums, products, quotients and roots of narrow floats are in f32, rounded, what they are when rounded once. Integers
/// of more than 24 bits pass through f64 for the same reason.
struct ComputeInF32 : RewritePattern {
  ComputeInF32(MLIRContext *context) : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/20, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    bool isArithmetic = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
    if (!isArithmetic ||
        isa<arith::ConstantOp, arith::BitcastOp, arith::ExtFOp, arith::TruncFOp, arith::SelectOp>(op) ||
        !(llvm::any_of(op->getOperandTypes(), isNarrow) || llvm::any_of(op->getResultTypes(), isNarrow)))
      return failure();
    Elementwise e(rewriter, op->getLoc(), op->getResult(0).getType());
    Type wide = rewriter.getF32Type();
    if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && Elementwise::width(op->getOperand(0)) > 24)
      wide = rewriter.getF64Type();
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(isNarrow(operand.getType()) ? convert(e, operand, wide) : operand);
    for (Type type : op->getResultTypes())
      state.types.push_back(isNarrow(type) ? e.of(wide) : type);
    state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
    state.propertiesAttr = op->getPropertiesAsAttribute();
    SmallVector<Value> results;
    for (auto [made, type] : llvm::zip_equal(rewriter.create(state)->getResults(), op->getResultTypes()))
      results.push_back(isNarrow(type) ? convert(e, made, getElementTypeOrSelf(type)) : made);
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct NarrowFma : OpRewritePattern<math::FmaOp> {
  NarrowFma(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/30) {}

  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    if (!isNarrow(op.getType()))
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, fmaByDouble(e, op.getA(), op.getB(), op.getC()));
    return success();
  }
};

/// From f64 by way of f32, where the last bit tells of what was lost.
struct NarrowFromF64 : OpRewritePattern<arith::TruncFOp> {
  NarrowFromF64(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/30) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value x = op.getIn();
    if (!isNarrow(op.getType()) || !getElementTypeOrSelf(x.getType()).isF64())
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    Value single = convert(e, x, rewriter.getF32Type());
    Value rest = e.make<arith::SubFOp>(x, convert(e, single, rewriter.getF64Type()));
    rewriter.replaceOp(op, convert(e, roundToOdd(e, single, rest), getElementTypeOrSelf(op.getType())));
    return success();
  }
};

struct ExtendToF64 : OpRewritePattern<arith::ExtFOp> {
  ExtendToF64(MLIRContext *context) : OpRewritePattern(context, /*benefit=*/30) {}

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!isNarrow(op.getIn().getType()) || !getElementTypeOrSelf(op.getType()).isF64())
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, convert(e, convert(e, op.getIn(), rewriter.getF32Type()), rewriter.getF64Type()));
    return success();
  }
};

/// Where the last bit of 0.5 is that of the least f16, adding it rounds to a multiple.
constexpr int32_t kHalf = 0x3f000000;

struct TruncateToF16 : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType()), f32 = rewriter.getF32Type();
    if (!element.isF16() || getElementTypeOrSelf(op.getIn().getType()) != f32)
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    Value bits = e.bits(op.getIn()), size = e.andi(bits, INT32_MAX), sign = e.andi(e.shr(bits, 16), 0x8000);
    Value odd = e.andi(e.shr(size, 13), 1);
    Value normal = e.shr(e.make<arith::AddIOp>(e.addi(size, 0xfff - (112 << 23)), odd), 13);
    Value shifted = e.make<arith::AddFOp>(e.fromBits(size, f32), e.fromBits(e.whole(kHalf, 32), f32));
    Value h = e.select(e.cmpi(IntIs::slt, size, 113 << 23), e.addi(e.bits(shifted), -kHalf), normal);
    h = e.select(e.cmpi(IntIs::sge, size, 0x477ff000), e.whole(0x7c00, 32), h); // 65520 and more
    h = e.select(e.cmpi(IntIs::sgt, size, 255 << 23), e.whole(0x7e00, 32), h);  // NaN
    h = e.make<arith::TruncIOp>(e.integer(16), e.make<arith::OrIOp>(h, sign));
    rewriter.replaceOp(op, e.fromBits(h, element));
    return success();
  }
};

struct ExtendFromF16 : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    Type f32 = rewriter.getF32Type();
    if (!getElementTypeOrSelf(op.getIn().getType()).isF16() || getElementTypeOrSelf(op.getType()) != f32)
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    Value bits = e.make<arith::ExtUIOp>(e.integer(32), e.bits(op.getIn())), size = e.andi(bits, INT16_MAX);
    Value denormal = e.make<arith::SubFOp>(e.fromBits(e.addi(size, kHalf), f32), e.fromBits(e.whole(kHalf, 32), f32));
    Value normal = e.addi(e.shl(size, 13), 112 << 23);
    Value special = e.addi(normal, 112 << 23); // infinities and NaN have the largest exponent again
    Value x = e.select(e.cmpi(IntIs::slt, size, 0x400), e.bits(denormal), normal);
    x = e.select(e.cmpi(IntIs::sge, size, 0x7c00), special, x);
    x = e.make<arith::OrIOp>(x, e.shl(e.andi(bits, 0x8000), 16));
    rewriter.replaceOp(op, e.fromBits(x, f32));
    return success();
  }
};

} // namespace

void populateNarrowFloatPatterns(RewritePatternSet &patterns, bool expandF16) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ComputeInF32, NarrowFma, NarrowFromF64, ExtendToF64>(context);
  arith::populateExpandBFloat16Patterns(patterns);
  if (expandF16)
    patterns.add<TruncateToF16, ExtendFromF16>(context);
}

} // namespace attn::cpu
