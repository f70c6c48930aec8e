//===- Captured.h - What the uses of a captured tensor ask of its elements --===//
#ifndef ATTN_LIB_INPUTS_CAPTURED_H
#define ATTN_LIB_INPUTS_CAPTURED_H

#include "Extents.h"
#include "attn/Reference/HostTensor.h"
#include <random>

namespace attn::inputs {

/// What random elements a captured tensor should get.
struct Filling {
  enum Kind { Normal, Documents, Uniform } kind = Normal;
  int64_t least = 0, most = 7; // Uniform: both included
};

/// Extent of dimension `dim` of a captured tensor that its uses ask for (an index that runs over all heads asks for H),
/// else a small default. `table` is complete.
int64_t getCapturedExtent(mlir::Value tensor, unsigned dim, const ExtentTable &table);

/// What the uses of `tensor` make of its elements.
Filling getFilling(mlir::Value tensor, const ExtentTable &table);

/// A tensor of random elements.
HostTensor draw(llvm::ArrayRef<int64_t> shape, mlir::Type elementType, const Filling &filling, std::mt19937_64 &random);

} // namespace attn::inputs

#endif // ATTN_LIB_INPUTS_CAPTURED_H
