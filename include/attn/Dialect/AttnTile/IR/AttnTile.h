//===- AttnTile.h - The attn_tile dialect -----------------------*- C++ -*-===//
//
// One tile of attention work, no target yet. See AttnTileOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H
#define ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/AttnTile/IR/AttnTileDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileOps.h.inc"

#endif // ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H
