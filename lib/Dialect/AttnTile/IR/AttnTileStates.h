//===- AttnTileStates.h - How states may be used ----------------*- C++ -*-===//
#ifndef ATTN_LIB_DIALECT_ATTNTILE_IR_ATTNTILESTATES_H
#define ATTN_LIB_DIALECT_ATTNTILE_IR_ATTNTILESTATES_H

#include "attn/Dialect/AttnTile/IR/AttnTile.h"

namespace attn::tile {

/// Checks T21 for the states that an op uses and makes.
mlir::LogicalResult verifyStateUses(mlir::Operation *op);

} // namespace attn::tile

#endif // ATTN_LIB_DIALECT_ATTNTILE_IR_ATTNTILESTATES_H
