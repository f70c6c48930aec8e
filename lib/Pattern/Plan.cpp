//===- Plan.cpp - Which tiles of a problem hold work ----------------------===//

#include "attn/Pattern/Plan.h"
#include "attn/Runtime/Attn.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;

static int32_t classifyForPlanner(void *context, int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo,
                                  int64_t jHi) {
  return static_cast<const MaskEvaluator *>(context)->classify(b, h, iLo, iHi, jLo, jHi);
}

static AttnKernel makeKernel(const MaskEvaluator &evaluator, const PlanTiles &tiles) {
  AttnKernel kernel = {};
  kernel.has_mask = 1;
  kernel.align = static_cast<int64_t>(evaluator.getAlign());
  kernel.reindex = static_cast<int64_t>(evaluator.getReindexing().kind);
  kernel.reindex_size = evaluator.getReindexing().size;
  kernel.depends_batch = evaluator.getDependence().batch;
  kernel.depends_head = evaluator.getDependence().head;
  kernel.query_tile = tiles.query;
  kernel.key_tile = tiles.key;
  kernel.key_granule = tiles.granule;
  return kernel;
}

MaskPlan::MaskPlan(const MaskEvaluator &evaluator, const PlanTiles &tiles)
    : evaluator(evaluator), kernel(makeKernel(evaluator, tiles)) {
  const Extents &extents = evaluator.getExtents();
  shape = {extents.batches, extents.heads, extents.queries, extents.keys, /*threads=*/0};
  void *context = const_cast<MaskEvaluator *>(&evaluator);
  if (attn_plan_build(&kernel, &shape, classifyForPlanner, context, &plan) != ATTN_OK)
    llvm::report_bad_alloc_error("no memory for the plan of a mask");
}

MaskPlan::~MaskPlan() { attn_plan_release(&plan); }

AttnClassRows MaskPlan::getClassRows(int64_t classIndex) const { return attn_class_rows(&kernel, &shape, classIndex); }

ArrayRef<AttnRun> MaskPlan::getRuns(int64_t b, int64_t h, int64_t classIndex, int64_t tile) const {
  int64_t batch = plan.batches == 1 ? 0 : b, head = plan.heads == 1 ? 0 : h;
  int64_t slot = ((batch * plan.heads + head) * plan.classes + classIndex) * plan.tiles + tile;
  return ArrayRef(plan.runs + plan.offsets[slot], plan.runs + plan.offsets[slot + 1]);
}

void MaskPlan::forEachTile(
    llvm::function_ref<void(int64_t, int64_t, const AttnClassRows &, int64_t, ArrayRef<AttnRun>)> visit) const {
  for (int64_t b = 0; b < plan.batches; ++b)
    for (int64_t h = 0; h < plan.heads; ++h)
      for (int64_t index = 0; index < plan.classes; ++index) {
        AttnClassRows rows = getClassRows(index);
        for (int64_t tile = 0; tile * kernel.query_tile < rows.query_count; ++tile)
          visit(b, h, rows, tile, getRuns(b, h, index, tile));
      }
}

int64_t MaskPlan::getRepeats() const {
  int64_t planned = plan.batches * plan.heads;
  return planned == 0 ? 0 : shape.batches * shape.heads / planned;
}

//===----------------------------------------------------------------------===//
// Figures
//===----------------------------------------------------------------------===//

/// Adds the key tiles that the runs of one query tile touch; a tile is full if one full run covers it.
static void addTiles(ArrayRef<AttnRun> runs, int64_t keyTile, int64_t keyCount, MaskPlan::TileCounts &counts) {
  int64_t next = 0, touched = 0, full = 0; // tiles below `next` are counted
  for (const AttnRun &run : runs) {
    int64_t first = std::max<int64_t>(run.begin / keyTile, next), end = llvm::divideCeil(run.end, keyTile);
    touched += std::max<int64_t>(end - first, 0);
    next = std::max(next, end);
    int64_t wholeEnd = run.end == keyCount ? end : run.end / keyTile;
    if (run.kind == ATTN_FULL)
      full += std::max<int64_t>(wholeEnd - static_cast<int64_t>(llvm::divideCeil(run.begin, keyTile)), 0);
  }
  counts.full += full;
  counts.partial += touched - full;
  counts.empty += static_cast<int64_t>(llvm::divideCeil(keyCount, keyTile)) - touched;
}

MaskPlan::TileCounts MaskPlan::countTiles() const {
  TileCounts counts;
  forEachTile([&](int64_t, int64_t, const AttnClassRows &rows, int64_t, ArrayRef<AttnRun> runs) {
    addTiles(runs, kernel.key_tile, rows.key_count, counts);
  });
  int64_t repeats = getRepeats();
  return {counts.full * repeats, counts.partial * repeats, counts.empty * repeats};
}

int64_t MaskPlan::countComputedPairs() const {
  int64_t pairs = 0;
  forEachTile([&](int64_t, int64_t, const AttnClassRows &rows, int64_t tile, ArrayRef<AttnRun> runs) {
    int64_t queries = std::min(kernel.query_tile, rows.query_count - tile * kernel.query_tile);
    for (const AttnRun &run : runs)
      pairs += queries * (run.end - run.begin);
  });
  return pairs * getRepeats();
}

int64_t MaskPlan::countPairs() const { return shape.batches * shape.heads * shape.num_queries * shape.num_keys; }

