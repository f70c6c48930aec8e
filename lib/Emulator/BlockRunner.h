//===- BlockRunner.h - One block of threads at a time -----------------------===//
#ifndef ATTN_LIB_EMULATOR_BLOCKRUNNER_H
#define ATTN_LIB_EMULATOR_BLOCKRUNNER_H

#include "Fiber.h"
#include "GlobalShadow.h"
#include <optional>

namespace attn::emulator {

/// Runs blocks on one thread of the host: a fiber per warp, which runs until it waits at a barrier.
class BlockRunner {
public:
  BlockRunner(const Launch &launch, GlobalShadow &global);
  ~BlockRunner();

  void run(uint64_t blockNumber);

  FaultMap faults;
  uint64_t faultCount = 0;
  std::vector<SiteCounts> siteCounts;
  std::vector<uint64_t> regionCounts;

private:
  struct WarpRun;
  /// A barrier of the block while warps wait at it.
  struct Barrier {
    uint32_t arrived = 0, expected = 0;
    uint32_t held = 0; // predicates of a reducing barrier
    std::vector<WarpRun *> waiting;
    uint32_t clocks[kMaxWarps] = {};
  };
  static constexpr uint32_t kBarriers = 16;

  static const Services services;
  void reset(uint64_t blockNumber);
  void resetWarp(uint32_t index, const Dim3 &blockId);
  void reportDeadlock();
  void arrive(WarpRun &warp, uint32_t site, uint32_t id, uint32_t threads, bool waits);
  void release(Barrier &barrier);
  void growCopies(WarpRun &warp);
  void report(const Warp &warp, FaultKind kind, uint32_t site, uint32_t lane, std::string text);
  std::string describe(const Warp &warp, FaultKind kind, uint32_t lane, uint64_t detail, uint32_t other) const;
  /// Of the op that wrote shared memory last.
  mlir::Location writerLocation(uint64_t address) const;
  std::string describeAddress(uint64_t address) const;

  const Launch &launch;
  Dim3 blockId{};
  ThreadBlock block{};
  std::vector<Buffer> buffers;
  std::vector<std::unique_ptr<WarpRun>> warps;
  std::vector<uint32_t> shadow;
  char *sharedMemory = nullptr;
  Barrier barriers[kBarriers];
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_BLOCKRUNNER_H
