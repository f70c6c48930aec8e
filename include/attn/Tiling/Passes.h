//===- Passes.h - attn to loops over attn_tile ------------------*- C++ -*-===//
#ifndef ATTN_TILING_PASSES_H
#define ATTN_TILING_PASSES_H

#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Tiling/Passes.h.inc"

} // namespace attn

#endif // ATTN_TILING_PASSES_H
