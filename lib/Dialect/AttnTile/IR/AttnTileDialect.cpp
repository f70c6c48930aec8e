//===- AttnTileDialect.cpp - The attn_tile dialect ------------------------===//
#include "attn/Dialect/AttnTile/IR/AttnTile.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace attn::tile;

#include "attn/Dialect/AttnTile/IR/AttnTileDialect.cpp.inc"
#include "attn/Dialect/AttnTile/IR/AttnTileEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileTypes.cpp.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/AttnTile/IR/AttnTileOps.cpp.inc"

void AttnTileDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "attn/Dialect/AttnTile/IR/AttnTileTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/AttnTile/IR/AttnTileOps.cpp.inc"
      >();
}
