//===- SelectSchedule.cpp - Choose tile sizes, reindexing, splits ---------===//
#include "TileCost.h"
#include "attn/Pattern/Captures.h"
#include "attn/Schedule/Passes.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "attn/Schedule/Passes.h.inc"

using namespace mlir;
using llvm::formatv;

namespace {

/// Keys in which masks are told apart.
constexpr int64_t kGranule = 16;
/// AMX takes keys in blocks: values are packed 32 keys deep.
constexpr int64_t kTileKeys = 32;
/// Two columns of tiles, so that a tile of keys or values that is loaded serves two products.
constexpr int64_t kTileQueries = 32;
/// Of a query tile: micro-kernels are unrolled over them.
constexpr int64_t kMaxVectors = 16;
/// What a narrow query tile has to save: estimates are not better than this, and three vectors of queries need the
/// fewest loads per FMA at any length.
constexpr double kGain = 0.985;

class Chooser {
public:
  Chooser(AttentionOp op, const TargetModel &target, const ScheduleOverrides &overrides)
      : op(op), target(target), overrides(overrides) {}

  ScheduleChoice choose();

private:
  void because(std::string reason) { reasons.push_back(std::move(reason)); }
  void chooseReindexing();
  SmallVector<int64_t> findWidths(bool unknown);
  void chooseQueryTile();
  void explainQueryTile(const TileCostModel &model, int64_t vectors, int64_t other);
  void chooseKeys();
  void chooseTileKeys();
  void chooseSplit();
  static int64_t known(int64_t width) { return ShapedType::isDynamic(width) ? 128 : width; }

