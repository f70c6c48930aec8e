//===- Shape.cpp - The shape of a mask without extents or data ------------===//

#include "MaskAnalysis.h"
#include "attn/Pattern/Expand.h"
#include "attn/Pattern/Mask.h"
#include <set>

using namespace mlir;
using namespace attn;

/// What the attention costs per query row once it is reindexed, in keys. Rows whose number is not known count as many.
static int64_t getKeysPerRow(AttentionOp op, const Reindexing &reindexing) {
  int64_t keys = op.getKeyType().getDimSize(2);
  if (ShapedType::isDynamic(keys))
    keys = 8192;
  return reindexing.kind == ReindexKind::Block ? reindexing.size : keys / reindexing.size;
}

// Conditions that are counted hold each for itself: no part of them holds for all pairs of a class.
Reindexing attn::findReindexing(AttentionOp op) {
  if (op.isCounted())
    return {};
  ExpandedMask mask(op);
  Reindexing best;
  for (const Reindexing &found : MaskAnalysis(mask).findReindexings())
    if (getKeysPerRow(op, found) < getKeysPerRow(op, best))
      best = found;
  return best;
}

bool attn::allowsReindexing(AttentionOp op, const Reindexing &reindexing) {
  if (reindexing.kind == ReindexKind::Dense)
    return true;
  if (op.isCounted())
    return false;
  ExpandedMask mask(op);
  return llvm::any_of(MaskAnalysis(mask).findReindexings(), [&](const Reindexing &found) {
    if (found.kind != reindexing.kind)
      return false;
    // A residue modulo a divisor and a block of several blocks hold whole classes.
    return found.kind == ReindexKind::Residue ? found.size % reindexing.size == 0 : reindexing.size % found.size == 0;
  });
}

Reindexing attn::getScheduledReindexing(AttentionOp op) {
  if (std::optional<ScheduleAttr> schedule = op.getSchedule())
    return {schedule->getReindex(), schedule->getReindexSize()};
  return {};
}

MaskDependence attn::getMaskDependence(AttentionOp op) {
  ExpandedMask mask(op);
  Block &block = mask.getBlock();
  return {!block.getArgument(0).use_empty(), !block.getArgument(1).use_empty()};
}

SmallVector<int64_t> attn::blockSizes(AttentionOp op) {
  ExpandedMask mask(op);
  MaskAnalysis analysis(mask);
  std::set<int64_t> sizes;
  const AtomTable &atoms = analysis.getAtoms();
  for (unsigned atom = 0; atom < atoms.size(); ++atom)
    if (atoms[atom].divisor > 1)
      sizes.insert(atoms[atom].divisor);
  return SmallVector<int64_t>(sizes.begin(), sizes.end());
}
