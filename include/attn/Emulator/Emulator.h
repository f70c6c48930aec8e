//===- Emulator.h - GPU kernels run on a CPU --------------------------------===//
#ifndef ATTN_EMULATOR_EMULATOR_H
#define ATTN_EMULATOR_EMULATOR_H

#include "attn/Emulator/FaultKind.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Location.h"
#include <array>
#include <map>
#include <memory>
#include <string>

namespace attn::emulator {

struct EmulatorOptions {
  /// Decides which instructions there are, and how much shared memory.
  std::string chip = "sm_80";
  /// Find races, reads of uninitialised shared memory and reads of copies in flight. Bounds and alignment, barriers and
  /// deadlock are always checked.
  bool checks = true;
  /// Count instructions, bank conflicts and sectors.
  bool counts = true;
  /// Machine code that runs 1.4 times as fast and takes 2.5 times as long to make: it pays from about a second of work.
  bool optimised = true;
  /// Host threads that run blocks; 0: one per core. Results and reports do not depend on it.
  unsigned threads = 0;
  /// Distinct faults that a report holds.
  unsigned maxFaults = 32;
};

using Dim3 = std::array<uint32_t, 3>;

struct LaunchDims {
  Dim3 grid = {1, 1, 1};
  Dim3 block = {32, 1, 1};
  uint32_t dynamicShared = 0;
};

/// The bytes of one kernel argument: a device pointer is the host address of its buffer.
class KernelArgument {
public:
  template <typename T>
  KernelArgument(T value) : bytes(reinterpret_cast<const char *>(&value), sizeof(T)) {
    static_assert(std::is_trivially_copyable_v<T>, "kernel arguments are plain bytes");
  }
  const void *data() const { return bytes.data(); }
  size_t size() const { return bytes.size(); }

private:
  std::string bytes;
};

/// Memory that the kernel may touch; all else is out of bounds.
struct GlobalBuffer {
  void *data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
  std::string name;
};

llvm::StringRef stringify(FaultKind kind);

struct Fault {
  FaultKind kind;
  mlir::Location location;
  std::string text;
  /// Where it was seen first, in the order of the blocks.
  Dim3 block;
  uint32_t warp, lane;
  /// How often this kind of fault happened at this place.
  uint64_t occurrences = 1;

  uint32_t thread() const { return 32 * warp + lane; }
};

struct MemoryCounts {
  /// Executions by a warp, and the bytes that its active lanes moved.
  uint64_t requests = 0, bytes = 0;
  /// Shared memory: passes over the banks, and what they would be without conflicts.
  uint64_t passes = 0, idealPasses = 0;
  /// Global memory: sectors of 32 bytes, and what they would be if the same bytes lay together.
  uint64_t sectors = 0, idealSectors = 0;

  MemoryCounts &operator+=(const MemoryCounts &other);
};

/// What one instruction of the kernel did to memory in the whole launch.
struct AccessCounts : MemoryCounts {
  AccessCounts(mlir::Location location, std::string op) : location(location), op(std::move(op)) {}
  mlir::Location location;
  std::string op;
};

struct LaunchReport {
  std::vector<Fault> faults;
  /// All faults, those without an entry above as well.
  uint64_t faultCount = 0;
  uint64_t blocks = 0;
  /// Instructions that warps executed, by the name of the op.
  std::map<std::string, uint64_t> instructions;
  std::vector<AccessCounts> accesses;

  uint64_t count(llvm::StringRef op) const;
  /// Sums over all accesses.
  MemoryCounts total() const;
  void print(llvm::raw_ostream &os) const;
};

class Program;

/// The kernels of one gpu.module as code of this machine. See docs/Flow.md for what is modelled.
class Emulator {
public:
  /// Emits an error at an op that has no rule.
  static llvm::FailureOr<std::unique_ptr<Emulator>> create(mlir::gpu::GPUModuleOp module,
                                                           const EmulatorOptions &options = {});
  ~Emulator();

  /// Runs all blocks. Fails, with an error at the kernel, if it cannot be started so; faults of the kernel are in the
  /// report.
  llvm::LogicalResult launch(llvm::StringRef kernel, const LaunchDims &dims, llvm::ArrayRef<KernelArgument> arguments,
                             llvm::ArrayRef<GlobalBuffer> buffers, LaunchReport &report) const;

private:
  Emulator(EmulatorOptions options, std::unique_ptr<Program> program);

  EmulatorOptions options;
  std::unique_ptr<Program> program;
};

} // namespace attn::emulator

#endif // ATTN_EMULATOR_EMULATOR_H
