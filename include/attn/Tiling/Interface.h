//===- Interface.h - The C arguments of a function --------------*- C++ -*-===//
//
// What a caller passes to a compiled function: its tensors by name, and the extents that have to agree.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_TILING_INTERFACE_H
#define ATTN_TILING_INTERFACE_H

#include "attn/Runtime/Abi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>
#include <string>

namespace attn {

struct TensorInfo {
  mlir::Value value;
  std::string name;
  AttnTensorRole role;
  mlir::RankedTensorType type;
  llvm::SmallVector<int64_t> dims; // >= 0: static; -(s + 1): symbol s
  bool innerContiguous = false;
  mlir::DenseElementsAttr constant; // role ATTN_CONSTANT
};

struct FunctionInterface {
  std::string name;
  llvm::SmallVector<TensorInfo> tensors; // inputs, outputs, then intermediates and constants
  llvm::SmallVector<std::string> symbols;
  unsigned numInputs = 0, numArguments = 0;

  /// Of a function of attn.attention or attn_tile.launch ops. Fails with a located message on an op that cannot be
  /// compiled, and where static extents contradict each other.
  static mlir::FailureOr<FunctionInterface> of(mlir::func::FuncOp func);

  std::optional<unsigned> find(mlir::Value value) const;
};

} // namespace attn

#endif // ATTN_TILING_INTERFACE_H
