//===- Passes.h - attn_tile to vector code and LLVM -------------*- C++ -*-===//
#ifndef ATTN_CODEGEN_CPU_PASSES_H
#define ATTN_CODEGEN_CPU_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Codegen/CPU/Passes.h.inc"

} // namespace attn

#endif // ATTN_CODEGEN_CPU_PASSES_H
