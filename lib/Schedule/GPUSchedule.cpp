//===- GPUSchedule.cpp - Tile sizes for a GPU -----------------------------===//
#include "TileCost.h"
#include "attn/Pattern/Mask.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::formatv;

namespace attn {
namespace {

constexpr int64_t kMaxStages = 4, kWarp = 32;
/// Warps of a block, and registers of a thread.
constexpr int64_t kMaxWarps = 32, kMaxRegisters = 255;
/// Output registers of a lane are value_dim / 2 per 16 query rows. Beyond this width they and a tile of scores would
/// spill, so several warps share the columns.
constexpr int64_t kWarpValueDim = 256;

/// More of a thread for outputs, scores and queries would spill something in loops over tiles. Score regions, and
/// masks that read tensors, need registers too, and so do copies where there are two warps for them.
constexpr int64_t kStateRegisters = 176, kRegionRegisters = 16, kCopyRegisters = 16;

/// More warps would have fewer registers each than kernels need.
constexpr int64_t kChosenWarps = 8;

/// Rows by which query tiles are compared.
constexpr int64_t kVectorRows = 32;
/// What a query tile takes, in time of one key passing 32 query rows of a wide tile: issue rates and counts of
/// instructions (docs/Performance.md), not measured. On tensor cores narrow tiles copy more bytes of keys and values
/// per product, and have fewer products for each ldmatrix; FMAs take so long that little else counts.
constexpr TileCosts kMatrixCosts = {/*pair=*/{1.2, 1.05, 1.02, 1}, /*masked=*/0.25, /*tile=*/16, /*run=*/8};
constexpr TileCosts kFMACosts = {/*pair=*/{1.02, 1, 1, 1}, /*masked=*/0.03, /*tile=*/2, /*run=*/1};
/// A fragment of keys or values that serves 16 rows of a warp, to one that serves 32.
constexpr double kHalfUsed = 1.25;
/// What a narrower tile has to save by these estimates.
constexpr double kGain = 0.95;

/// A way to cut: query rows and warps of a block, keys of a tile, query heads that share the rows.
struct Cut {
  int64_t queries, warps, keys, pack = 1, stages = 2;
};

class GPUChooser {
public:
  GPUChooser(AttentionOp op, const GPUModel &gpu, const ScheduleOverrides &overrides)
      : op(op), gpu(gpu), overrides(overrides), dim(op.getHeadDim()), valueDim(op.getValueType().getShape().back()),
        element(op.getQueryType().getElementType()) {}

  FailureOr<ScheduleChoice> choose();
  LogicalResult check(ScheduleAttr schedule);
  GPUResources estimate(const Cut &cut);
  bool tensorCores() { return gpu.tensorCores && !element.isF32(); }

private:
  void because(std::string reason) { reasons.push_back(std::move(reason)); }
  SmallVector<Cut> candidates();
  LogicalResult checkDims();
  /// Parts of the columns of values.
  int64_t parts() { return llvm::divideCeil(valueDim, kWarpValueDim); }
  int64_t sharedBytes(const Cut &cut);
  int64_t stateRegisters(const Cut &cut);
  /// The most queries that a class has; 0 where only run time knows.
  int64_t classQueries();
  int64_t choosePack(int64_t rows);
  bool regionsNeedRegisters();
  bool mostlyEmpty(const Cut &cut);
  FailureOr<Cut> chooseCut();
  Cut narrowForMask(ArrayRef<Cut> cuts);
  void chooseReindexing();
  double tileBytes(const Cut &cut);
  double bytesReceived(const Cut &cut);
  double bytesConsumed(const Cut &cut);
  void chooseStages(Cut &cut);

