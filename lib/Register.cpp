//===- Register.cpp - Everything of attn-mlir in three calls ----------------===//

#include "attn/Register.h"
#include "attn/Codegen/CPU/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pattern/IntervalModels.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Schedule/Passes.h"
#include "attn/Tiling/Passes.h"

namespace attn {

void registerAllDialects(mlir::DialectRegistry &registry) { registry.insert<AttnDialect, tile::AttnTileDialect>(); }

void registerAllExtensions(mlir::DialectRegistry &registry) { registerIntervalModels(registry); }

void registerAllPasses() {
  registerAttnSchedulePasses();
  registerAttnTilingPasses();
  registerAttnCodegenCPUPasses();
}

} // namespace attn
