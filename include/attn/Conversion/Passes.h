//===- Passes.h - Other dialects to attn ------------------------*- C++ -*-===//
#ifndef ATTN_CONVERSION_PASSES_H
#define ATTN_CONVERSION_PASSES_H

#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Conversion/Passes.h.inc"

} // namespace attn

#endif // ATTN_CONVERSION_PASSES_H
