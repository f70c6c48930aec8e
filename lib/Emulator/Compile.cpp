//===- Compile.cpp - Kernels to machine code of this host -------------------===//
#include "Program.h"
#include "Runtime/Bitcode.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace attn::emulator {

static Error optimise(Module &module, TargetMachine &machine, StringRef pipeline) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  for (Function &function : module)
    for (const char *attribute : {"target-cpu", "tune-cpu", "target-features"})
      function.removeFnAttr(attribute);
  PassBuilder builder(&machine);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager sccs;
  ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  ModulePassManager passes;
  if (Error error = builder.parsePassPipeline(passes, pipeline))
    return error;
  passes.run(module, modules);
  return Error::success();
}

static Expected<std::unique_ptr<TargetMachine>> createMachine() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto host = orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  host->setCodeGenOptLevel(CodeGenOptLevel::Default);
  host->setRelocationModel(Reloc::PIC_);
  return host->createTargetMachine();
}

/// The run-time functions for this host, compiled once.
static Expected<MemoryBufferRef> runtimeObject() {
  static Expected<std::unique_ptr<MemoryBuffer>> object = []() -> Expected<std::unique_ptr<MemoryBuffer>> {
    auto machine = createMachine();
    if (!machine)
      return machine.takeError();
    LLVMContext context;
    ArrayRef<unsigned char> bytes = runtimeBitcode();
    StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    auto module = parseBitcodeFile(MemoryBufferRef(text, "emulator runtime"), context);
    if (!module)
      return module.takeError();
    if (Error error = optimise(**module, **machine, "default<O2>"))
      return std::move(error);
    return orc::SimpleCompiler(**machine)(**module);
  }();
  if (!object)
    return createStringError("the run-time functions of the emulator do not compile for this host");
  return (*object)->getMemBufferRef();
}

static Expected<std::unique_ptr<orc::LLJIT>> createJIT() {
  auto runtime = runtimeObject();
  if (!runtime)
    return runtime.takeError();
  auto jit = orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  if (Error error = (*jit)->addObjectFile(MemoryBuffer::getMemBuffer(*runtime, /*RequiresNullTerminator=*/false)))
    return std::move(error);
  return jit;
}

// No vectoriser runs: the vectors are there.
static Error link(Module &module, Program &program) {
  auto machine = createMachine();
  if (!machine)
    return machine.takeError();
  if (Error error = optimise(module, **machine,
                             "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa(licm),"
                             "early-cse,instcombine<no-verify-fixpoint>,adce)"))
    return error;
  auto object = orc::SimpleCompiler(**machine)(module);
  if (!object)
    return object.takeError();
  auto jit = createJIT();
  if (!jit)
    return jit.takeError();
  program.jit = std::move(*jit);
  if (Error error = program.jit->addObjectFile(std::move(*object)))
    return error;
  for (auto &kernel : program.kernels) {
    auto address = program.jit->lookup(symbolOf(kernel.getKey()));
    if (!address)
      return address.takeError();
    kernel.second.function = address->toPtr<KernelFunction>();
  }
  return Error::success();
}

llvm::LogicalResult compile(mlir::ModuleOp host, Program &program) {
  mlir::PassManager pm(host.getContext());
  pm.enableVerifier(false);
  pm.addPass(mlir::arith::createArithExpandOpsPass());
  pm.addPass(mlir::createSCFToControlFlowPass());
  pm.addPass(mlir::createConvertVectorToLLVMPass());
  pm.addPass(mlir::createConvertMathToLLVMPass());
  pm.addPass(mlir::createArithToLLVMConversionPass());
  pm.addPass(mlir::createConvertControlFlowToLLVMPass());
  pm.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (failed(pm.run(host)))
    return failure();
  registerBuiltinDialectTranslation(*host.getContext());
  registerLLVMDialectTranslation(*host.getContext());
  LLVMContext context;
  auto module = mlir::translateModuleToLLVMIR(host, context, "emulated kernels");
  if (!module)
    return host.emitError("translation to LLVM IR failed");
  if (Error error = link(*module, program))
    return host.emitError("the emulated kernels do not compile for this host: ") << toString(std::move(error));
  return success();
}

} // namespace attn::emulator
