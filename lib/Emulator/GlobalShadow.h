//===- GlobalShadow.h - Which blocks touched which global memory ------------===//
#ifndef ATTN_LIB_EMULATOR_GLOBALSHADOW_H
#define ATTN_LIB_EMULATOR_GLOBALSHADOW_H

#include "Program.h"
#include "attn/Emulator/Emulator.h"
#include <optional>

namespace attn::emulator {

/// All of a launch that its blocks share.
struct Launch {
  const Program &program;
  const KernelInfo &kernel;
  const EmulatorOptions &options;
  const LaunchDims &dims;
  llvm::ArrayRef<const void *> arguments;
  llvm::ArrayRef<GlobalBuffer> buffers;
  uint64_t sharedBytes;

  Dim3 blockId(uint64_t number) const {
    const Dim3 &grid = dims.grid;
    return {uint32_t(number % grid[0]), uint32_t(number / grid[0] % grid[1]), uint32_t(number / grid[0] / grid[1])};
  }
};

/// Faults of one kind at one place.
struct FaultRecord {
  uint64_t block;
  Fault fault;
};
using FaultMap = std::map<std::pair<uint32_t, uint32_t>, FaultRecord>; // by site and kind

/// Blocks of a launch are not ordered: nothing that one writes may be touched by another. What is remembered of each
/// piece does not depend on the order in which blocks ran, and is looked at when all have ended.
class GlobalShadow {
public:
  explicit GlobalShadow(const Launch &launch);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow &) = delete;

  /// Null where no race is looked for.
  GlobalPage **pagesOf(size_t buffer) { return pages[buffer].empty() ? nullptr : pages[buffer].data(); }
  static void makePage(GlobalPage **page);
  /// Adds the races; answers how many pieces had one.
  uint64_t collect(FaultMap &faults) const;

private:
  struct Race {
    uint64_t before, after; // accesses of different blocks, one of which writes
    bool beforeReads;
  };
  static std::optional<Race> find(const Accesses &writes, const Accesses &reads);
  void add(FaultMap &faults, const GlobalBuffer &buffer, uint64_t byte, const Race &race) const;

  const Launch &launch;
  std::vector<std::vector<GlobalPage *>> pages; // by buffer
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_GLOBALSHADOW_H
