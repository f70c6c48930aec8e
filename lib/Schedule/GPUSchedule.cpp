//===- GPUSchedule.cpp - Tile sizes for a GPU -----------------------------===//
#include "attn/Pattern/Mask.h"
#include "attn/Schedule/Schedule.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using llvm::formatv;

namespace attn {
namespace {

constexpr int64_t kStages = 2, kWarp = 32;
/// Warps of a block, and registers of a thread.
constexpr int64_t kMaxWarps = 32, kMaxRegisters = 255;
/// Output registers of a lane are value_dim / 2 per 16 query rows; beyond this width they and a tile of scores spill.
constexpr int64_t kMaxValueDim = 256;

/// A way to cut: query rows and warps of a block, keys of a tile.
struct Cut {
  int64_t queries, warps, keys, stages = kStages;
};

class GPUChooser {
public:
  GPUChooser(AttentionOp op, const GPUModel &gpu, const ScheduleOverrides &overrides)
      : op(op), gpu(gpu), overrides(overrides), dim(op.getQueryType().getShape().back()),
        valueDim(op.getValueType().getShape().back()), element(op.getQueryType().getElementType()) {}

  FailureOr<ScheduleChoice> choose();
  LogicalResult check(ScheduleAttr schedule);
  GPUResources estimate(const Cut &cut);
  bool tensorCores() { return gpu.tensorCores && !element.isF32(); }

private:
  void because(std::string reason) { reasons.push_back(std::move(reason)); }
  SmallVector<Cut> candidates();
  LogicalResult checkDims();
  int64_t sharedBytes(const Cut &cut);
  int64_t stateRegisters(const Cut &cut);
  FailureOr<Cut> chooseCut();
  void chooseReindexing();
  std::string describeOccupancy(const Cut &cut);

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
  if (!tensorCores())
    return {{64, 4, 32}, {64, 4, 16}, {32, 2, 16}, {16, 1, 16}};
  int64_t wide = std::max(dim, valueDim);
  SmallVector<Cut> cuts;
  if (wide <= 64)
    cuts.push_back({128, 4, 64});
  if (wide <= 128)
    cuts.push_back({128, 8, 64});
  cuts.append({{128, 8, 32}, {64, 4, 64}, {64, 4, 32}, {64, 4, 16}, {32, 2, 16}, {16, 1, 16}});
  return cuts;
}

int64_t GPUChooser::sharedBytes(const Cut &cut) {
  int64_t bytes = tensorCores() ? 2 : 4;
  auto pitch = [&](int64_t width) { return GPUModel::sharedPitch(llvm::alignTo(width, 16), bytes); };
  return cut.queries * pitch(dim) + cut.stages * cut.keys * (pitch(dim) + pitch(valueDim));
}

FailureOr<Cut> GPUChooser::chooseCut() {
  int64_t longest = op.getQueryType().getDimSize(2);
  for (Cut cut : candidates()) {
    if (overrides.queryTile)
      cut.queries = overrides.queryTile, cut.warps = std::max<int64_t>(overrides.queryTile / 16, 1);
    if (overrides.keyTile)
      cut.keys = overrides.keyTile;
    bool mostlyEmpty = !overrides.queryTile && longest > 0 && longest <= cut.queries / 2 && cut.queries > 16;
    if (sharedBytes(cut) <= gpu.sharedBytes && !mostlyEmpty)
      return cut;
  }
  return op.emitError() << "head_dim " << dim << " and value dimension " << valueDim << " need "
                        << sharedBytes({16, 1, 16}) << " bytes of shared memory for the smallest tiles, but a block of "
                        << gpu.chip << " has " << gpu.sharedBytes << "; use a smaller head_dim or another chip";
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
  int64_t words = llvm::alignTo(valueDim, 16) / 2 + cut.keys / 2;
  if (tensorCores() && dim <= 128)
    words += llvm::alignTo(dim, 16) / 4;
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

std::string GPUChooser::describeOccupancy(const Cut &cut) {
  GPUResources r = estimate(cut);
  return formatv("about {0} registers a thread and {1} KiB of shared memory a block: {2} blocks, {3} warps, per "
                 "multiprocessor",
                 r.registers, r.sharedBytes / 1024, r.blocks, r.warps);
}

LogicalResult GPUChooser::checkDims() {
  if (dim < 0 || valueDim < 0)
    return op.emitError("GPU kernels need head_dim and value dimension in the types; write them in place of '?'");
  if (valueDim > kMaxValueDim)
    return op.emitError() << "a value dimension of " << valueDim << " has no GPU code; " << kMaxValueDim
                          << " is the largest. Split the values and run the op once per part";
  return success();
}

LogicalResult GPUChooser::check(ScheduleAttr schedule) {
  if (failed(checkDims()))
    return failure();
  Cut cut = {schedule.getQueryTile(), schedule.getWarps(), schedule.getKeyTile(), schedule.getStages()};
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
  because(formatv("{0} query rows in {1} warps, {2} keys a tile, {3} tiles in shared memory", cut->queries, cut->warps,
                  cut->keys, kStages));
  because(describeOccupancy(*cut));
  int64_t split = overrides.split ? overrides.split : 8 * cut->keys;
  auto refuse = [&] { return op.emitError(); };
  auto schedule =
      ScheduleAttr::getChecked(function_ref<InFlightDiagnostic()>(refuse), op.getContext(), cut->queries, cut->keys,
                               /*tail_tile=*/cut->queries, /*granule=*/int64_t(16),
                               /*group=*/int64_t(1), /*span=*/cut->keys, split, /*tasks=*/2 * gpu.multiprocessors,
                               reindexing.kind, reindexing.size, cut->warps, kStages);
  if (!schedule)
    return failure();
  return ScheduleChoice{schedule, std::move(reasons)};
}

} // namespace

GPUResources estimateResources(AttentionOp op, const GPUModel &gpu, ScheduleAttr schedule) {
  ScheduleOverrides none;
  return GPUChooser(op, gpu, none)
      .estimate({schedule.getQueryTile(), schedule.getWarps(), schedule.getKeyTile(), schedule.getStages()});
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
  if (op.getJoinedOutput())
    return op.emitError("join has no code for a GPU yet; merge the results by their log-sum-exps outside");
  return GPUChooser(op, gpu, overrides).choose();
}

} // namespace attn
