//===- Arguments.h - What a function is run on ------------------*- C++ -*-===//
#ifndef ATTN_LIB_RUN_ARGUMENTS_H
#define ATTN_LIB_RUN_ARGUMENTS_H

#include "Placement.h"

namespace attn {

/// The public function of that name, or the only one.
llvm::Expected<mlir::func::FuncOp> findFunction(mlir::ModuleOp module, llvm::StringRef name);

namespace run {

struct Arguments {
  llvm::SmallVector<HostTensor> inputs;
  llvm::SmallVector<llvm::SmallVector<int64_t>> resultShapes;
  std::vector<PlacedTensor> placedInputs, placedResults;

  static llvm::Expected<Arguments> make(mlir::func::FuncOp func, const RunOptions &options, const InputOptions &inputs);
  /// Puts the inputs, and space for the results, into memory as the options ask.
  llvm::Error place(mlir::func::FuncOp func, const RunOptions &options);
};

std::vector<const DLTensor *> getPointers(std::vector<PlacedTensor> &tensors);

} // namespace run
} // namespace attn

#endif // ATTN_LIB_RUN_ARGUMENTS_H
