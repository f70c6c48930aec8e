//===- attn-compile.cpp - Compile attention specs to kernels --------------===//
#include "../Spec.h"
#include "attn/Compile/Compile.h"
#include "attn/Support/Files.h"
#include "attn/Target/Levels.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"

using namespace llvm;
using attn::Emit;
using attn::tools::Switch;

namespace {

cl::OptionCategory category("attn-compile options");

struct Options {
  attn::tools::SpecOptions spec{category};
  cl::opt<std::string> output{"o", cl::desc("Output file; - is standard output"), cl::value_desc("FILE"), cl::init("-"),
                              cl::cat(category)};
  cl::opt<std::string> target{"target", cl::desc("What to compile for: cpu or cuda (cpu)"), cl::init("cpu"),
                              cl::cat(category)};
  cl::opt<std::string> cpu{
      "cpu",
      cl::desc("native, x86-64-v3, sapphirerapids, ... (native); features behind it, as native,-amx-tile; "
               "several for one object with code for each"),
      cl::value_desc("NAME"), cl::init("native"), cl::cat(category)};
  cl::opt<std::string> chip{"chip", cl::desc("The GPU: sm_80, sm_86, sm_90, ... (sm_80)"), cl::value_desc("NAME"),
                            cl::init("sm_80"), cl::cat(category)};
  cl::opt<std::string> triple{"triple", cl::desc("Another machine, as aarch64-linux-gnu (this one)"),
                              cl::value_desc("TRIPLE"), cl::cat(category)};
  cl::opt<Switch> threads{"threads", cl::desc("Run on all OpenMP threads (on)"), cl::init(Switch::On),
                          cl::cat(category), attn::tools::switchValues()};
  cl::opt<Emit> emit{"emit", cl::desc("What to write (object)"), cl::init(Emit::Object), cl::cat(category),
                     cl::values(clEnumValN(Emit::Attn, "attn", "the spec, checked"),
                                clEnumValN(Emit::Schedule, "schedule", "with a schedule on every op"),
                                clEnumValN(Emit::Tile, "tile", "loops over tiles"),
                                clEnumValN(Emit::CPU, "cpu", "vector code and entry points"),
                                clEnumValN(Emit::GPU, "gpu", "warp code (cuda)"),
                                clEnumValN(Emit::LLVM, "llvm", "LLVM IR"), clEnumValN(Emit::Asm, "asm", "assembly"),
                                clEnumValN(Emit::PTX, "ptx", "PTX (cuda)"),
                                clEnumValN(Emit::Cubin, "cubin", "machine code of a GPU, by ptxas (cuda)"),
                                clEnumValN(Emit::Object, "object", "an object file"),
                                clEnumValN(Emit::Shared, "shared", "a shared library"),
                                clEnumValN(Emit::Header, "header", "the C header of the object"),
                                clEnumValN(Emit::SVG, "svg", "a picture of the mask"),
                                clEnumValN(Emit::Report, "report", "what was decided, and why"))};
  cl::opt<std::string> function{"function", cl::desc("Only this function of the spec"), cl::value_desc("NAME"),
                                cl::cat(category)};
  cl::opt<bool> strict{"strict", cl::desc("What runs slower than its pattern allows is an error, not a remark"),
                       cl::cat(category)};
  cl::opt<bool> json{"json", cl::desc("Print the report as one JSON object"), cl::cat(category)};
  cl::opt<std::string> shape{"shape", cl::desc("Extents for svg and report (B=1,H=8,N=4096,D=64)"),
                             cl::value_desc("B=1,H=8,N=4096"), cl::cat(category)};
  cl::list<std::string> inputs{"input", cl::desc("Captured tensor for svg and report; may be repeated"),
                               cl::value_desc("NAME=FILE.npy"), cl::cat(category)};
  cl::opt<uint64_t> seed{"seed", cl::desc("Seed of captured tensors that no file gives (0)"), cl::value_desc("N"),
                         cl::init(0), cl::cat(category)};
  attn::tools::ScheduleOptions schedule{category};
};

Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

/// Stages that only one of the targets has.
Error checkEmit(Emit emit, bool cuda) {
  bool onlyCPU = emit == Emit::CPU || emit == Emit::Asm || emit == Emit::Shared;
  bool onlyGPU = emit == Emit::GPU || emit == Emit::PTX || emit == Emit::Cubin;
  if (cuda && onlyCPU)
    return fail("--emit=cpu, asm and shared are for --target=cpu; use --emit=gpu, ptx or object");
  if (!cuda && onlyGPU)
    return fail("--emit=gpu, ptx and cubin are for --target=cuda; use --emit=cpu, asm or object");
  return Error::success();
}

/// What one CPU alone is for.
Error checkLevels(const Options &given) {
  bool isOneStage = given.emit == Emit::Schedule || given.emit == Emit::Tile || given.emit == Emit::CPU;
  if (given.target == "cuda")
    return fail("--cpu=" + given.cpu + ": the host of a GPU is one CPU; name one");
  if (isOneStage)
    return fail("--cpu=" + given.cpu + ": this stage is of one CPU; name one, or use --emit=llvm, asm or object");
  return Error::success();
}

Error readOptions(const Options &given, attn::CompileRequest &request) {
  bool cuda = given.target == "cuda";
  if (given.target != "cpu" && !cuda)
    return fail("--target=" + given.target + " is not known; cpu and cuda are");
  if (!cuda && given.chip.getNumOccurrences())
    return fail("--chip is for --target=cuda; a CPU is named by --cpu");
  request.emit = given.emit;
  request.name = given.spec.name();
  request.function = given.function;
  request.strict = given.strict;
  request.json = given.json;
  if (request.json && request.emit != Emit::Report)
    return fail("--json is for --emit=report");
  if (given.shape.getNumOccurrences() && request.emit != Emit::Report && request.emit != Emit::SVG)
    return fail("--shape is for --emit=report and svg; kernels take their extents at run time");
  if (attn::isBinary(request.emit) && given.output == "-" && sys::Process::StandardOutIsDisplayed())
    return fail("the output is binary: give a file with -o FILE");
  if (Error error = attn::checkWritable(given.output))
    return error;
  std::string message;
  auto levels = attn::getLevels(given.cpu, given.triple, message);
  if (failed(levels))
    return fail(message);
  attn::sortLevels(*levels);
  request.options.target = levels->front();
  if (levels->size() > 1) {
    if (Error error = checkLevels(given))
      return error;
    request.options.levels = std::move(*levels);
  }
  if (cuda) {
    auto gpu = attn::GPUModel::get(given.chip, message);
    if (failed(gpu))
      return fail(message);
    request.options.gpu = *gpu;
  }
  if (Error error = checkEmit(given.emit, cuda))
    return error;
  request.options.threads = given.threads == Switch::On;
  request.options.verify = true;
  request.inputs.random = true;
  request.inputs.seed = given.seed;
  request.inputs.tokens = 4096;
  request.inputs.extentsOption = "--shape";
  for (const std::string &input : given.inputs)
    if (Error error = attn::readFileOption("--input", input, request.inputs.files))
      return error;
  if (Error error = attn::readExtentsOption("--shape", given.shape, request.inputs.extents))
    return error;
  auto schedule = given.schedule.read(request.options.target, request.options.gpu.has_value());
  if (!schedule)
    return schedule.takeError();
  request.options.schedule = *schedule;
  return Error::success();
}

Error compile(const Options &given) {
  attn::CompileRequest request;
  if (Error error = readOptions(given, request))
    return error;
  SmallString<0> bytes;
  raw_svector_ostream os(bytes);
  if (Error error = attn::tools::withSpec(given.spec,
                                          [&](mlir::ModuleOp module) { return attn::writeSpec(module, request, os); }))
    return error;
  // A file appears, or changes, only now that all is well.
  return attn::writeFile(given.output, bytes);
}

} // namespace

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  attn::tools::removeForeignOptions();
  Options given;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Compile an attention spec to a kernel, or show what it becomes\n");
  return attn::tools::finish("attn-compile", given.spec.listPresets() ? attn::tools::tellPresets() : compile(given));
}
