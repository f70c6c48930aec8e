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
#include <vector>

namespace attn {

/// How a mask falls into smaller dense problems. Residue: only pairs with i mod size == j mod size attend; Block: only
/// those with i floordiv size == j floordiv size. Dense: size is 1.
struct Reindexing {
  ReindexKind kind = ReindexKind::Dense;
  int64_t size = 1;

  /// Tokens between two rows of a class.
  int64_t step() const { return kind == ReindexKind::Residue ? size : 1; }
  bool operator==(const Reindexing &other) const { return kind == other.kind && size == other.size; }
};

/// The reindexing that leaves the least work, found among the conjuncts of the mask.
Reindexing findReindexing(AttentionOp op);

/// Do all pairs that the mask keeps lie in one class of `reindexing`? Proved, or no.
bool allowsReindexing(AttentionOp op, const Reindexing &reindexing);

/// The reindexing that the schedule of `op` has chosen; Dense without a schedule.
Reindexing getScheduledReindexing(AttentionOp op);

/// Whether the answer can differ between batches or between query heads.
struct MaskDependence {
  bool batch = false, head = false;
};
MaskDependence getMaskDependence(AttentionOp op);

/// The constants that the boundaries of the mask align to, ascending: sizes of blocks, rows and strides.
llvm::SmallVector<int64_t> blockSizes(AttentionOp op);

/// The extents of an attention: q [batches, heads, queries, D], k [batches, keyHeads, keys, D].
struct Extents {
  int64_t batches = 1, heads = 1, keyHeads = 1, queries = 1, keys = 1;
};

/// An integer tensor in row-major order, truth values as 0 and 1. Without values only its shape is known, without a
/// shape nothing.
struct CapturedData {
  llvm::SmallVector<int64_t> shape;
  std::vector<int64_t> values;
};

/// A mask at given extents and with given captured data. Not for several threads at once.
class MaskEvaluator {
public:
  /// `data` goes with Captures::tensors; what it lacks is taken from constants or not known. With a reindexing,
  /// `classify` answers for pairs of one class.
  MaskEvaluator(AttentionOp op, const Extents &extents, std::vector<CapturedData> data = {},
                const Reindexing &reindexing = {});
  MaskEvaluator(MaskEvaluator &&);
  ~MaskEvaluator();

  /// Whether the query at position i and the key at position j attend. Where data that decides it is not known or is
  /// floating-point, the answer is yes.
  bool keep(int64_t b, int64_t h, int64_t i, int64_t j) const;

  /// Whether none, some or all pairs may attend of the positions in [iLo, iHi] and [jLo, jHi], both inclusive.
  AttnRunKind classify(int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) const;

  /// The same for any pairs, in one class or not.
  AttnRunKind classifyAll(int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo, int64_t jHi) const;

  const Extents &getExtents() const;
  const Reindexing &getReindexing() const;
  MaskDependence getDependence() const;
  /// Memory of the tables over the captured data that is known.
  int64_t getTableBytes() const;
  Align getAlign() const;
  /// Position of query row 0: positions of queries are tokens plus this.
  int64_t getQueryOffset() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

} // namespace attn

#endif // ATTN_PATTERN_MASK_H
