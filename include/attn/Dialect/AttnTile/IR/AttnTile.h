//===- AttnTile.h - The attn_tile dialect -----------------------*- C++ -*-===//
//
// One tile of attention work, no target yet. See AttnTileOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H
#define ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "attn/Dialect/AttnTile/IR/AttnTileDialect.h.inc"
#include "attn/Dialect/AttnTile/IR/AttnTileEnums.h.inc"

namespace attn::tile {

/// The index arguments of a task function, in this order, behind its memrefs.
enum TaskField {
#define ATTN_TASK_FIELD(Name, name) k##Name,
#include "attn/Runtime/Fields.def"
  kNumTaskFields
};

/// The numbers of a kernel's `config`, which are those of the runtime's kernel record.
struct KernelConfig {
#define ATTN_KERNEL_NUMBER(name) int64_t name = 0;
#include "attn/Runtime/Fields.def"

  mlir::DictionaryAttr toAttr(mlir::MLIRContext *context) const;
};

/// Does code read or write a tensor of type `tensor` through a memref of type `memref`? Booleans lie in bytes.
bool agree(mlir::Type tensor, mlir::Type memref);

} // namespace attn::tile

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileTypes.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileOps.h.inc"

#endif // ATTN_DIALECT_ATTNTILE_IR_ATTNTILE_H
