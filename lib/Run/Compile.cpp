//===- Compile.cpp - A function of a spec to a kernel in this process -------===//
#include "EmulatedDevice.h"
#include "EmulatedTiles.h"
#include "Kernel.h"
#include "attn/Runtime/Amx.h"
#include "attn/Support/Errors.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace mlir;

namespace attn::run {
namespace {

/// Refuses a CPU whose code this machine would stop at with an illegal instruction. Of a feature that is given twice
/// the last counts, as for LLVM.
llvm::Error checkHostRuns(const TargetModel &target, StringRef cpu, bool emulateTiles) {
  if (!llvm::Triple(target.triple).isX86())
    return llvm::Error::success();
  llvm::SmallVector<StringRef> wanted, more;
  llvm::X86::getFeaturesForCPU(target.cpu, wanted);
  llvm::SplitString(target.features, more, ",");
  for (StringRef feature : more) {
    llvm::erase(wanted, feature.drop_front());
    if (feature.front() == '+')
      wanted.push_back(feature.drop_front());
  }
  auto refuse = [&](StringRef feature) {
    return makeError("--cpu=", cpu, ": this machine cannot run it, it lacks ", feature,
                     "; compile for it with attn-compile instead");
  };
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (StringRef feature : wanted)
    if (auto found = host.find(feature); found != host.end() && !found->second && !feature.starts_with("amx-"))
      return refuse(feature);
  return target.amx && !emulateTiles && !attn_amx_granted() ? refuse("amx-tile, or does not grant it")
                                                            : llvm::Error::success();
}

/// A module of `func` alone, and of what is not a public function.
OwningOpRef<ModuleOp> isolate(func::FuncOp func) {
  OwningOpRef<ModuleOp> module = func->getParentOfType<ModuleOp>().clone();
  for (auto other : llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
    if (!other.isPrivate() && other.getName() != func.getName())
      other.erase();
  return module;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> emitObject(NativeModule &native) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  std::string triple = native.machine->getTargetTriple().str();
  if (failed(emitMachineCode(native, os, /*assembly=*/false)))
    return makeError("LLVM cannot write an object file for ", triple);
  return std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(bytes), "attn object",
                                                         /*RequiresNullTerminator=*/false);
}

} // namespace

llvm::Expected<Kernel> Kernel::compile(func::FuncOp func, const RunOptions &options) {
  std::string message;
  FailureOr<TargetModel> target = TargetModel::get(options.cpu, /*triple=*/"", message);
  if (failed(target))
    return makeError("--cpu=", options.cpu, ": ", message);
  if (llvm::Error error = checkHostRuns(*target, options.cpu, options.emulateTiles))
    return std::move(error);
  CompileOptions compileOptions;
  compileOptions.target = *target;
  compileOptions.schedule = options.schedule;
  compileOptions.threads = hasOpenMP();
  compileOptions.jit = true;
  if (options.gpu)
    return compileForDevice(func, compileOptions, options);
  OwningOpRef<ModuleOp> module = isolate(func);
  FailureOr<NativeModule> native = compileToNative(*module, compileOptions);
  if (failed(native))
    return makeError("'", func.getName(), "' could not be compiled");
  if (options.emulateTiles)
    emulateTiles(*native->module);
  auto object = emitObject(*native);
  if (!object)
    return object.takeError();
  return load(std::move(*object), func.getName(), /*device=*/nullptr, options.emulateTiles);
}

llvm::Expected<Kernel> Kernel::compileForDevice(func::FuncOp func, const CompileOptions &compileOptions,
                                                const RunOptions &options) {
  CompileOptions withGPU = compileOptions;
  withGPU.gpu = options.gpu;
  OwningOpRef<ModuleOp> module = isolate(func);
  if (!options.emulate) {
    auto device = openCUDADevice();
    if (!device)
      return device.takeError();
    FailureOr<NativeModule> native = compileToNative(*module, withGPU);
    if (failed(native))
      return makeError("'", func.getName(), "' could not be compiled");
    auto object = emitObject(*native);
    return object ? load(std::move(*object), func.getName(), std::move(*device)) : object.takeError();
  }
  FailureOr<EmulatedCode> code = compileToEmulated(*module, withGPU);
  if (failed(code))
    return makeError("'", func.getName(), "' could not be compiled");
  auto object = emitObject(code->host);
  if (!object)
    return object.takeError();
  auto device = EmulatedDevice::create(std::move(code->device), options);
  if (!device)
    return device.takeError();
  return load(std::move(*object), func.getName(), std::move(*device));
}

} // namespace attn::run