  AttentionOp op;
  const TargetModel &target;
  const ScheduleOverrides &overrides;
  std::vector<std::string> reasons;
  Reindexing reindexing;
  TileUse::Form tiles = TileUse::None;
  int64_t queryTile = 0, keyTile = 0, group = 0, span = 0, split = 0, tasks = 0, granule = kGranule;
};

void Chooser::chooseReindexing() {
  if (!overrides.reindex)
    return because("reindexing off by option");
  reindexing = findReindexing(op);
  if (reindexing.kind == ReindexKind::Residue)
    because(
        formatv("the mask keeps pairs of one residue modulo {0}: {0} dense problems of N / {0} rows", reindexing.size));
  else if (reindexing.kind == ReindexKind::Block)
    because(formatv("the mask keeps pairs of one block of {0}: one dense problem per block", reindexing.size));
}

/// Does the mask read tensors that only the caller knows?
static bool readsUnknown(AttentionOp op) {
  Captures captures = Captures::of(op);
  return llvm::any_of(captures.tables,
                      [&](const Table &table) { return !matchPattern(captures.tensors[table.operand], m_Constant()); });
}

// Borders at multiples of a block leave no partial tiles under tiles that divide it. It matters where the pattern of
// the blocks is not known here; where it is, the cost says so.
SmallVector<int64_t> Chooser::findWidths(bool unknown) {
  SmallVector<int64_t> all = {3, 4, 2, 1}, sizes = blockSizes(op), dividing;
  llvm::copy_if(all, std::back_inserter(dividing), [&](int64_t vectors) {
    return llvm::all_of(sizes, [&](int64_t size) { return size % (vectors * target.lanes) == 0; });
  });
  if (!unknown || sizes.empty() || dividing.empty() || reindexing.kind == ReindexKind::Residue)
    return all;
  because(formatv("a query tile divides the mask's blocks of {0}", llvm::make_range(sizes.begin(), sizes.end())));
  return dividing;
}

void Chooser::chooseQueryTile() {
  int64_t lanes = target.lanes;
  if ((queryTile = overrides.queryTile))
    return because(formatv("query tile of {0} by option", queryTile));
  if (tiles == TileUse::AMX) {
    queryTile = kTileQueries;
    return because(
        formatv("query tile of {0}: each tile of keys or values that is loaded meets two of queries", queryTile));
  }
  if (!op.getMaskBlock()) {
    queryTile = 3 * lanes;
    return because(formatv("query tile of {0}: 3 vectors of {1} lanes by {2} key rows fill the registers", queryTile,
                           lanes, getBlockRows(target.rows, 3)));
  }
  bool unknown = readsUnknown(op);
  if (unknown)
    because("what captured tensors decide is known at run time only; it counts as kept");
  SmallVector<int64_t> widths = findWidths(unknown);
  TileCostModel model(op, reindexing, target, granule);
  int64_t first = widths.front(), best = first, second = 0;
  auto time = [&](int64_t vectors) { return model.get(vectors).time; };
  for (int64_t width : ArrayRef(widths).drop_front()) {
    if (time(width) < time(best) && time(width) < kGain * time(first))
      best = width;
    else if (!second || time(width) < time(second))
      second = width;
  }
  explainQueryTile(model, best, best == first ? second : first);
}

void Chooser::explainQueryTile(const TileCostModel &model, int64_t vectors, int64_t other) {
  queryTile = vectors * target.lanes;
  std::string chosen = formatv("query tile of {0}, {1} vector{2}", queryTile, vectors, vectors == 1 ? "" : "s");
  if (!other)
    return because(chosen);
  TileCostModel::Cost cost = model.get(vectors), against = model.get(other);
  auto ratio = [](double x, double y) { return formatv("{0:f2}", y > 0 ? x / y : 1.0).str(); };
  because(formatv("{0}: at {1} tokens an estimated {2} of the time of {3}, computing {4} of its pairs", chosen,
                  model.getTokens(), ratio(cost.time, against.time), other * target.lanes,
                  ratio(cost.computed, against.computed)));
}

// The weights of a tile leave a quarter of the first-level cache to the rows of K and V that pass. Spans of K and V
// take half of the second-level cache, the queries and outputs of a task a quarter.
void Chooser::chooseKeys() {
  int64_t dims = std::max(known(op.getHeadDim()), known(op.getValueType().getShape().back()));
  int64_t spanKeys = target.l2Bytes / 4 / (4 * dims);
  int64_t fitting = std::min(target.l1Bytes * 3 / 4 / (4 * queryTile), spanKeys) / granule * granule;
  keyTile = overrides.keyTile ? overrides.keyTile : std::max(fitting, granule);
  span = std::max(keyTile, spanKeys / keyTile * keyTile);
  because(formatv("key tile of {0}: its weights, {1} KiB, stay in the first-level cache of {2} KiB", keyTile,
                  keyTile * queryTile * 4 / 1024, target.l1Bytes / 1024));
  int64_t state = 4 * queryTile * (known(op.getHeadDim()) + known(op.getValueType().getShape().back()) + 3);
  group = overrides.group ? overrides.group : std::max<int64_t>(target.l2Bytes / 4 / state, 1);
  because(formatv("{0} query tiles, {1} KiB, share spans of {2} keys: {3} KiB of K and V in the second-level cache of "
                  "{4} KiB",
                  group, group * state / 1024, span,
                  span * 4 * (known(op.getHeadDim()) + known(op.getValueType().getShape().back())) / 1024,
                  target.l2Bytes / 1024));
}

// Scores in f32, weights in bf16 and the output of a query tile are written all the time: with tiles they leave the
// first-level cache half to the keys and values that pass. Pairs take as long as loads from the second level, and the
// sums of a longer tile stay in registers.
void Chooser::chooseTileKeys() {
  int64_t dim = known(op.getHeadDim()), valueDim = known(op.getValueType().getShape().back());
  int64_t bytes = tiles == TileUse::AMX ? target.l1Bytes / 2 : target.l1Bytes;
  int64_t fitting = bytes / (6 * queryTile) / kTileKeys * kTileKeys;
  keyTile = overrides.keyTile ? overrides.keyTile : std::max(fitting, kTileKeys);
  span = std::max(keyTile, getPackedKeys(target.l2Bytes, dim, valueDim, keyTile) / keyTile * keyTile);
  because(formatv("key tile of {0}: scores and weights, {1} KiB, stay in the first-level cache of {2} KiB", keyTile,
                  6 * keyTile * queryTile / 1024, target.l1Bytes / 1024));
  int64_t state = queryTile * (4 * (dim + valueDim + 3) + 2 * dim);
  group = overrides.group ? overrides.group : std::max<int64_t>(target.l2Bytes / 4 / state, 1);
  because(formatv("{0} query tiles, {1} KiB, share spans of {2} keys: {3} KiB of K and packed V in the second-level "
                  "cache of {4} KiB",
                  group, group * state / 1024, span, span * 2 * (dim + valueDim) / 1024, target.l2Bytes / 1024));
}

// A part costs each of its rows the joining of value_dim numbers, one by one; a key costs a vector of rows head_dim +
// value_dim FMAs.
void Chooser::chooseSplit() {
  constexpr int64_t kShare = 64, kJoin = 2; // joining takes one part in 64; 2 FMAs a number
  int64_t dim = known(op.getHeadDim()), valueDim = known(op.getValueType().getShape().back());
  tasks = 2 * target.cores;
  if (!op.isSoftmax()) { // an override is refused where it cannot be followed
    split = overrides.split;
    return because("keys are not split: without a softmax there are no sums to join parts by");
  }
  split =
      overrides.split ? overrides.split : llvm::divideCeil(kShare * kJoin * target.lanes * valueDim, dim + valueDim);
  because(formatv("below {0} tasks, 2 for each of {1} cores, keys are split into parts of at least {2}: joining them "
                  "costs below 1/{3} of their work",
                  tasks, target.cores, split, kShare));
}

ScheduleChoice Chooser::choose() {
  TileUse use = getTileUse(op, target, overrides.keyTile, kTileKeys);
  tiles = use.form;
  granule = tiles ? kTileKeys : getGranule(overrides);
  if (tiles == TileUse::AMX)
    because("bf16 products in AMX tiles of 16 queries x 16 keys or columns of values, runs of keys in blocks of 32");
  else if (tiles == TileUse::Pairs)
    because("bf16 products by vdpbf16ps, runs of keys in blocks of 32");
  else if (!use.why.empty())
    because("products in f32: " + use.why);
  chooseReindexing();
  chooseQueryTile();
  if (tiles)
    chooseTileKeys();
  else
    chooseKeys();
  chooseSplit();
  auto schedule = ScheduleAttr::get(op.getContext(), queryTile, keyTile, /*tail_tile=*/target.lanes, granule, group,
                                    span, split, tasks, reindexing.kind, reindexing.size,
                                    /*warps=*/0, /*stages=*/2, /*pack=*/1);
  return {schedule, std::move(reasons)};
}

struct SelectSchedule : impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;

