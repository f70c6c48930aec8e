//===- TileCost.h - What a mask costs at a width of tile --------*- C++ -*-===//
#ifndef ATTN_LIB_SCHEDULE_TILECOST_H
#define ATTN_LIB_SCHEDULE_TILECOST_H

#include "attn/Pattern/Mask.h"
#include "attn/Runtime/Plan.h"
#include "attn/Schedule/TargetModel.h"

namespace attn {

/// The cost of a mask under query tiles of 1 to 4 vectors, from a sample of its rows: strips of rows are planned one
/// vector of queries at a time, and what wider tiles read is the union of what their vectors need.
class TileCostModel {
public:
  TileCostModel(AttentionOp op, const Reindexing &reindexing, const TargetModel &target, int64_t granule);

  /// In keys that one vector of queries passes.
  struct Cost {
    double time = 0;     // by the target's TileCosts
    double computed = 0; // pairs alone
  };
  Cost get(int64_t vectors) const;
  /// The length that was looked at: that of the spec, or a typical one.
  int64_t getTokens() const { return extents.queries; }
  /// Smaller dense problems; the cost is that of one.
  int64_t getClasses() const { return classes; }

private:
  using Kinds = std::vector<uint8_t>; // AttnRunKind by key granule
  struct Strip {
    int64_t row;
    double weight; // strips that it stands for
    std::vector<Kinds> vectors;
  };
  void sample(const MaskEvaluator &evaluator);
  Kinds classify(const MaskEvaluator &evaluator, int64_t row) const;
  void addTile(const Strip &strip, int64_t first, int64_t vectors, Cost &cost) const;

  const TargetModel &target;
  int64_t granule;
  Extents extents;
  AttnClassRows rows = {};
  int64_t classes = 0;
  std::vector<Strip> strips;
};

} // namespace attn

#endif // ATTN_LIB_SCHEDULE_TILECOST_H
