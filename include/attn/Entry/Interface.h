//===- Interface.h - The C arguments of a function --------------*- C++ -*-===//
//
// What a caller passes to a compiled function: its tensors by name, and the extents that have to agree.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_ENTRY_INTERFACE_H
#define ATTN_ENTRY_INTERFACE_H

#include "attn/Runtime/Abi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include <optional>
#include <string>

namespace attn {

namespace tile {
/// Of an attn_tile.step, six numbers a bound: the extent (tensor, dimension) is at least that of another place times a
/// number plus a number, unless the other is 0.
constexpr llvm::StringLiteral kLeastAttr = "attn_tile.least";
/// On the code of a step: how many threads of a GPU work on a unit, where it is more than one.
constexpr llvm::StringLiteral kTeamAttr = "attn_tile.team";
} // namespace tile

struct TensorInfo {
  mlir::Value value;
  std::string name;
  AttnTensorRole role;
  mlir::RankedTensorType type;
  llvm::SmallVector<int64_t> dims; // >= 0: static; -(s + 1): symbol s
  bool innerContiguous = false;
  mlir::DenseElementsAttr constant; // role ATTN_CONSTANT
};

/// An extent that several tensors share, by the name of it; `rule` says what it follows from (by = 0: nothing).
struct SymbolInfo {
  std::string name;
  AttnExtentRule rule = {};
};

struct FunctionInterface {
  std::string name;
  llvm::SmallVector<TensorInfo> tensors; // inputs, outputs, then intermediates and constants
  llvm::SmallVector<SymbolInfo> symbols;
  unsigned numInputs = 0, numArguments = 0;

  /// Of a function of ops that are compiled (CompiledOpInterface). Fails with a located message on any other op, where
  /// static extents contradict each other, and where the extent of an intermediate follows from nothing.
  static mlir::FailureOr<FunctionInterface> of(mlir::func::FuncOp func);

  std::optional<unsigned> find(mlir::Value value) const;
};

} // namespace attn

#endif // ATTN_ENTRY_INTERFACE_H
