//===- compile.cpp - Where the time of a compilation goes -----------------===//
//
// For every spec given: parses it, compiles it and makes it callable in this process, `--rounds` times, and prints the
// median of each stage as a JSON line. Times are processor time of the whole process, in milliseconds.
//
//===----------------------------------------------------------------------===//
#include "attn/Pipelines/Pipelines.h"
#include "attn/Register.h"
#include "attn/Runtime/Bitcode.h"
#include "attn/Support/Names.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>

using namespace mlir;
namespace cl = llvm::cl;

namespace {

double processMilliseconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * double(t.tv_sec) + 1e-6 * double(t.tv_nsec);
}

/// Milliseconds of every stage, one entry a round.
class Stopwatch {
public:
  void start() { last = processMilliseconds(); }
  void stop(llvm::StringRef stage) {
    double now = processMilliseconds();
    stages[stage].push_back(now - last);
    last = processMilliseconds();
  }
  llvm::MapVector<llvm::StringRef, std::vector<double>> stages;

private:
  double last = 0;
};

double median(std::vector<double> v) {
  llvm::sort(v);
  return v[v.size() / 2];
}

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  return std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
}

LogicalResult runStage(ModuleOp module, llvm::function_ref<void(OpPassManager &)> build) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false);
  build(pm);
  return pm.run(module);
}

llvm::Error load(std::unique_ptr<llvm::MemoryBuffer> object, llvm::StringRef symbol) {
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess('\0');
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  auto runtime = attn::runtimeObject(attn::RuntimeForm::Threads);
  llvm::StringRef bytes(reinterpret_cast<const char *>(runtime.data()), runtime.size());
  if (llvm::Error error = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBuffer(bytes, "attn runtime", false)))
    return error;
  if (llvm::Error error = (*jit)->addObjectFile(std::move(object)))
    return error;
  return (*jit)->lookup(symbol).takeError();
}

LogicalResult compileOnce(llvm::StringRef path, const attn::CompileOptions &options, Stopwatch &watch) {
  watch.start();
  std::unique_ptr<MLIRContext> context = makeContext();
  watch.stop("context");
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return failure();
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = attn::parseSpec(source, context.get());
  if (!module)
    return failure();
  std::vector<std::string> entries = attn::entryNames(*module);
  watch.stop("parse");
  std::pair<const char *, void (*)(OpPassManager &, const attn::CompileOptions &)> stages[] = {
      {"schedule", attn::buildSchedule},
      {"tiling", attn::buildTiling},
      {"cpu", attn::buildCPU},
      {"to_llvm", attn::buildLLVM}};
  for (auto [name, build] : stages) {
    if (failed(runStage(*module, [&, build = build](OpPassManager &pm) { build(pm, options); })))
      return failure();
    watch.stop(name);
  }
  auto native = attn::makeNative(*module, options.target, attn::RuntimeForm::Threads, entries, /*withRuntime=*/false);
  if (failed(native))
    return failure();
  watch.stop("llvm_ir");
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (failed(attn::emitMachineCode(*native, os, /*assembly=*/false)))
    return failure();
  watch.stop("codegen");
  if (llvm::Error error = load(llvm::MemoryBuffer::getMemBufferCopy(os.str()), entries.front())) {
    llvm::errs() << toString(std::move(error)) << "\n";
    return failure();
  }
  watch.stop("load");
  return success();
}

void report(llvm::StringRef path, const Stopwatch &watch) {
  llvm::outs() << "{\"spec\": \"" << llvm::sys::path::stem(path) << "\"";
  std::vector<double> totals(watch.stages.front().second.size(), 0);
  for (auto &[stage, times] : watch.stages) {
    llvm::outs() << llvm::format(", \"%s\": %.2f", stage.str().c_str(), median(times));
    if (stage != "context" && stage != "parse")
      for (auto [total, time] : llvm::zip(totals, times))
        total += time;
  }
  llvm::outs() << llvm::format(", \"spec_to_callable\": %.2f, \"first\": %.2f}\n", median(totals), totals.front());
}

} // namespace

int main(int argc, char **argv) {
  cl::opt<unsigned> rounds("rounds", cl::init(15), cl::desc("compilations of each spec"));
  cl::list<std::string> specs(cl::Positional, cl::OneOrMore, cl::desc("SPEC.mlir..."));
  cl::ParseCommandLineOptions(argc, argv, "compile times, stage by stage\n");
  attn::CompileOptions options;
  std::string error;
  auto target = attn::TargetModel::get("native", "", error);
  if (failed(target)) {
    llvm::errs() << error << "\n";
    return 1;
  }
  options.target = *target;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  for (const std::string &spec : specs) {
    Stopwatch watch;
    for (unsigned round = 0; round < rounds; ++round)
      if (failed(compileOnce(spec, options, watch)))
        return 1;
    report(spec, watch);
  }
  return 0;
}
