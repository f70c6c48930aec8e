//===- Native.h - Parts of making machine code ------------------*- C++ -*-===//
#ifndef ATTN_LIB_TARGET_NATIVE_H
#define ATTN_LIB_TARGET_NATIVE_H

#include "attn/Target/Object.h"

namespace attn {

/// The module of the LLVM dialect as LLVM IR of this target, code for it alone.
mlir::FailureOr<std::unique_ptr<llvm::Module>> translate(mlir::ModuleOp module, const TargetModel &target,
                                                         llvm::TargetMachine &machine, llvm::LLVMContext &context);
std::unique_ptr<llvm::TargetMachine> createMachine(const TargetModel &target);
/// Links bitcode of the runtime, as code for `target`.
mlir::LogicalResult linkBitcode(llvm::Module &module, llvm::ArrayRef<unsigned char> bytes, const TargetModel &target);
mlir::LogicalResult linkRuntime(llvm::Module &module, RuntimeForm form, const TargetModel &target);
/// What is in `entries` or weak stays visible; the passes run.
mlir::LogicalResult finish(NativeModule &native, llvm::ArrayRef<std::string> entries, mlir::Location loc);

} // namespace attn

#endif // ATTN_LIB_TARGET_NATIVE_H
