//===- EmptyMask.h - Masks that keep nothing --------------------*- C++ -*-===//
//
// A mask that keeps no pair at all is a slip of its author. What is proved of it follows from how the mask is written,
// and passes rewrite it; so this is no constraint of the op, but asked once where a spec is read.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_EMPTYMASK_H
#define ATTN_DIALECT_ATTN_IR_EMPTYMASK_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace attn {

/// Fails, with an error at the part that is to blame, where the mask of an attention provably keeps no pair.
mlir::LogicalResult checkKeepsSomething(AttentionOp op);

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_EMPTYMASK_H
