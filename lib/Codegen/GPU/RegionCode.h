//===- RegionCode.h - A score or mask region for one element ----*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_REGIONCODE_H
#define ATTN_LIB_CODEGEN_GPU_REGIONCODE_H

#include "Emit.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace attn::cuda {

/// Writes out the body of a region. A GPU computes in 32 bits; 64 take several instructions and two registers. So an
/// index is an i32 where its bounds, and those of all that it comes from, fit.
class RegionCode {
public:
  /// `positions`: the number of the first argument that is no score. `nonnegative`: is no query position below 0?
  RegionCode(mlir::Block &body, unsigned positions, bool nonnegative);

  /// The value that the region yields. Batch, head, positions and extents among the arguments are i32.
  Value write(Emit &e, ValueRange arguments) const;

private:
  void bound(mlir::Operation &op);
  bool fits(Value v) const;
  bool computesInWords(mlir::Operation &op) const;
  bool isWord(Value v) const { return words.contains(v); }
  bool isNonNegative(Value v) const { return ranges.at(v).smin().isNonNegative(); }

  void writeOp(Emit &e, mlir::Operation &op, mlir::IRMapping &map) const;
  Value writeInWords(Emit &e, mlir::Operation &op, ValueRange operands) const;
  Value read(Emit &e, mlir::memref::LoadOp load, mlir::IRMapping &map) const;

  mlir::Block &body;
  llvm::DenseMap<Value, mlir::ConstantIntRanges> ranges; // of integers and indices
  llvm::DenseSet<Value> words;                           // indices that are i32
};

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_REGIONCODE_H
