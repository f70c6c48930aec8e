//===- Plan.h - Which tiles of a problem hold work -------------*- C++ -*-===//
//
// The runs of keys that each query tile has to look at, as the runtime plans them, and figures taken from them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PATTERN_PLAN_H
#define ATTN_PATTERN_PLAN_H

#include "attn/Pattern/Mask.h"
#include "attn/Runtime/Plan.h"
#include <optional>

namespace attn {

struct PlanTiles {
  int64_t query = 48, key = 128;
  /// Runs start and end at multiples of this.
  int64_t granule = 16;
};

/// Block lists in the form FlexAttention uses, for blocks of tokens. Row r of (b, h) keeps some pairs of the key blocks
/// indices[((b * heads + h) * rows + r) * columns ...], `counts` of them, and all pairs of the `full` ones; ascending.
/// Entries beyond the count are 0. A dimension that the mask does not depend on counts 1.
struct BlockLists {
  struct Lists {
    int64_t columns = 0; // the longest list, at least 1
    std::vector<int32_t> counts, indices;
  };
  int64_t batches = 1, heads = 1, rows = 0;
  Lists partial, full;
};

class MaskPlan {
public:
  /// Tiles by kind, over all batches, heads and classes.
  struct TileCounts {
    int64_t full = 0, partial = 0, empty = 0;
  };

  /// Plans what `evaluator` keeps, which must outlive the plan. Fatal where there is no memory for it.
  MaskPlan(const MaskEvaluator &evaluator, const PlanTiles &tiles);
  MaskPlan(const MaskPlan &) = delete;
  ~MaskPlan();

  /// Batches and heads count 1 where the mask does not depend on them.
  const AttnPlan &getPlan() const { return plan; }
  AttnClassRows getClassRows(int64_t classIndex) const;
  /// The runs of query tile `tile` of a class, in rows of the class.
  llvm::ArrayRef<AttnRun> getRuns(int64_t b, int64_t h, int64_t classIndex, int64_t tile) const;

  TileCounts countTiles() const;
  /// Pairs of a query and a key in runs: what is computed.
  int64_t countComputedPairs() const;
  /// All pairs of the problem.
  int64_t countPairs() const;
  /// Pairs that attend. None where counting takes more than `budget` looks at the mask.
  std::optional<int64_t> countKeptPairs(int64_t budget = int64_t(1) << 24) const;
  /// The part of all pairs that is computed.
  double getDensity() const;
  /// Two products, of 2 operations per pair and element.
  int64_t countFlops(int64_t headDim, int64_t valueDim) const;
  /// What has to move at least: query, key, value and output once.
  int64_t countBytes(int64_t headDim, int64_t valueDim, int64_t elementBytes) const;

  /// Lists for blocks of `queryBlock` by `keyBlock` tokens of the whole mask, also where this plan is of classes.
  BlockLists toBlockLists(int64_t queryBlock, int64_t keyBlock) const;

private:
  void forEachTile(llvm::function_ref<void(int64_t b, int64_t h, const AttnClassRows &rows, int64_t tile,
                                           llvm::ArrayRef<AttnRun> runs)>
                       visit) const;
  /// How often one plan row stands for a batch and head.
  int64_t getRepeats() const;

  const MaskEvaluator &evaluator;
  AttnKernel kernel = {};
  AttnPlanShape shape = {};
  AttnPlan plan = {};
};

} // namespace attn

#endif // ATTN_PATTERN_PLAN_H
