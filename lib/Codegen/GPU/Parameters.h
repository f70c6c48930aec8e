//===- Parameters.h - What a kernel is called with --------------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_PARAMETERS_H
#define ATTN_LIB_CODEGEN_GPU_PARAMETERS_H

#include "Descriptor.h"
#include "Shape.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace attn::cuda {

/// The parameters of a kernel, in order: per memref of the task a pointer, its extents and its strides, then these,
/// then memrefs that only this kernel has. All have 8 bytes. The runtime makes them in lib/Runtime/device.c.
struct Parameters {
  llvm::SmallVector<Descriptor> memrefs;
  Value blocks, offsets, runs, partials; // pointers
  Value count;                           // blocks of a pair: a batch, and the heads that are packed
  Value perBatch, perHead;               // query tiles between the plans of two batches, of two such heads
  Value perPair;                         // rows between the partial results of two pairs
  Value parts;                           // of split keys
  llvm::SmallVector<Descriptor> more;

  /// The memrefs that a task function takes.
  static llvm::ArrayRef<Type> memrefTypes(mlir::func::FuncOp task);
  static Parameters read(Emit &e, mlir::func::FuncOp task, mlir::Block &entry, llvm::ArrayRef<Type> more = {});

  /// The record AttnBlock number `index`.
  Value block(Emit &e, Value index) const;
  static Value field(Emit &e, Value block, int64_t index) { return e.load(e.b.getI64Type(), e.at(block, 8 * index)); }
  /// Bytes from the start of the partial results to row 0 of a block.
  Value partialBytes(Emit &e, Value block, Value pair, int64_t width) const;
};

/// An empty kernel with these parameters, at the end of `device`. `more`: types of its own memrefs.
mlir::LLVM::LLVMFuncOp declareKernel(Emit &e, mlir::func::FuncOp task, mlir::gpu::GPUModuleOp device,
                                     llvm::StringRef name, int64_t threads, llvm::ArrayRef<Type> more = {});
/// One that takes memrefs and then `rest`.
mlir::LLVM::LLVMFuncOp declareKernel(Emit &e, llvm::ArrayRef<Type> memrefs, llvm::ArrayRef<Type> rest,
                                     mlir::gpu::GPUModuleOp device, llvm::StringRef name, int64_t threads);
/// The memrefs that `arguments` start with; `next` is the first argument behind them.
llvm::SmallVector<Descriptor> readMemRefs(Emit &e, llvm::ArrayRef<Type> memrefs, ValueRange arguments, unsigned &next);

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_PARAMETERS_H
