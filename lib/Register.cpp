//===- Register.cpp - Everything of attn-mlir in three calls ----------------===//

#include "attn/Register.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pattern/IntervalModels.h"

namespace attn {

void registerAllDialects(mlir::DialectRegistry &registry) { registry.insert<AttnDialect>(); }

void registerAllExtensions(mlir::DialectRegistry &registry) { registerIntervalModels(registry); }

void registerAllPasses() {}

} // namespace attn
