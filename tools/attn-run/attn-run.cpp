//===- attn-run.cpp - Compile a spec in process, run, check and time it -----===//
#include "../Spec.h"
#include "attn/Run/Tune.h"
#include "attn/Support/Files.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"

using namespace llvm;
using attn::tools::Switch;

namespace {

cl::OptionCategory category("attn-run options");

struct Options {
  attn::tools::SpecOptions spec{category};
  cl::opt<std::string> function{"function", cl::desc("Function to run, where the spec has several"),
                                cl::value_desc("NAME"), cl::cat(category)};
  cl::list<std::string> inputs{"input", cl::desc("Argument from a file; may be repeated"),
                               cl::value_desc("NAME=FILE.npy"), cl::cat(category)};
  cl::list<std::string> random{
      "random", cl::ValueOptional,
      cl::desc("Draw the other arguments; extents are B, H, Hkv, N, M, D, Dv. Repeat it to run one "
               "kernel on several"),
      cl::value_desc("B=1,H=8,N=4096"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of --random (0)"), cl::value_desc("N"), cl::init(0), cl::cat(category)};
  cl::list<std::string> outputs{"output", cl::desc("Write a result, or an argument as it was drawn; may be repeated"),
                                cl::value_desc("NAME=FILE.npy"), cl::cat(category)};
  cl::opt<bool> check{"check",
                      cl::desc("Compare with the float64 reference; fail beyond twice the error of plain f32, or 4 ulp "
                               "(docs/Spec.md, Numerics)"),
                      cl::cat(category)};
  cl::opt<std::string> bench{"bench", cl::ValueOptional, cl::desc("Time calls for so long (1)"),
                             cl::value_desc("SECONDS"), cl::cat(category)};
  cl::opt<std::string> tune{"tune",
                            cl::desc("Search tile sizes, each tried for the seconds of --bench (0.3), and write them "
                                     "to a file, which attn-compile and attn-run read as @FILE"),
                            cl::value_desc("FILE"), cl::cat(category)};
  cl::opt<int> threads{"threads", cl::desc("OpenMP threads (all)"), cl::value_desc("N"), cl::init(0),
                       cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print one JSON object"), cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("What to compile for and run on: cpu, cuda or cuda-emulated (cpu)"),
                              cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> chip{"chip", cl::desc("The GPU to compile for: sm_80, ... (sm_80)"), cl::value_desc("NAME"),
                            cl::init("sm_80"), cl::cat(category)};
  cl::opt<Switch> checks{"emulator-checks", cl::desc("Look for races, count bank conflicts and sectors (on)"),
                         cl::init(Switch::On), cl::cat(category), attn::tools::switchValues()};
  cl::opt<std::string> cpu{"cpu", cl::desc("CPU to compile for (native), with features behind it as native,-amx-tile"),
                           cl::value_desc("NAME"), cl::init("native"), cl::cat(category)};
  cl::opt<bool> emulateTiles{"emulate-tiles", cl::desc("Run AMX instructions as calls, on a machine without them"),
                             cl::cat(category)};
  attn::tools::ScheduleOptions schedule{category};
  cl::opt<bool> reference{"reference", cl::desc("Evaluate the definition in float64 instead of compiling"),
                          cl::cat(category)};
  cl::opt<attn::Layout> layout{
      "strides", cl::desc("How tensors lie in memory"), cl::init(attn::Layout::Contiguous), cl::cat(category),
      cl::values(clEnumValN(attn::Layout::Contiguous, "contiguous", "row-major"),
                 clEnumValN(attn::Layout::Bshd, "bshd", "[batch, tokens, heads, head_dim]"),
                 clEnumValN(attn::Layout::Padded, "padded", "gaps full of NaN behind rows, heads and batches"),
                 clEnumValN(attn::Layout::Broadcast, "broadcast", "batch stride 0"),
                 clEnumValN(attn::Layout::Far, "far", "batches 2^31 elements apart"),
                 clEnumValN(attn::Layout::Transposed, "transposed", "last dimension strided (refused)"))};
  cl::opt<attn::Guard> guard{"guard", cl::desc("An unreadable page beside every tensor"), cl::init(attn::Guard::None),
                             cl::cat(category),
                             cl::values(clEnumValN(attn::Guard::After, "after", "behind the last element"),
                                        clEnumValN(attn::Guard::Before, "before", "before the first element"))};
};

Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// "NAME=FILE" entries into a map.
Error readFiles(const cl::list<std::string> &list, std::map<std::string, std::string> &files) {
  for (const std::string &entry : list)
    if (Error error = attn::readFileOption("--" + list.ArgStr.str(), entry, files))
      return error;
  return Error::success();
}

Error readInputs(const Options &given, attn::RunOptions &options) {
  attn::InputOptions inputs;
  inputs.seed = given.seed;
  inputs.random = given.random.getNumOccurrences() > 0;
  if (Error error = readFiles(given.inputs, inputs.files))
    return error;
  options.inputs.assign(std::max<size_t>(1, given.random.size()), inputs);
  for (auto [text, run] : zip(given.random, options.inputs))
    if (Error error = attn::readExtentsOption("--random", text, run.extents))
      return error;
  if (options.inputs.size() > 1 && !given.outputs.empty())
    return fail("--output with several --random would overwrite its file; give one --random");
  return readFiles(given.outputs, options.outputs);
}

Error readSchedule(const Options &given, attn::RunOptions &options) {
  std::string message;
  auto target = attn::TargetModel::get(given.cpu, /*triple=*/"", message);
  if (failed(target))
    return fail("--cpu=" + given.cpu + ": " + message);
  Expected<attn::ScheduleOverrides> schedule = given.schedule.read(*target, options.gpu.has_value());
  if (schedule)
    options.schedule = *schedule;
  return schedule.takeError();
}

Error readTarget(const Options &given, attn::RunOptions &options) {
  bool emulated = given.target == "cuda-emulated";
  if (given.target != "cpu" && given.target != "cuda" && !emulated)
    return fail("--target=" + given.target + " is not known; cpu, cuda and cuda-emulated are");
  options.emulate = emulated;
  options.emulatorChecks = given.checks == Switch::On;
  if (given.target == "cpu")
    return given.chip.getNumOccurrences()
               ? fail("--chip is for --target=cuda and cuda-emulated; a CPU is named by --cpu")
               : Error::success();
  std::string message;
  auto gpu = attn::GPUModel::get(given.chip, message);
  if (failed(gpu))
    return fail(message);
  options.gpu = *gpu;
  return Error::success();
}

Error readOptions(const Options &given, attn::RunOptions &options) {
  options.function = given.function;
  options.cpu = given.cpu;
  options.emulateTiles = given.emulateTiles;
  options.reference = given.reference;
  options.check = given.check;
  options.threads = given.threads;
  options.layout = given.layout;
  options.guard = given.guard;
  if (Error error = readTarget(given, options))
    return error;
  if (given.threads < 0 || given.threads > 1024)
    return fail("--threads=" + Twine(given.threads) + " should be at least 1, and at most 1024");
  if (given.bench.getNumOccurrences()) {
    options.benchSeconds = 1;
    if (!given.bench.empty() && (StringRef(given.bench).getAsDouble(options.benchSeconds) ||
                                 !(options.benchSeconds > 0 && options.benchSeconds < 1e6)))
      return fail("--bench=" + given.bench + " should be a number of seconds");
  }
  if (Error error = readSchedule(given, options))
    return error;
  return readInputs(given, options);
}

/// Tells every choice that is tried, and writes the best.
Error tune(const Options &given, const attn::RunOptions &options) {
  if (Error error = attn::checkWritable(given.tune))
    return error;
  auto tell = [](const attn::TuneStep &step) {
    outs() << formatv("--{0}={1}: {2:f2} of the time{3}\n", step.choice, step.value, step.ratio,
                      step.taken ? ", taken" : "");
  };
  return attn::tools::withSpec(given.spec, [&](mlir::ModuleOp module) -> Error {
    double seconds = given.bench.getNumOccurrences() ? options.benchSeconds : 0.3;
    Expected<attn::TuneResult> result = attn::tuneSpec(module, options, seconds, tell);
    if (!result)
      return result.takeError();
    outs() << formatv("{0:f2} of the time of what is chosen without tuning\n", result->overDefault);
    return attn::writeFile(given.tune, result->flags());
  });
}

Error run(const Options &given) {
  attn::RunOptions options;
  if (Error error = readOptions(given, options))
    return error;
  if (!given.tune.empty())
    return tune(given, options);
  bool passed = true;
  auto report = [&](const attn::RunReport &report) {
    (given.json ? attn::printReportAsJSON : attn::printReport)(report, outs());
    passed &= report.passed();
  };
  if (Error error = attn::tools::withSpec(
          given.spec, [&](mlir::ModuleOp module) { return attn::runSpec(module, options, report); }))
    return error;
  return passed ? Error::success() : fail("--check: a result is further from the reference than allowed");
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  attn::tools::removeForeignOptions();
  Options given;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Compile an attention spec in process, run it, check it, time it\n");
  return attn::tools::finish("attn-run", given.spec.listPresets() ? attn::tools::tellPresets() : run(given));
}
