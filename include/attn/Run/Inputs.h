//===- Inputs.h - Inputs of a function: extents, files, random data ---------===//
#ifndef ATTN_RUN_INPUTS_H
#define ATTN_RUN_INPUTS_H

#include "attn/Reference/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace attn {

struct InputOptions {
  std::map<std::string, std::string> files; // argument name to .npy file
  bool random = false;                      // draw what no file gives
  std::map<std::string, int64_t> extents;   // B, H, Hkv, N, M, D, Dv to value
  uint64_t seed = 0;
};

/// One tensor per argument of `func`. Random q, k, v are normal; captured tensors get what their uses ask for: sorted
/// document ids, lengths, index sets in range, block tables of zeros and ones. An error says which argument or extent
/// is wrong and what to give instead.
llvm::Expected<llvm::SmallVector<HostTensor>> makeInputs(mlir::func::FuncOp func, const InputOptions &options);

/// Shape of every result for these inputs.
llvm::Expected<llvm::SmallVector<llvm::SmallVector<int64_t>>> getResultShapes(mlir::func::FuncOp func,
                                                                              llvm::ArrayRef<HostTensor> inputs);

} // namespace attn

#endif // ATTN_RUN_INPUTS_H