  void selectForGPU(const ScheduleOverrides &overrides) {
    std::string error;
    FailureOr<GPUModel> gpu = GPUModel::get(chip, error);
    if (failed(gpu)) {
      getOperation().emitError(error);
      return signalPassFailure();
    }
    splitUnionsForGPU(getOperation(), overrides);
    getOperation().walk([&](AttentionOp op) {
      if (!op.getScheduleAttr()) {
        FailureOr<ScheduleChoice> choice = chooseGPUSchedule(op, *gpu, overrides);
        if (failed(choice))
          return signalPassFailure();
        op.setScheduleAttr(choice->schedule);
      }
      if (failed(checkGPUSchedule(op, *gpu, op.getScheduleAttr())))
        signalPassFailure();
    });
  }

  void runOnOperation() override {
    TargetModel target;
    target.lanes = lanes;
    target.rows = rows;
    target.amx = amx;
    target.bf16Pairs = bf16Pairs;
    target.l1Bytes = l1Bytes;
    target.l2Bytes = l2Bytes;
    target.cores = cores;
    for (auto [cost, given] : llvm::zip(target.costs.pair, pairCosts))
      cost = given;
    ScheduleOverrides overrides{queryTile, keyTile, group, split, reindex, pack};
    if (!chip.empty())
      return selectForGPU(overrides);
    splitUnions(getOperation(), target, overrides);
    getOperation().walk([&](AttentionOp op) {
      if (!op.getScheduleAttr())
        op.setScheduleAttr(chooseSchedule(op, target, overrides).schedule);
      if (failed(checkSchedule(op, target, op.getScheduleAttr())))
        signalPassFailure();
    });
  }
};

} // namespace

TileUse getTileUse(AttentionOp op, const TargetModel &target, int64_t keyTile, int64_t granule) {
  Type element = op.getQueryType().getElementType();
  if (!(target.amx || target.bf16Pairs) || element.isF32())
    return {TileUse::None, ""};
  if (!element.isBF16())
    return {TileUse::None, "the CPU multiplies bf16, not f16"};
  if (!op.isSoftmax())
    return {TileUse::None, "weights that are no softmax stay f32"};
  if (op.getTable() || op.getScores())
    return {TileUse::None, op.getTable() ? "products with distances are in f32" : "scores are given, not multiplied"};
  if (keyTile % kTileKeys || granule % kTileKeys)
    return {TileUse::None,
            formatv("bf16 products take keys in blocks of {0}, of which the key tile {1} and the granule "
                    "{2} are to be multiples",
                    kTileKeys, keyTile, granule)};
  return {target.amx ? TileUse::AMX : TileUse::Pairs, ""};
}

int64_t getGranule(const ScheduleOverrides &overrides) { return overrides.keyTile % kGranule == 0 ? kGranule : 1; }

LogicalResult checkSchedule(AttentionOp op, const TargetModel &target, ScheduleAttr schedule) {
  if (schedule.getWarps())
    return op.emitError() << "its schedule has warps = " << schedule.getWarps()
                          << ", which cut it for a GPU, but the target is a CPU; leave warps out";
  for (auto [name, rows] : {std::pair("query_tile", schedule.getQueryTile()), {"tail_tile", schedule.getTailTile()}}) {
    if (rows % target.lanes)
      return op.emitError() << "its schedule has " << name << " = " << rows << ", which is no multiple of "
                            << target.lanes << ", the floats of a vector of the target";
    if (rows > kMaxVectors * target.lanes)
      return op.emitError() << "its schedule has " << name << " = " << rows << ", but a tile has at most "
                            << kMaxVectors << " vectors, here " << kMaxVectors * target.lanes << " rows";
  }
  return success();
}

ScheduleChoice chooseSchedule(AttentionOp op, const TargetModel &target, const ScheduleOverrides &overrides) {
  return Chooser(op, target, overrides).choose();
}

} // namespace attn
