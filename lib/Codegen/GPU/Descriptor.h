//===- Descriptor.h - Memrefs as pointer, extents and strides ---*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_DESCRIPTOR_H
#define ATTN_LIB_CODEGEN_GPU_DESCRIPTOR_H

#include "Emit.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace attn::cuda {

/// A memref in global memory as the values it is converted to: the pointer to its first element, then the extents and
/// the strides (of type index, strides in elements) that its type leaves open.
struct Descriptor {
  mlir::MemRefType type;
  Value pointer;
  Values extents, strides;

  static llvm::SmallVector<Type> types(mlir::MemRefType type);
  static Descriptor read(Emit &e, mlir::MemRefType type, ValueRange parts);
  Values parts() const;

  /// An index has 64 bits, an i1 a byte.
  int64_t elementBytes() const {
    Type element = type.getElementType();
    return element.isIndex() ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  }
  /// The address of the element at `indices`.
  Value address(Emit &e, ValueRange indices) const;
};

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_DESCRIPTOR_H