  AttentionOp op;
  const GPUModel &gpu;
  const ScheduleOverrides &overrides;
  int64_t dim, valueDim;
  Type element;
  Reindexing reindexing;
  std::vector<std::string> reasons;
};

// From the most work per byte fetched to the least. Register counts of ptxas that these follow: docs/Performance.md.
SmallVector<Cut> GPUChooser::candidates() {
  SmallVector<Cut> cuts;
  int64_t wide = std::max(dim, valueDim), limit = kStateRegisters - (regionsNeedRegisters() ? kRegionRegisters : 0);
  auto addIfFits = [&](Cut cut, int64_t more) {
    if (tensorCores() && stateRegisters(cut) + more <= limit)
      cuts.push_back(cut);
  };
  for (int64_t keys : {64, 32}) // a fragment of keys or values serves 32 rows of a warp
    addIfFits({128, 4, keys}, 0);
  if (tensorCores() && wide <= 128)
    cuts.push_back({128, 8, 64});
  if (tensorCores() && parts() == 1)
    cuts.push_back({128, 8, 32});
  for (int64_t keys : {64, 32})
    addIfFits({64, 2, keys}, kCopyRegisters);
  if (tensorCores() && wide <= 192) // beyond, scores of 64 keys do not fit the registers
    cuts.push_back({64, 4, 64});
  if (parts() == 1)
    cuts.push_back({64, 4, 32});
  cuts.push_back({64, 4, 16});
  for (int64_t rows : {32, 16})
    for (int64_t keys : {64, 32, 16})
      if (keys < 64 || (tensorCores() && parts() == 1))
        cuts.push_back({rows, rows / 16, keys});
  // A last resort, and all that chips need whose threads wait for what they copy.
  cuts.push_back({16, 1, 16, /*pack=*/1, /*stages=*/1});
  for (Cut &cut : cuts) {
    cut.warps *= parts();
    if (!gpu.tensorCores)
      cut.stages = 1;
  }
  llvm::erase_if(cuts, [](const Cut &cut) { return cut.warps > kChosenWarps; });
  return cuts;
}

// As KernelShape::padded lays rows out.
int64_t GPUChooser::sharedBytes(const Cut &cut) {
  int64_t bytes = tensorCores() ? 2 : 4, shared = std::max<int64_t>(16 * cut.warps / cut.queries, 1);
  auto pitch = [&](int64_t width) {
    return GPUModel::sharedPitch(llvm::alignTo(width, width == valueDim ? 16 * shared : 16), bytes);
  };
  return cut.queries * pitch(dim) + cut.stages * cut.keys * (pitch(dim) + pitch(valueDim));
}

int64_t GPUChooser::classQueries() {
  int64_t queries = std::max<int64_t>(op.getQueryType().getDimSize(2), 0);
  if (reindexing.kind == ReindexKind::Block)
    return queries ? std::min(queries, reindexing.size) : reindexing.size;
  return llvm::divideCeil(queries, reindexing.size);
}

// Where queries are known to be few, all heads that read the same keys go into one tile, so that these are fetched
// once.
int64_t GPUChooser::choosePack(int64_t rows) {
  if (overrides.pack)
    return overrides.pack;
  int64_t queries = classQueries(), heads = op.getQueryType().getDimSize(1), keyHeads = op.getKeyType().getDimSize(1);
  if (queries == 0 || queries >= candidates().front().queries || heads <= 0 || keyHeads <= 0)
    return 1;
  int64_t pack = std::min(heads / keyHeads, rows);
  while (heads / keyHeads % pack != 0)
    --pack;
  return pack;
}

bool GPUChooser::regionsNeedRegisters() {
  if (op.getScoreBlock())
    return true;
  auto isTensor = [](Value v) { return isa<TensorType>(v.getType()); };
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(op->getRegions(), outside);
  return llvm::any_of(outside, isTensor);
}

bool GPUChooser::mostlyEmpty(const Cut &cut) {
  int64_t queries = classQueries();
  return !overrides.queryTile && queries > 0 && queries * cut.pack <= cut.queries / 2 && cut.queries > 16;
}

FailureOr<Cut> GPUChooser::chooseCut() {
  SmallVector<Cut> cuts;
  for (Cut cut : candidates()) {
    if (overrides.queryTile)
      cut.queries = overrides.queryTile, cut.warps = parts() * std::max<int64_t>(overrides.queryTile / 16, 1);
    if (overrides.keyTile)
      cut.keys = overrides.keyTile;
    cut.pack = choosePack(cut.queries);
    if (cut.pack <= cut.queries && sharedBytes(cut) <= gpu.sharedBytes && !mostlyEmpty(cut))
      cuts.push_back(cut);
  }
  if (!cuts.empty())
    return narrowForMask(cuts);
  if (overrides.pack > 16)
    return op.emitError() << "no query tile has rows for " << overrides.pack << " heads; pack fewer";
  if (overrides.queryTile || overrides.keyTile)
    return op.emitError() << "tiles of the given query-tile or key-tile do not fit the " << gpu.sharedBytes
                          << " bytes of shared memory that a block of " << gpu.chip << " has; use smaller ones";
  return op.emitError() << "head_dim " << dim << " and value dimension " << valueDim << " need "
                        << sharedBytes({16, parts(), 16, 1, 1})
                        << " bytes of shared memory for the smallest tiles, but a "
                        << "block of " << gpu.chip << " has " << gpu.sharedBytes
                        << "; use a smaller head_dim or another chip";
}

// A tile computes the union of what its rows need.
Cut GPUChooser::narrowForMask(ArrayRef<Cut> cuts) {
  const Cut &first = cuts.front();
  if (!op.getMaskBlock() || overrides.queryTile || first.pack > 1)
    return first;
  TargetModel rows = getGPUCosts(tensorCores());
  TileCostModel model(op, reindexing, rows, /*granule=*/first.keys);
  auto cost = [&](const Cut &cut) {
    TileCostModel::Cost cost = model.get(cut.queries / kVectorRows);
    cost.time *= tensorCores() && cut.queries < 32 * cut.warps ? kHalfUsed : 1;
    return cost;
  };
  const Cut *best = &first;
  for (const Cut &cut : cuts.drop_front())
    if (cut.queries >= kVectorRows && cut.queries < best->queries &&
        cost(cut).time < kGain * std::min(cost(first).time, cost(*best).time))
      best = &cut;
  if (best != &first)
    because(formatv("query tile of {0}: at {1} tokens an estimated {2:f2} of the time of {3}, computing {4:f2} of its "
                    "pairs",
                    best->queries, model.getTokens(), cost(*best).time / cost(first).time, first.queries,
                    cost(*best).computed / cost(first).computed));
  return *best;
}

void GPUChooser::chooseReindexing() {
  if (!overrides.reindex)
    return because("reindexing off by option");
  reindexing = findReindexing(op);
  if (reindexing.kind != ReindexKind::Dense)
    because(formatv("the mask keeps pairs of one {0} of {1}: smaller dense problems",
                    reindexing.kind == ReindexKind::Residue ? "residue modulo" : "block", reindexing.size));
}

/// Of a thread, for outputs, scores and queries.
int64_t GPUChooser::stateRegisters(const Cut &cut) {
  int64_t rowBlocks = std::max<int64_t>(cut.queries / 16 / cut.warps, 1);
  int64_t columns = llvm::alignTo(llvm::divideCeil(valueDim, std::max<int64_t>(16 * cut.warps / cut.queries, 1)), 16);
  int64_t words = (columns + cut.keys) / 2;
  if (tensorCores()) { // queries that are not held are there while they meet keys
    int64_t width = llvm::alignTo(dim, 16);
    words += GPUModel::holdsQueries(16 * rowBlocks, width) ? width / 4 : 8;
  }
  return words * rowBlocks;
}

GPUResources GPUChooser::estimate(const Cut &cut) {
  GPUResources resources;
  resources.registers = std::min<int64_t>(llvm::alignTo(stateRegisters(cut) + 64, 8), kMaxRegisters);
  resources.sharedBytes = sharedBytes(cut);
  int64_t byRegisters = GPUModel::kRegisters / (resources.registers * cut.warps * kWarp);
  int64_t byShared = gpu.multiprocessorBytes / (resources.sharedBytes + 1024);
  resources.blocks = std::max<int64_t>(std::min(byRegisters, byShared), 1);
  resources.warps = resources.blocks * cut.warps;
  return resources;
}

/// Bytes of a tile of keys and values in global memory.
double GPUChooser::tileBytes(const Cut &cut) {
  return double(cut.keys) * (dim + valueDim) * element.getIntOrFloatBitWidth() / 8;
}

/// Bytes a cycle that a multiprocessor receives with the tiles it has under way.
double GPUChooser::bytesReceived(const Cut &cut) {
  return (cut.stages - 1) * tileBytes(cut) * estimate(cut).blocks / GPUModel::kLatency;
}

/// Bytes a cycle that its products consume, as far as memory has them.
double GPUChooser::bytesConsumed(const Cut &cut) {
  double products = double(cut.queries) * cut.keys * (dim + valueDim);
  double cycles = products / (tensorCores() ? gpu.products : gpu.fmas);
  return std::min(tileBytes(cut) / cycles, gpu.memoryBytes);
}

// The fewest that keep memory busy: more take shared memory from other blocks.
void GPUChooser::chooseStages(Cut &cut) {
  if (cut.stages == 1)
    return because(gpu.tensorCores ? "1 tile of keys and values in shared memory: more do not fit"
                                   : "1 tile of keys and values in shared memory: threads wait for what they copy");
  Cut more = cut;
  while (bytesReceived(more) < bytesConsumed(more) && more.stages < kMaxStages) {
    ++more.stages;
    if (sharedBytes(more) > gpu.sharedBytes)
      break;
    if (bytesReceived(more) > bytesReceived(cut))
      cut = more;
  }
  because(formatv("{0} tiles of keys and values in shared memory: those under way bring {1:f1} bytes a cycle, {2:f1} "
                  "can be used",
                  cut.stages, bytesReceived(cut), bytesConsumed(cut)));
}

LogicalResult GPUChooser::checkDims() {
  if (dim < 0 || valueDim < 0)
    return op.emitError("GPU kernels need head_dim and value dimension in the types; write them in place of '?'");
  return success();
}

LogicalResult GPUChooser::check(ScheduleAttr schedule) {
  if (failed(checkDims()))
    return failure();
  Cut cut = {schedule.getQueryTile(), schedule.getWarps(), schedule.getKeyTile(),
             std::max<int64_t>(schedule.getPack(), 1), schedule.getStages()};
  if (cut.warps < 1 || cut.warps > kMaxWarps)
    return op.emitError() << "its schedule has warps = " << cut.warps << ", but a block of GPU threads has 1 to "
                          << kMaxWarps << "; give it one for every 16 or 32 rows of query_tile";
  if (sharedBytes(cut) > gpu.sharedBytes)
    return op.emitError() << "the tiles of its schedule take " << sharedBytes(cut)
                          << " bytes of shared memory, but a block of " << gpu.chip << " has " << gpu.sharedBytes
                          << "; use a smaller query_tile or key_tile, or fewer stages";
  if (stateRegisters(cut) > kMaxRegisters)
    return op.emitError() << "the tiles of its schedule take " << stateRegisters(cut)
                          << " registers of a thread for queries, scores and outputs, but there are " << kMaxRegisters
                          << "; use a smaller query_tile or key_tile, or more warps";
  return success();
}

FailureOr<ScheduleChoice> GPUChooser::choose() {
  if (failed(checkDims()))
    return failure();
  chooseReindexing();
  FailureOr<Cut> cut = chooseCut();
  if (failed(cut))
    return failure();
  because(tensorCores()     ? "products by mma.sync m16n8k16"
          : element.isF32() ? "products by plain FMAs: f32 keeps its precision"
                            : "products by plain FMAs: the chip has no mma.sync and ldmatrix of this form");
  if (cut->pack > 1)
    because(formatv("few queries: {0} query heads share a tile, and read keys and values once", cut->pack));
  because(formatv("{0} query rows in {1} warps, {2} keys a tile", cut->queries, cut->warps, cut->keys));
  if (parts() > 1 && !overrides.queryTile)
    because(formatv("{0} warps share the columns of the values: {1} a warp fit its registers", parts(),
                    llvm::divideCeil(valueDim, parts())));
  chooseStages(*cut);
  int64_t split = overrides.split || !op.isSoftmax() ? overrides.split : (cut->queries > 32 ? 8 : 4) * cut->keys;
  auto refuse = [&] { return op.emitError(); };
  auto schedule =
      ScheduleAttr::getChecked(function_ref<InFlightDiagnostic()>(refuse), op.getContext(), cut->queries, cut->keys,
                               /*tail_tile=*/cut->queries, /*granule=*/int64_t(16),
                               /*group=*/int64_t(1), /*span=*/cut->keys, split, /*tasks=*/2 * gpu.multiprocessors,
                               reindexing.kind, reindexing.size, cut->warps, cut->stages, cut->pack);
  if (!schedule)
    return failure();
  return ScheduleChoice{schedule, std::move(reasons)};
}

} // namespace

TargetModel getGPUCosts(bool tensorCores) {
  TargetModel rows;
  rows.lanes = kVectorRows, rows.costs = tensorCores ? kMatrixCosts : kFMACosts;
  return rows;
}

GPUResources estimateResources(AttentionOp op, const GPUModel &gpu, ScheduleAttr schedule) {
  ScheduleOverrides none;
  return GPUChooser(op, gpu, none)
      .estimate({schedule.getQueryTile(), schedule.getWarps(), schedule.getKeyTile(), schedule.getPack(),
                 schedule.getStages()});
}

bool usesTensorCores(AttentionOp op, const GPUModel &gpu) {
  ScheduleOverrides none;
  return GPUChooser(op, gpu, none).tensorCores();
}

std::vector<Fallback> findGPUFallbacks(AttentionOp op, const GPUModel &gpu) {
  if (op.getQueryType().getElementType().isF32() || gpu.unused.empty())
    return {};
  StringRef instead = usesTensorCores(op, gpu) ? "mma.sync" : "plain FMAs";
  return {{op.getLoc(), formatv("products by {0}, though {1} has {2}", instead, gpu.chip, gpu.unused),
           formatv("there is no code for {0} yet", gpu.unused)}};
}

LogicalResult checkGPUSchedule(AttentionOp op, const GPUModel &gpu, ScheduleAttr schedule) {
  ScheduleOverrides none;
  return GPUChooser(op, gpu, none).check(schedule);
}

FailureOr<ScheduleChoice> chooseGPUSchedule(AttentionOp op, const GPUModel &gpu, const ScheduleOverrides &overrides) {
  return GPUChooser(op, gpu, overrides).choose();
}

} // namespace attn
