//===- Passes.h - C functions for a spec ------------------------*- C++ -*-===//
#ifndef ATTN_ENTRY_PASSES_H
#define ATTN_ENTRY_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Entry/Passes.h.inc"

} // namespace attn

#endif // ATTN_ENTRY_PASSES_H