double MaskPlan::getDensity() const {
  return countPairs() == 0 ? 0 : static_cast<double>(countComputedPairs()) / static_cast<double>(countPairs());
}

int64_t MaskPlan::countFlops(int64_t headDim, int64_t valueDim) const {
  return countComputedPairs() * 2 * (headDim + valueDim);
}

int64_t MaskPlan::countBytes(int64_t headDim, int64_t valueDim, int64_t elementBytes) const {
  int64_t queryRows = shape.heads * shape.num_queries, keyRows = evaluator.getExtents().keyHeads * shape.num_keys;
  return shape.batches * (queryRows + keyRows) * (headDim + valueDim) * elementBytes;
}

namespace {
/// Counts the pairs that attend in a rectangle of class rows by cutting it where it is partial.
struct PairCounter {
  const MaskEvaluator &evaluator;
  int64_t b, h;
  const AttnClassRows &rows;
  int64_t &budget;

  int64_t count(int64_t q0, int64_t q1, int64_t k0, int64_t k1) {
    if (--budget < 0)
      return 0;
    auto query = [&](int64_t row) { return rows.query_token + row * rows.query_step + rows.query_offset; };
    auto key = [&](int64_t row) { return rows.key_token + row * rows.key_step; };
    AttnRunKind kind = evaluator.classify(b, h, query(q0), query(q1 - 1), key(k0), key(k1 - 1));
    if (kind != ATTN_PARTIAL)
      return kind == ATTN_FULL ? (q1 - q0) * (k1 - k0) : 0;
    if (q1 - q0 == 1 && k1 - k0 == 1) // of data that is not known: it may attend
      return 1;
    if (q1 - q0 > k1 - k0) {
      int64_t middle = q0 + (q1 - q0) / 2;
      return count(q0, middle, k0, k1) + count(middle, q1, k0, k1);
    }
    int64_t middle = k0 + (k1 - k0) / 2;
    return count(q0, q1, k0, middle) + count(q0, q1, middle, k1);
  }
};
} // namespace

std::optional<int64_t> MaskPlan::countKeptPairs(int64_t budget) const {
  int64_t pairs = 0;
  forEachTile([&](int64_t b, int64_t h, const AttnClassRows &rows, int64_t tile, ArrayRef<AttnRun> runs) {
    int64_t q0 = tile * kernel.query_tile, q1 = std::min(q0 + kernel.query_tile, rows.query_count);
    PairCounter counter = {evaluator, b, h, rows, budget};
    for (const AttnRun &run : runs)
      if (budget >= 0)
        pairs += run.kind == ATTN_FULL ? (q1 - q0) * (run.end - run.begin) : counter.count(q0, q1, run.begin, run.end);
  });
  if (budget < 0)
    return std::nullopt;
  return pairs * getRepeats();
}

//===----------------------------------------------------------------------===//
// Block lists
//===----------------------------------------------------------------------===//

static int32_t classifyWholeForPlanner(void *context, int64_t b, int64_t h, int64_t iLo, int64_t iHi, int64_t jLo,
                                       int64_t jHi) {
  return static_cast<const MaskEvaluator *>(context)->classifyAll(b, h, iLo, iHi, jLo, jHi);
}

/// The blocks of one kind that the runs of each block row hold, padded to equal length.
static BlockLists::Lists listBlocks(const AttnPlan &plan, int64_t keyBlock, AttnRunKind kind) {
  BlockLists::Lists lists;
  int64_t rows = plan.batches * plan.heads * plan.tiles;
  std::vector<std::vector<int32_t>> found(rows);
  for (int64_t row = 0; row < rows; ++row)
    for (const AttnRun &run : ArrayRef(plan.runs + plan.offsets[row], plan.runs + plan.offsets[row + 1]))
      for (int64_t block = run.begin / keyBlock; run.kind == kind && block * keyBlock < run.end; ++block)
        found[row].push_back(static_cast<int32_t>(block));
  lists.columns = 1;
  for (const std::vector<int32_t> &blocks : found)
    lists.columns = std::max<int64_t>(lists.columns, blocks.size());
  for (std::vector<int32_t> &blocks : found) {
    lists.counts.push_back(static_cast<int32_t>(blocks.size()));
    blocks.resize(lists.columns);
    lists.indices.insert(lists.indices.end(), blocks.begin(), blocks.end());
  }
  return lists;
}

BlockLists MaskPlan::toBlockLists(int64_t queryBlock, int64_t keyBlock) const {
  AttnKernel whole = kernel;
  whole.reindex = ATTN_DENSE;
  whole.reindex_size = 1;
  whole.query_tile = queryBlock;
  whole.key_tile = whole.key_granule = keyBlock;
  AttnPlan blocks;
  void *context = const_cast<MaskEvaluator *>(&evaluator);
  if (attn_plan_build(&whole, &shape, classifyWholeForPlanner, context, &blocks) != ATTN_OK)
    llvm::report_bad_alloc_error("no memory for the plan of a mask");
  BlockLists lists;
  lists.batches = blocks.batches;
  lists.heads = blocks.heads;
  lists.rows = blocks.tiles;
  lists.partial = listBlocks(blocks, keyBlock, ATTN_PARTIAL);
  lists.full = listBlocks(blocks, keyBlock, ATTN_FULL);
  attn_plan_release(&blocks);
  return lists;
}
