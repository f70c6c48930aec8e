//===- Captures.h - What the regions of an attention read ------*- C++ -*-===//
//
// The captured tensors of an attention and the tables that the runtime derives from them for planning.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PATTERN_CAPTURES_H
#define ATTN_PATTERN_CAPTURES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include <optional>

namespace attn {

class ExpandedMask;

/// A table of AttnKernel::tables; the enumerators have the values of AttnTableKind.
struct Table {
  enum class Kind { Range = 0, Members = 1 };
  Kind kind;
  /// The tensor it is made from, an index into Captures::tensors.
  unsigned operand;
  /// Range: the dimension in which intervals are asked for. Members: the last dimension of the set.
  unsigned dim;

  bool operator==(const Table &other) const {
    return kind == other.kind && operand == other.operand && dim == other.dim;
  }
};

struct Captures {
  /// The captured tensors of the mask and then of the score region in the order of first use, each once, then
  /// sink, table, bias and scores.
  /// Constants are among them; query, key and value are not where only their extents are asked for.
  llvm::SmallVector<mlir::Value> tensors;
  /// One Members per set of attn.contains, one Range per tensor and varying dimension of a tensor.extract in the mask.
  llvm::SmallVector<Table> tables;
  /// Bit n: tensor n is only searched, by attn.contains, and no element of it is read; its last dimension may be empty.
  int64_t searched = 0;

  static Captures of(AttentionOp op);

  /// Is a tensor the result of another op of the function?
  static bool isComputed(mlir::Value tensor);
  /// For a plan that is made before the function computes anything: nothing is asked of what it computes.
  void forgetRangesOfComputed();

  /// The place of a tensor in `tensors`.
  std::optional<unsigned> findTensor(mlir::Value tensor) const;
  /// The place in `tables` of the table that `op`, a tensor.extract or attn.contains of the expanded mask that reads
  /// the captured tensor `operand`, asks.
  std::optional<unsigned> findTable(mlir::Operation *op, unsigned operand) const;
  /// The same for an op that reads the captured tensor itself.
  std::optional<unsigned> getTable(mlir::Operation *op) const;
};

} // namespace attn

#endif // ATTN_PATTERN_CAPTURES_H
