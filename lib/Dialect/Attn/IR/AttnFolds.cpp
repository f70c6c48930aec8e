//===- AttnFolds.cpp - Simpler forms of the same mask -----------------------===//
//
// What arith's own folders do (x and x, double negation, constants) is left to them. Here named predicates become
// simpler named predicates, so that later readings meet fewer forms.
//
//===----------------------------------------------------------------------===//

#include "AttnEmptyMask.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attn;

Operation *AttnDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

//===----------------------------------------------------------------------===//
// One predicate
//===----------------------------------------------------------------------===//

static OpFoldResult alwaysTrue(Operation *op, bool condition) {
  return condition ? OpFoldResult(BoolAttr::get(op->getContext(), true)) : OpFoldResult();
}

OpFoldResult CausalOp::fold(FoldAdaptor) { return alwaysTrue(*this, getI() == getJ()); }

OpFoldResult StrideOp::fold(FoldAdaptor) { return alwaysTrue(*this, getSize() == 1 || getI() == getJ()); }

OpFoldResult LastColumnsOp::fold(FoldAdaptor) { return alwaysTrue(*this, getCount() == getBlock()); }

/// Attributes of a window; a missing bound is left out.
static WindowOp createWindow(OpBuilder &builder, Location loc, const Band &band) {
  IntegerAttr left = band.low ? builder.getI64IntegerAttr(-*band.low) : IntegerAttr();
  IntegerAttr right = band.high ? builder.getI64IntegerAttr(*band.high) : IntegerAttr();
  return WindowOp::create(builder, loc, builder.getI1Type(), band.i, band.j, left, right);
}

/// The key of a block of one is the query's own.
LogicalResult SameBlockOp::canonicalize(SameBlockOp op, PatternRewriter &rewriter) {
  if (op.getSize() != 1)
    return failure();
  rewriter.replaceOp(op, createWindow(rewriter, op.getLoc(), {op.getI(), op.getJ(), 0, 0}));
  return success();
}

LogicalResult SameRowOp::canonicalize(SameRowOp op, PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<SameBlockOp>(op, op.getType(), op.getI(), op.getJ(), op.getWidthAttr());
  return success();
}

LogicalResult SameColumnOp::canonicalize(SameColumnOp op, PatternRewriter &rewriter) {
  rewriter.replaceOpWithNewOp<StrideOp>(op, op.getType(), op.getI(), op.getJ(), op.getWidthAttr());
  return success();
}

LogicalResult ChunkLookbackOp::canonicalize(ChunkLookbackOp op, PatternRewriter &rewriter) {
  if (op.getBefore() != 0)
    return failure();
  rewriter.replaceOpWithNewOp<SameBlockOp>(op, op.getType(), op.getI(), op.getJ(), op.getSizeAttr());
  return success();
}

LogicalResult LocalBlocksOp::canonicalize(LocalBlocksOp op, PatternRewriter &rewriter) {
  if (op.getBefore() != 0 || op.getAfter() != 0)
    return failure();
  rewriter.replaceOpWithNewOp<SameBlockOp>(op, op.getType(), op.getI(), op.getJ(), op.getSizeAttr());
  return success();
}

LogicalResult DilatedWindowOp::canonicalize(DilatedWindowOp op, PatternRewriter &rewriter) {
  if (op.getDilation() != 1)
    return failure();
  Band band{op.getI(), op.getJ(), -static_cast<int64_t>(op.getLeft()), static_cast<int64_t>(op.getRight())};
  rewriter.replaceOp(op, createWindow(rewriter, op.getLoc(), band));
  return success();
}

//===----------------------------------------------------------------------===//
// Windows together
//===----------------------------------------------------------------------===//

namespace {
/// The tighter bound of two, on either side.
Band intersect(const Band &a, const Band &b) {
  Band both = a;
  if (b.low && (!a.low || *b.low > *a.low))
    both.low = b.low;
  if (b.high && (!a.high || *b.high < *a.high))
    both.high = b.high;
  return both;
}

bool isSamePair(const std::optional<Band> &a, const std::optional<Band> &b) {
  return a && b && a->i == b->i && a->j == b->j;
}

bool isEqual(const Band &a, const Band &b) { return a.low == b.low && a.high == b.high; }

/// causal and window(left = 255)  ==>  window(left = 255, right = 0), also where a third condition stands between them.
struct IntersectWindows : OpRewritePattern<arith::AndIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::AndIOp op, PatternRewriter &rewriter) const override {
    std::optional<Band> right = readBand(op.getRhs()), left = readBand(op.getLhs());
    if (isSamePair(left, right)) {
      rewriter.replaceOp(op, createWindow(rewriter, op.getLoc(), intersect(*left, *right)));
      return success();
    }
    auto chain = op.getLhs().getDefiningOp<arith::AndIOp>();
    if (!chain || !right)
      return failure();
    for (int n : {0, 1}) {
      std::optional<Band> inner = readBand(chain->getOperand(n));
      if (!isSamePair(inner, right))
        continue;
      Value window = createWindow(rewriter, op.getLoc(), intersect(*inner, *right));
      rewriter.replaceOpWithNewOp<arith::AndIOp>(op, chain->getOperand(1 - n), window);
      return success();
    }
    return failure();
  }
};

/// window(left = 3, right = 3) or window(left = 9, right = 3)  ==>  the wider of two nested windows.
struct WiderWindow : OpRewritePattern<arith::OrIOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::OrIOp op, PatternRewriter &rewriter) const override {
    std::optional<Band> left = readBand(op.getLhs()), right = readBand(op.getRhs());
    if (!isSamePair(left, right))
      return failure();
    Band both = intersect(*left, *right);
    if (!isEqual(both, *left) && !isEqual(both, *right))
      return failure();
    rewriter.replaceOp(op, isEqual(both, *left) ? op.getRhs() : op.getLhs());
    return success();
  }
};
} // namespace

void AttnDialect::getCanonicalizationPatterns(RewritePatternSet &patterns) const {
  patterns.add<IntersectWindows, WiderWindow>(getContext());
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// A mask that keeps everything and a score region that changes nothing are left out.
LogicalResult AttentionOp::canonicalize(AttentionOp op, PatternRewriter &rewriter) {
  Block *mask = op.getMaskBlock(), *score = op.getScoreBlock();
  bool keepsAll = mask && !op.isCounted() && matchPattern(op.getMaskMembers()[0], m_One());
  bool changesNothing = score && op.getScoreResult() == score->getArgument(0);
  if (!keepsAll && !changesNothing)
    return failure();
  rewriter.startOpModification(op);
  if (keepsAll)
    rewriter.eraseBlock(mask);
  if (changesNothing)
    rewriter.eraseBlock(score);
  rewriter.finalizeOpModification(op);
  return success();
}
