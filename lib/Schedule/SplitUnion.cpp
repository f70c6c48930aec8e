//===- SplitUnion.cpp - A union of patterns as attentions that join -------===//
//
// `window or stride(size = 128)` keeps scattered keys that, alone, would be small dense problems. Where that is
// estimated to be less work, such a part becomes an attention of its own, over what the others do not keep, and joins
// the result of the rest.
//
//===----------------------------------------------------------------------===//
#include "TileCost.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

/// Estimates are not better than this.
static constexpr double kGain = 0.9;
/// What a row of a vector costs that is stored, loaded and joined once more, in keys.
static constexpr double kJoinKeys = 16;

/// The union that all pairs have to be in: the first 'or' among the conjuncts.
static arith::OrIOp findUnion(Value value) {
  if (auto either = value.getDefiningOp<arith::OrIOp>())
    return either;
  auto both = value.getDefiningOp<arith::AndIOp>();
  if (!both)
    return {};
  arith::OrIOp found = findUnion(both.getLhs());
  return found ? found : findUnion(both.getRhs());
}

static void addMembers(Value value, SmallVectorImpl<Value> &members) {
  auto either = value.getDefiningOp<arith::OrIOp>();
  if (!either)
    return members.push_back(value);
  addMembers(either.getLhs(), members);
  addMembers(either.getRhs(), members);
}

static void eraseUnused(Block &block) {
  for (Operation *op = block.getTerminator()->getPrevNode(); op;) {
    Operation *dead = op->use_empty() ? op : nullptr;
    op = op->getPrevNode();
    if (dead)
      dead->erase();
  }
}

/// A copy of `op` in front of it, whose mask has in place of the union one member without the others, or the others.
static AttentionOp copyPart(AttentionOp op, arith::OrIOp whole, Value member, bool isMember) {
  IRMapping mapping;
  auto copy = cast<AttentionOp>(OpBuilder(op).clone(*op, mapping));
  auto own = mapping.lookup<Value>(whole.getResult()).getDefiningOp<arith::OrIOp>();
  SmallVector<Value> members;
  addMembers(whole, members);
  OpBuilder b(own);
  Value others, part;
  for (Value each : members) {
    if (each == member)
      continue;
    Value mapped = mapping.lookup<Value>(each);
    others = others ? arith::OrIOp::create(b, own.getLoc(), others, mapped).getResult() : mapped;
  }
  part = others;
  if (isMember) {
    Value yes = arith::ConstantIntOp::create(b, own.getLoc(), 1, 1);
    Value rest = arith::XOrIOp::create(b, own.getLoc(), others, yes);
    part = arith::AndIOp::create(b, own.getLoc(), mapping.lookup<Value>(member), rest);
  }
  own.getResult().replaceAllUsesWith(part);
  eraseUnused(*copy.getMaskBlock());
  return copy;
}

/// The least estimate over the widths of query tiles, for all classes together.
static double estimate(AttentionOp op, const TargetModel &target, int64_t granule) {
  TileCostModel model(op, findReindexing(op), target, granule);
  double least = model.get(1).time;
  for (int64_t vectors : {2, 3, 4})
    least = std::min(least, model.get(vectors).time);
  return least * static_cast<double>(model.getClasses());
}

/// Makes `member` an attention of its own that joins `rest`.
static void replaceByParts(AttentionOp op, AttentionOp rest, AttentionOp member) {
  OpBuilder b(op);
  auto shape = op.getOutputType().getShape();
  Type lse = RankedTensorType::get(shape.drop_back(), b.getF32Type());
  Operation *full = Operation::create(rest.getLoc(), rest->getName(), TypeRange{op.getOutput().getType(), lse},
                                      rest->getOperands(), rest->getDiscardableAttrDictionary(),
                                      rest->getPropertiesStorage(), BlockRange(), rest->getNumRegions());
  for (auto [from, to] : llvm::zip_equal(rest->getRegions(), full->getRegions()))
    to.takeBody(from);
  b.setInsertionPoint(rest);
  b.insert(full);
  rest.erase();
  auto first = cast<AttentionOp>(full);
  member.getJoinedOutputMutable().assign(first.getOutput());
  member.getJoinedLseMutable().assign(first.getLse());
  op->replaceAllUsesWith(member);
  op.erase();
}

static bool splitUnion(AttentionOp op, const TargetModel &target, int64_t granule) {
  bool hasF32 = op.getOutputType().getElementType().isF32(); // what is joined loses nothing
  if (op.getScheduleAttr() || !op.getMaskBlock() || op.isCounted() || !op.isSoftmax() || !hasF32 ||
      findReindexing(op).kind != ReindexKind::Dense)
    return false;
  arith::OrIOp whole = findUnion(op.getMaskMembers()[0]);
  if (!whole || !whole->hasOneUse())
    return false;
  SmallVector<Value> members;
  addMembers(whole, members);
  for (Value member : members) {
    AttentionOp rest = copyPart(op, whole, member, /*isMember=*/false);
    AttentionOp own = copyPart(op, whole, member, /*isMember=*/true);
    own.getJoinedOutputMutable().clear();
    own.getJoinedLseMutable().clear();
    own.getSinkMutable().clear(); // that of the rest counts
    if (findReindexing(own).kind == ReindexKind::Residue) {
      TileCostModel join(op, {}, target, granule);
      double rows = static_cast<double>(join.getTokens()) / static_cast<double>(target.lanes) * kJoinKeys;
      if (estimate(rest, target, granule) + estimate(own, target, granule) + rows <
          kGain * estimate(op, target, granule)) {
        replaceByParts(op, rest, own);
        return true;
      }
    }
    own.erase();
    rest.erase();
  }
  return false;
}

static void splitAll(Operation *root, const TargetModel &target, int64_t granule, const ScheduleOverrides &overrides) {
  if (!overrides.reindex)
    return;
  SmallVector<AttentionOp> ops;
  root->walk([&](AttentionOp op) { ops.push_back(op); });
  for (AttentionOp op : ops)
    if (op->getParentOfType<func::FuncOp>())
      splitUnion(op, target, granule);
}

void attn::splitUnions(Operation *root, const TargetModel &target, const ScheduleOverrides &overrides) {
  splitAll(root, target, getGranule(overrides), overrides);
}

void attn::splitUnionsForGPU(Operation *root, const ScheduleOverrides &overrides) {
  constexpr int64_t keys = 32; // of a tile of f32
  splitAll(root, getGPUCosts(/*tensorCores=*/false), keys, overrides);
}
