//===- Optimise.h - Run passes of LLVM --------------------------*- C++ -*-===//
#ifndef ATTN_LIB_TARGET_OPTIMISE_H
#define ATTN_LIB_TARGET_OPTIMISE_H

#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace attn {

/// Runs the passes that `build` makes on a module, with the analyses of its machine.
inline llvm::Error optimise(llvm::Module &module, llvm::TargetMachine &machine,
                            llvm::function_ref<llvm::Expected<llvm::ModulePassManager>(llvm::PassBuilder &)> build) {
  llvm::PassBuilder builder(&machine);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::Expected<llvm::ModulePassManager> passes = build(builder);
  if (!passes)
    return passes.takeError();
  passes->run(module, modules);
  return llvm::Error::success();
}

} // namespace attn

#endif // ATTN_LIB_TARGET_OPTIMISE_H
