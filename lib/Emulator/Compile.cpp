//===- Compile.cpp - Kernels to machine code of this host -------------------===//
#include "Program.h"
#include "Runtime/Object.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
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

static Expected<std::unique_ptr<TargetMachine>> createMachine(CodeGenOptLevel level) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto host = orc::JITTargetMachineBuilder::detectHost();
  if (!host)
    return host.takeError();
  host->setCodeGenOptLevel(level);
  host->setRelocationModel(Reloc::PIC_);
  return host->createTargetMachine();
}

static Expected<std::unique_ptr<orc::LLJIT>> createJIT() {
  auto jit = orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  if (Error error = (*jit)->addObjectFile(MemoryBuffer::getMemBuffer(runtimeObject(), "emulator runtime", false)))
    return std::move(error);
  return jit;
}

// No vectoriser runs: the vectors are there.
static Error link(Module &module, bool optimised, Program &program) {
  auto machine = createMachine(optimised ? CodeGenOptLevel::Default : CodeGenOptLevel::None);
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

llvm::LogicalResult compile(mlir::ModuleOp host, bool optimised, Program &program) {
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
  if (Error error = link(*module, optimised, program))
    return host.emitError("the emulated kernels do not compile for this host: ") << toString(std::move(error));
  return success();
}

} // namespace attn::emulator
