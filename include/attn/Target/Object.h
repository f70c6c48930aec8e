//===- Object.h - Module to machine code ------------------------*- C++ -*-===//
#ifndef ATTN_TARGET_OBJECT_H
#define ATTN_TARGET_OBJECT_H

#include "attn/Runtime/Bitcode.h"
#include "attn/Schedule/TargetModel.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace attn {

/// An LLVM module of its own context, linked with the runtime, optimised, ready for code generation.
struct NativeModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
};

/// Translates a module of the LLVM dialect for `target`; only the functions in `entries` (and the runtime's
/// attn_last_error and attn_plan_free) are exported. Without `withRuntime` the object calls the runtime of the process
/// it is loaded into: compiling the runtime would be half of the time.
mlir::FailureOr<NativeModule> makeNative(mlir::ModuleOp module, const TargetModel &target, RuntimeForm runtime,
                                         llvm::ArrayRef<std::string> entries, bool withRuntime = true);

/// Writes assembly or an object file. The module is used up.
mlir::LogicalResult emitMachineCode(NativeModule &native, llvm::raw_pwrite_stream &os, bool assembly);

/// Links an object into a shared library with the first of clang, cc and gcc that there is; the error names what was
/// tried.
mlir::LogicalResult linkShared(llvm::StringRef object, llvm::StringRef output, bool threads, std::string &error);

} // namespace attn

#endif // ATTN_TARGET_OBJECT_H
