//===- Passes.h - attn_tile to warp code and LLVM -------------*- C++ -*-===//
#ifndef ATTN_CODEGEN_GPU_PASSES_H
#define ATTN_CODEGEN_GPU_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Codegen/GPU/Passes.h.inc"

} // namespace attn

#endif // ATTN_CODEGEN_GPU_PASSES_H
