//===- AttnEmptyMask.h - What masks are made of ------------------*- C++ -*-===//
#ifndef ATTN_LIB_DIALECT_ATTN_IR_ATTNEMPTYMASK_H
#define ATTN_LIB_DIALECT_ATTN_IR_ATTNEMPTYMASK_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// Distances j - i that a predicate keeps: low <= j - i <= high, an absent bound being open.
struct Band {
  mlir::Value i, j;
  std::optional<int64_t> low, high;
};

/// The band of causal and window; nothing for other ops.
std::optional<Band> readBand(mlir::Value value);

/// The value that is negated, where `value` is a negation (xor with true); else null.
mlir::Value readNegation(mlir::Value value);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_ATTNEMPTYMASK_H
