//===- Levels.h - One object for several CPUs -------------------*- C++ -*-===//
#ifndef ATTN_TARGET_LEVELS_H
#define ATTN_TARGET_LEVELS_H

#include "attn/Target/Object.h"

namespace attn {

/// The body of an exported function for one CPU, which may be called directly: NAME_on_x86_64_v4.
std::string getLevelName(llvm::StringRef entry, const TargetModel &level);

/// The best first: those that need more features.
void sortLevels(std::vector<TargetModel> &levels);

/// Modules of the LLVM dialect with the same functions, each for its own CPU (x86-64, the best first), as one module
/// whose `entries` choose among them when they are first called. Where none of them fits, they answer ATTN_NO_CPU.
mlir::FailureOr<NativeModule> makeNative(llvm::ArrayRef<mlir::ModuleOp> bodies, llvm::ArrayRef<TargetModel> levels,
                                         RuntimeForm runtime, llvm::ArrayRef<std::string> entries);

} // namespace attn

#endif // ATTN_TARGET_LEVELS_H
