//===- Mask.h - A mask at given extents ------------------------*- C++ -*-===//
//
// Questions about a mask: what shape it has, and what it keeps for given extents and captured data.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PATTERN_MASK_H
#define ATTN_PATTERN_MASK_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Runtime/Abi.h"
#include <memory>

namespace attn {

/// How a mask falls into smaller dense problems. Residue: only pairs with i mod size == j mod size attend; Block: only
/// those with i floordiv size == j floordiv size. Dense: size is 1.
struct Reindexing {
  ReindexKind kind = ReindexKind::Dense;
  int64_t size = 1;

  bool operator==(const Reindexing &other) const { return kind == other.kind && size == other.size; }
};

/// The reindexing that leaves the least work, found among the conjuncts of the mask.
Reindexing findReindexing(AttentionOp op);

/// The reindexing that the schedule of `op` has chosen; Dense without a schedule.
Reindexing getScheduledReindexing(AttentionOp op);

/// Whether the answer can differ between batches or between query heads.
struct MaskDependence {
  bool batch = false, head = false;
};
MaskDependence getMaskDependence(AttentionOp op);

/// The constants that the boundaries of the mask align to, ascending: sizes of blocks, rows and strides.
llvm::SmallVector<int64_t> blockSizes(AttentionOp op);

} // namespace attn

#endif // ATTN_PATTERN_MASK_H
