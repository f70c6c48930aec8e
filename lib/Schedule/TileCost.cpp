//===- TileCost.cpp - What a mask costs at a width of tile ----------------===//
#include "TileCost.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using llvm::divideCeil;

/// Lengths beyond this say nothing new about the width of tiles, and would take longer to look at.
static constexpr int64_t kTokens = 4096;
/// A strip is a whole number of tiles of 1, 2, 3 and 4 vectors.
static constexpr int64_t kStripVectors = 12;

static int64_t getExtent(RankedTensorType type, unsigned dim, int64_t typical) {
  return type.isDynamicDim(dim) ? typical : std::min(type.getDimSize(dim), kTokens);
}

/// One batch; what depends on the head is looked at in a middle one.
static Extents getExtents(AttentionOp op) {
  Extents extents;
  extents.heads = getExtent(op.getQueryType(), 1, 8);
  extents.keyHeads = getExtent(op.getKeyType(), 1, extents.heads);
  extents.keys = getExtent(op.getKeyType(), 2, getExtent(op.getQueryType(), 2, kTokens));
  extents.queries = getExtent(op.getQueryType(), 2, extents.keys);
  return extents;
}

TileCostModel::TileCostModel(AttentionOp op, const Reindexing &reindexing, const TargetModel &target, int64_t granule)
    : target(target), granule(granule), extents(getExtents(op)) {
  AttnKernel kernel = {};
  kernel.align = static_cast<int64_t>(op.getAlign());
  kernel.reindex = static_cast<int64_t>(reindexing.kind);
  kernel.reindex_size = reindexing.size;
  AttnPlanShape shape = {1, extents.heads, extents.queries, extents.keys, /*threads=*/0};
  classes = attn_class_count(&kernel, &shape);
  if (classes) {
    rows = attn_class_rows(&kernel, &shape, classes / 2);
    sample(MaskEvaluator(op, extents, {}, reindexing));
  }
}

// The first and the last strip, where global rows and borders lie, and three that stand for those between: masks differ
// along the rows. Classes are alike, so one of them will do.
void TileCostModel::sample(const MaskEvaluator &evaluator) {
  int64_t height = kStripVectors * target.lanes, count = divideCeil(rows.query_count, height);
  SmallVector<int64_t, 5> chosen = {0, count / 6, count / 2, count - 1 - count / 6, count - 1};
  if (count <= 5)
    chosen.assign(llvm::seq(count).begin(), llvm::seq(count).end());
  for (int64_t index : chosen) {
    bool between = index > 0 && index < count - 1;
    double weight = between ? static_cast<double>(count - 2) / static_cast<double>(chosen.size() - 2) : 1;
    Strip &strip = strips.emplace_back(Strip{index * height, weight, {}});
    int64_t end = std::min(strip.row + height, rows.query_count);
    for (int64_t row = strip.row; row < end; row += target.lanes)
      strip.vectors.push_back(classify(evaluator, row));
  }
}

/// Granules [lo, hi) by halves, as the planner of the runtime goes.
template <typename Read>
static void fill(MutableArrayRef<uint8_t> kinds, int64_t lo, int64_t hi, const Read &read) {
  if (lo >= hi)
    return;
  AttnRunKind kind = read(lo, hi);
  if (kind != ATTN_PARTIAL || hi - lo == 1) {
    llvm::fill(kinds.slice(lo, hi - lo), kind);
    return;
  }
  int64_t middle = lo + (hi - lo) / 2;
  fill(kinds, lo, middle, read);
  fill(kinds, middle, hi, read);
}

TileCostModel::Kinds TileCostModel::classify(const MaskEvaluator &evaluator, int64_t row) const {
  Kinds kinds(divideCeil(rows.key_count, granule), ATTN_EMPTY);
  int64_t base = rows.query_token + rows.query_offset, last = std::min(row + target.lanes, rows.query_count) - 1;
  fill(kinds, 0, kinds.size(), [&](int64_t lo, int64_t hi) {
    int64_t lastKey = std::min(hi * granule, rows.key_count) - 1;
    return evaluator.classify(0, extents.heads / 2, base + row * rows.query_step, base + last * rows.query_step,
                              rows.key_token + lo * granule * rows.key_step, rows.key_token + lastKey * rows.key_step);
  });
  return kinds;
}

// The last rows of a class run one vector at a time where whole tiles would idle, but over the same runs.
void TileCostModel::addTile(const Strip &strip, int64_t first, int64_t vectors, Cost &cost) const {
  int64_t present = std::min<int64_t>(vectors, strip.vectors.size() - first), keys = 0, masked = 0, runs = 0;
  uint8_t before = ATTN_EMPTY;
  for (size_t g = 0; g < strip.vectors[first].size(); ++g) {
    uint8_t least = ATTN_FULL, most = ATTN_EMPTY;
    for (const Kinds &kinds : ArrayRef(strip.vectors).slice(first, present)) {
      least = std::min(least, kinds[g]);
      most = std::max(most, kinds[g]);
    }
    uint8_t kind = least == ATTN_FULL ? ATTN_FULL : most == ATTN_EMPTY ? ATTN_EMPTY : ATTN_PARTIAL;
    keys += kind == ATTN_EMPTY ? 0 : granule;
    masked += kind == ATTN_PARTIAL ? granule : 0;
    runs += kind != ATTN_EMPTY && kind != before;
    before = kind;
  }
  const TileCosts &costs = target.costs;
  int64_t tiles = present < vectors ? present : 1, width = present < vectors ? 1 : vectors;
  cost.computed += strip.weight * static_cast<double>(present * keys);
  cost.time += strip.weight * static_cast<double>(tiles) *
               (static_cast<double>(width) * (static_cast<double>(keys) * costs.pair[width - 1] +
                                              static_cast<double>(masked) * costs.masked + costs.tile) +
                static_cast<double>(runs) * costs.run);
}

TileCostModel::Cost TileCostModel::get(int64_t vectors) const {
  Cost cost;
  for (const Strip &strip : strips)
    for (size_t first = 0; first < strip.vectors.size(); first += vectors)
      addTile(strip, first, vectors, cost);
  return cost;
}
