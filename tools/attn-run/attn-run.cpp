//===- attn-run.cpp - Compile a spec in process, run, check and time it -----===//
#include "../Options.h"
#include "attn/Register.h"
#include "attn/Run/Run.h"
#include "attn/Support/Names.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;

namespace {

cl::OptionCategory category("attn-run options");

struct Options {
  cl::opt<std::string> spec{cl::Positional, cl::Required, cl::desc("SPEC.mlir"), cl::cat(category)};
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
  cl::list<std::string> outputs{"output", cl::desc("Write a result; may be repeated"), cl::value_desc("NAME=FILE.npy"),
                                cl::cat(category)};
  cl::opt<bool> check{"check",
                      cl::desc("Compare with the float64 reference; fail beyond twice the error of plain loops in f32"),
                      cl::cat(category)};
  cl::opt<std::string> bench{"bench", cl::ValueOptional, cl::desc("Time calls for so long (1)"),
                             cl::value_desc("SECONDS"), cl::cat(category)};
  cl::opt<int> threads{"threads", cl::desc("OpenMP threads (all)"), cl::value_desc("N"), cl::init(0),
                       cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print one JSON object"), cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("What to compile for: cpu"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu", cl::desc("CPU to compile for (native)"), cl::value_desc("NAME"), cl::init("native"),
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

int fail(const Twine &message) {
  WithColor::error(errs(), "attn-run") << message << "\n";
  return 1;
}

/// Whether an option could be read; tells what is wrong with it otherwise.
bool succeeds(Error error) {
  if (!error)
    return true;
  fail(toString(std::move(error)));
  return false;
}

/// "NAME=FILE" entries into a map.
bool readFiles(const cl::list<std::string> &list, std::map<std::string, std::string> &files) {
  std::string option = "--" + list.ArgStr.str();
  return all_of(list, [&](StringRef entry) { return succeeds(attn::readFileOption(option, entry, files)); });
}

bool readInputs(const Options &given, attn::RunOptions &options) {
  attn::InputOptions inputs;
  inputs.seed = given.seed;
  inputs.random = given.random.getNumOccurrences() > 0;
  if (!readFiles(given.inputs, inputs.files))
    return false;
  options.inputs.assign(std::max<size_t>(1, given.random.size()), inputs);
  for (auto [text, run] : zip(given.random, options.inputs))
    if (!succeeds(attn::readExtentsOption("--random", text, run.extents)))
      return false;
  if (options.inputs.size() > 1 && !given.outputs.empty())
    return fail("--output with several --random would overwrite its file; give one --random"), false;
  return true;
}

bool readSchedule(const Options &given, attn::RunOptions &options) {
  std::string message;
  auto target = attn::TargetModel::get(given.cpu, /*triple=*/"", message);
  if (failed(target))
    return fail("--cpu=" + given.cpu + ": " + message), false;
  Expected<attn::ScheduleOverrides> schedule = given.schedule.read(*target);
  if (schedule)
    options.schedule = *schedule;
  return succeeds(schedule.takeError());
}

bool readOptions(const Options &given, attn::RunOptions &options) {
  options.function = given.function;
  options.cpu = given.cpu;
  options.reference = given.reference;
  options.check = given.check;
  options.threads = given.threads;
  options.layout = given.layout;
  options.guard = given.guard;
  if (given.target != "cpu")
    return fail("--target=" + given.target + " is not known; cpu is"), false;
  if (given.threads < 0)
    return fail("--threads=" + Twine(given.threads) + " should be at least 1"), false;
  if (given.bench.getNumOccurrences()) {
    options.benchSeconds = 1;
    if (!given.bench.empty() && (StringRef(given.bench).getAsDouble(options.benchSeconds) || options.benchSeconds <= 0))
      return fail("--bench=" + given.bench + " should be a number of seconds"), false;
  }
  return readSchedule(given, options) && readInputs(given, options) && readFiles(given.outputs, options.outputs);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  // libLLVM.so brings options of its own tools; one of them has the name of one of ours.
  if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
    other->removeArgument();
  Options given;
  cl::HideUnrelatedOptions(category);
  if (!succeeds(attn::tools::checkMissing(ArrayRef(argv, argc).drop_front())))
    return 1;
  cl::ParseCommandLineOptions(argc, argv, "Compile an attention spec in process, run it, check it, time it\n");
  attn::RunOptions options;
  if (!readOptions(given, options))
    return 1;

  std::string message;
  std::unique_ptr<MemoryBuffer> file = mlir::openInputFile(given.spec, &message);
  if (!file)
    return fail(message);
  auto source = std::make_shared<SourceMgr>();
  source->AddNewSourceBuffer(std::move(file), SMLoc());
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  mlir::SourceMgrDiagnosticHandler handler(*source, &context, errs());
  mlir::OwningOpRef<mlir::ModuleOp> module = attn::parseSpec(source, &context);
  if (!module)
    return 1;

  bool passed = true;
  Error error = attn::runSpec(*module, options, [&](const attn::RunReport &report) {
    (given.json ? attn::printReportAsJSON : attn::printReport)(report, outs());
    passed &= report.passed();
  });
  if (error)
    return fail(toString(std::move(error)));
  return passed ? 0 : fail("--check: a result is further from the reference than allowed");
}
