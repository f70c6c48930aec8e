//===- Object.cpp - Module to machine code --------------------------------===//
#include "attn/Target/Object.h"
#include "Native.h"
#include "Optimise.h"

#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Linker/Linker.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"

using namespace mlir;

namespace attn {

std::unique_ptr<llvm::TargetMachine> createMachine(const TargetModel &target) {
  llvm::Triple triple(target.triple);
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return nullptr;
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(triple, target.cpu, target.features, options,
                                                                           llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                           llvm::CodeGenOptLevel::Aggressive));
}

static void setTarget(llvm::Module &module, const TargetModel &target) {
  for (llvm::Function &fn : module) {
    for (const char *attribute : {"target-cpu", "tune-cpu", "target-features"})
      fn.removeFnAttr(attribute);
    if (fn.isDeclaration())
      continue;
    fn.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty())
      fn.addFnAttr("target-features", target.features);
  }
}

// The runtime is generic code: it takes the target of the object that it becomes part of.
LogicalResult linkBitcode(llvm::Module &module, ArrayRef<unsigned char> bytes, const TargetModel &target) {
  llvm::MemoryBufferRef buffer(StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()), "attn runtime");
  auto runtime = llvm::parseBitcodeFile(buffer, module.getContext());
  if (!runtime) {
    llvm::consumeError(runtime.takeError());
    return failure();
  }
  (*runtime)->setTargetTriple(module.getTargetTriple());
  (*runtime)->setDataLayout(module.getDataLayout());
  setTarget(**runtime, target);
  return success(!llvm::Linker::linkModules(module, std::move(*runtime)));
}

LogicalResult linkRuntime(llvm::Module &module, RuntimeForm form, const TargetModel &target) {
  if (failed(linkBitcode(module, runtimeBitcode(form), target)))
    return failure();
  if (module.getFunction("attn_amx_granted") && failed(linkBitcode(module, tilesBitcode(), target)))
    return failure();
  return form == RuntimeForm::Device ? linkBitcode(module, driverBitcode(), target) : success();
}

// The vectors are written as they shall be: no vectoriser runs. These few passes suffice for the speed and leave most
// of the compile time to code generation.
static llvm::Expected<llvm::ModulePassManager> fewPasses(llvm::PassBuilder &builder) {
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(
          passes, "globaldce,function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm))"))
    return std::move(error);
  return std::move(passes);
}

FailureOr<std::unique_ptr<llvm::Module>> translate(ModuleOp module, const TargetModel &target,
                                                   llvm::TargetMachine &machine, llvm::LLVMContext &context) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> made = translateModuleToLLVMIR(module, context, "attn");
  if (!made)
    return module.emitError("translation to LLVM IR failed");
  made->setTargetTriple(machine.getTargetTriple());
  made->setDataLayout(machine.createDataLayout());
  setTarget(*made, target);
  return made;
}

LogicalResult finish(NativeModule &native, ArrayRef<std::string> entries, Location loc) {
  llvm::internalizeModule(*native.module, [&](const llvm::GlobalValue &value) {
    return value.isWeakForLinker() || llvm::is_contained(entries, value.getName());
  });
  if (llvm::Error error = optimise(*native.module, *native.machine, fewPasses))
    return emitError(loc, "LLVM refused the pass pipeline: ") << llvm::toString(std::move(error));
  return success();
}

FailureOr<NativeModule> makeNative(ModuleOp module, const TargetModel &target, RuntimeForm runtime,
                                   ArrayRef<std::string> entries, bool withRuntime) {
  NativeModule native;
  native.context = std::make_unique<llvm::LLVMContext>();
  native.machine = createMachine(target);
  if (!native.machine)
    return module.emitError() << "LLVM has no back end for " << target.triple;
  auto made = translate(module, target, *native.machine, *native.context);
  if (failed(made))
    return failure();
  native.module = std::move(*made);
  if (withRuntime && failed(linkRuntime(*native.module, runtime, target)))
    return module.emitError("the runtime could not be linked into the module");
  if (failed(finish(native, entries, module.getLoc())))
    return failure();
  return std::move(native);
}

namespace {

/// LLVM's passes of code generation but the strength reduction of loops, which takes a fifth of the time: addresses in
/// the hot loops are a base and a counter already, and without it they run as fast.
class CodeGenPasses : public llvm::legacy::PassManager {
public:
  void add(llvm::Pass *pass) override {
    if (pass->getPassName() == "Loop Strength Reduction")
      delete pass;
    else
      PassManager::add(pass);
  }
};

} // namespace

LogicalResult emitMachineCode(NativeModule &native, llvm::raw_pwrite_stream &os, bool assembly) {
  CodeGenPasses passes;
  passes.add(llvm::createTargetTransformInfoWrapperPass(native.machine->getTargetIRAnalysis()));
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile : llvm::CodeGenFileType::ObjectFile;
  if (native.machine->addPassesToEmitFile(passes, os, nullptr, type))
    return failure();
  passes.run(*native.module);
  return success();
}

LogicalResult linkShared(StringRef object, StringRef output, bool threads, std::string &error) {
  for (StringRef linker : {"clang-22", "clang", "cc", "gcc"}) {
    auto path = llvm::sys::findProgramByName(linker);
    if (!path)
      continue;
    SmallVector<StringRef> args{*path, "-shared", "-o", output, object};
    if (threads)
      args.push_back("-l:libomp.so.5");
    if (llvm::sys::ExecuteAndWait(*path, args, std::nullopt, {}, 0, 0, &error) == 0)
      return success();
    error = (linker + " could not link the shared library" + (error.empty() ? "" : ": " + error)).str();
    return failure();
  }
  error = "no linker found: looked for clang-22, clang, cc and gcc in PATH; use --emit=object and link it yourself";
  return failure();
}

} // namespace attn
