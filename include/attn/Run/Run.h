//===- Run.h - Compile a spec in process, run, check and time it ------------===//
//
// What attn-run does, for whoever wants it without the tool.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_RUN_RUN_H
#define ATTN_RUN_RUN_H

#include "attn/Emulator/Emulator.h"
#include "attn/Inputs/Inputs.h"
#include "attn/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// How tensors lie in memory.
enum class Layout {
  Contiguous,
  Bshd,       // [batch, tokens, heads, head_dim] in memory
  Padded,     // gaps behind every row, head and batch, full of NaN
  Broadcast,  // batch stride 0 for rank-4 inputs: batch 0 serves for all
  Far,        // batches 2^31 elements apart
  Transposed, // the last dimension of rank-4 inputs is strided: must be refused
};

/// Against which side of every tensor an unreadable page lies.
enum class Guard { None, After, Before };

struct RunOptions {
  std::optional<GPUModel> gpu; // kernels for it, run by the emulator or on the first GPU of this machine
  bool emulate = true;
  bool emulatorChecks = true; // find races and the like, count bank conflicts and sectors
  std::string function;       // needed where the spec has several
  std::string cpu = "native"; // as TargetModel::get takes it; what this machine cannot run is refused
  bool emulateTiles = false;  // tile instructions (AMX) become calls
  ScheduleOverrides schedule;
  llvm::SmallVector<InputOptions, 1> inputs;  // one run each, of one compiled kernel
  std::map<std::string, std::string> outputs; // name of a result or an argument to .npy file
  bool reference = false;                     // evaluate the reference instead of compiled code
  bool check = false;
  double benchSeconds = 0; // 0: no timing
  int threads = 0;         // 0: as many as OpenMP takes
  Layout layout = Layout::Contiguous;
  Guard guard = Guard::None;
};

/// The result of --check for one function result.
struct CheckReport {
  std::string name, type; // of the elements
  int64_t rows = 0, totalRows = 0;
  double maxError = 0, plainError = 0, bound = 0;
  std::string worst; // "[0, 3, 17, 5]: 0.5 instead of 0.25"; where the error is largest
  bool passed = false;
};

/// The result of --bench. Times are seconds of one call.
struct BenchReport {
  int64_t runs = 0;
  double median = 0, low = 0, high = 0; // of whole calls; low and high: the 10th and 90th percentile
  double plan = 0;                      // median of NAME_plan alone; 0 without a plan
  int threads = 1;
};

/// Work that masks leave, and what is around attention.
struct WorkReport {
  double pairs = 0, kept = 0, flops = 0;
  bool sampled = false; // what is kept was counted in some rows only
};

/// What the emulator saw of the kernels.
struct EmulationReport {
  uint64_t launches = 0, blocks = 0, multiplies = 0; // multiplies: mma.sync of a warp
  uint64_t instructions = 0;                         // ops that a warp executed
  uint64_t sharedPasses = 0, idealSharedPasses = 0;  // over the banks of shared memory; without conflicts
  uint64_t sectors = 0, idealSectors = 0;            // of 32 bytes of global memory; if each request lay together
  double seconds = 0;

  void add(const emulator::LaunchReport &launch);
  /// Products of 64 x 64 tiles with head_dim 64, 256 mma.sync for scores and output; 0 where there are no tensor cores.
  double tilesPerSecond() const { return seconds > 0 ? multiplies / 256.0 / seconds : 0; }
};

struct RunReport {
  std::optional<EmulationReport> emulation;
  std::string function;
  llvm::SmallVector<std::pair<std::string, std::string>> inputs, results; // name to type, "1x8x4096x64xf32"
  llvm::SmallVector<CheckReport> checks;
  std::optional<BenchReport> bench;
  std::optional<WorkReport> work;
  double compileSeconds = 0;
  bool passed() const;
};

/// Compiles one function of `module` and runs it once for each of the inputs; `done` gets every report as it is made.
/// Errors that belong to a place in the spec are emitted as diagnostics too.
llvm::Error runSpec(mlir::ModuleOp module, const RunOptions &options, llvm::function_ref<void(const RunReport &)> done);

/// A few lines for a person, or one line of JSON.
void printReport(const RunReport &report, llvm::raw_ostream &os);
void printReportAsJSON(const RunReport &report, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_RUN_RUN_H
