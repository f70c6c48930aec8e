//===- Schedule.h - Tile sizes and why --------------------------*- C++ -*-===//
#ifndef ATTN_SCHEDULE_SCHEDULE_H
#define ATTN_SCHEDULE_SCHEDULE_H

#include "attn/Pattern/Explain.h"
#include "attn/Schedule/GPUModel.h"
#include "attn/Schedule/TargetModel.h"
#include <string>
#include <vector>

namespace attn {

/// Choices that are made already; 0 leaves one open.
struct ScheduleOverrides {
  int64_t queryTile = 0, keyTile = 0, group = 0, split = 0;
  bool reindex = true;
  int64_t pack = 0; // GPU
};

struct ScheduleChoice {
  ScheduleAttr schedule;
  std::vector<std::string> reasons; // one sentence per decision
};

/// Chooses how an attention op is cut into tiles on a target: from the shape of its mask, head_dim, vector width and
/// cache.
ScheduleChoice chooseSchedule(AttentionOp op, const TargetModel &target, const ScheduleOverrides &overrides = {});

/// Attentions over lists of rows become attentions over gathered rows.
void expandRows(mlir::Operation *root);

/// Runs unions of patterns, where that is less work, as attentions that join: see SplitUnion.cpp.
void splitUnions(mlir::Operation *root, const TargetModel &target, const ScheduleOverrides &overrides = {});
void splitUnionsForGPU(mlir::Operation *root, const ScheduleOverrides &overrides = {});

/// What query tiles cost on a GPU, a vector being 32 rows.
TargetModel getGPUCosts(bool tensorCores);

/// Keys in which masks are told apart.
int64_t getGranule(const ScheduleOverrides &overrides);

/// Is there code for a schedule, which may be written by hand? Fails with a located message otherwise.
mlir::LogicalResult checkSchedule(AttentionOp op, const TargetModel &target, ScheduleAttr schedule);
mlir::LogicalResult checkGPUSchedule(AttentionOp op, const GPUModel &gpu, ScheduleAttr schedule);

/// Are bf16 products of an op made of packed tiles, and if not, though the CPU has instructions for it, why?
struct TileUse {
  enum Form { None, Pairs, AMX } form; // by vdpbf16ps or in tile registers
  std::string why;                     // empty where the CPU has neither, or the element type is f32
};
TileUse getTileUse(AttentionOp op, const TargetModel &target, int64_t keyTile, int64_t granule);

/// What a block of threads takes of a multiprocessor, by our estimate.
struct GPUResources {
  int64_t registers;   // of a thread
  int64_t sharedBytes; // of a block
  int64_t blocks;      // that a multiprocessor holds at a time
  int64_t warps;       // of these blocks together
};
GPUResources estimateResources(AttentionOp op, const GPUModel &gpu, ScheduleAttr schedule);

/// Whether the products of an op run on tensor cores.
bool usesTensorCores(AttentionOp op, const GPUModel &gpu);

/// What of the chip an op does not use though it would be faster.
std::vector<Fallback> findGPUFallbacks(AttentionOp op, const GPUModel &gpu);

/// The same for a GPU. Fails, with a located message, where no tile fits the chip.
mlir::FailureOr<ScheduleChoice> chooseGPUSchedule(AttentionOp op, const GPUModel &gpu,
                                                  const ScheduleOverrides &overrides = {});

} // namespace attn

#endif // ATTN_SCHEDULE_SCHEDULE_H
