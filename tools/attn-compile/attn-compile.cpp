//===- attn-compile.cpp - Compile attention specs to kernels --------------===//
#include "attn/Pipelines/Pipelines.h"
#include "attn/Register.h"
#include "attn/Support/Names.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

namespace {

enum class Stage { Attn, Schedule, Tile, CPU, LLVM, Asm, Object, Shared };

cl::OptionCategory category("attn-compile options");
struct Options {
  cl::opt<std::string> input{cl::Positional, cl::desc("SPEC.mlir"), cl::Required, cl::cat(category)};
  cl::opt<std::string> output{"o", cl::desc("output file, - for standard output"), cl::init("-"), cl::cat(category)};
  cl::opt<std::string> cpu{"cpu", cl::desc("native, x86-64-v3, x86-64-v4, sapphirerapids, ..."), cl::init("native"),
                           cl::cat(category)};
  cl::opt<Stage> emit{"emit", cl::desc("what to write"), cl::init(Stage::Object), cl::cat(category),
                      cl::values(clEnumValN(Stage::Attn, "attn", "the spec, parsed and checked"),
                                 clEnumValN(Stage::Schedule, "schedule", "with a schedule on every op"),
                                 clEnumValN(Stage::Tile, "tile", "loops over tiles"),
                                 clEnumValN(Stage::CPU, "cpu", "vector code"),
                                 clEnumValN(Stage::LLVM, "llvm", "LLVM IR"), clEnumValN(Stage::Asm, "asm", "assembly"),
                                 clEnumValN(Stage::Object, "object", "an object file"),
                                 clEnumValN(Stage::Shared, "shared", "a shared library"))};
  cl::opt<bool> threads{"threads", cl::desc("on: use all OpenMP threads"), cl::init(true), cl::cat(category)};
};

int run(const Options &given) {
  auto &input = given.input;
  auto &output = given.output;
  auto &cpu = given.cpu;
  auto &emit = given.emit;
  auto &threads = given.threads;
  std::string error;
  attn::CompileOptions options;
  auto target = attn::TargetModel::get(cpu, "", error);
  if (failed(target)) {
    llvm::errs() << "attn-compile: error: " << error << "\n";
    return 1;
  }
  options.target = *target;
  options.threads = threads;
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  auto buffer = openInputFile(input, &error);
  if (!buffer) {
    llvm::errs() << "attn-compile: error: " << error << "\n";
    return 1;
  }
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  SourceMgrDiagnosticHandler diagnostics(*source, &context);
  auto module = attn::parseSpec(source, &context);
  if (!module)
    return 1;
  auto file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << "attn-compile: error: " << error << "\n";
    return 1;
  }
  if (emit <= Stage::CPU) {
    PassManager pm(&context);
    if (emit >= Stage::Schedule)
      attn::buildSchedule(pm, options);
    if (emit >= Stage::Tile)
      attn::buildTiling(pm, options);
    if (emit >= Stage::CPU)
      attn::buildCPU(pm, options);
    if (failed(pm.run(*module)))
      return 1;
    module->print(file->os());
    file->keep();
    return 0;
  }
  auto native = attn::compileToNative(*module, options);
  if (failed(native))
    return 1;
  if (emit == Stage::LLVM)
    native->module->print(file->os(), nullptr);
  else if (emit == Stage::Asm || emit == Stage::Object)
    (void)attn::emitMachineCode(*native, file->os(), emit == Stage::Asm);
  file->keep();
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  if (cl::Option *other = cl::getRegisteredOptions().lookup("threads"))
    other->removeArgument();
  Options given;
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "attn-compile: attention specs to kernels\n");
  return run(given);
}
