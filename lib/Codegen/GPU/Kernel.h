//===- Kernel.h - From a task to the frame of a kernel ----------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_KERNEL_H
#define ATTN_LIB_CODEGEN_GPU_KERNEL_H

#include "Shape.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Transforms/DialectConversion.h"

namespace attn::cuda {

/// Name of the shared memory of a block, which every kernel of a module declares.
constexpr const char *kSharedName = "attn_shared";

/// Moves a task into a new kernel of `device`. Its memrefs and fields are casts of the kernel's parameters, of the
/// block that the thread belongs to, and of what the plan says of it. Sets the block's threads and shared memory.
mlir::LLVM::LLVMFuncOp makeKernel(mlir::func::FuncOp task, mlir::gpu::GPUModuleOp device, const KernelShape &shape);

/// Adds the kernel that merges the parts of split keys of `task` and, where it `joins`, an output and its log-sum-exp,
/// which it takes behind the parameters of the task. Its grid has one block per query tile.
void makeMergeKernel(mlir::func::FuncOp task, mlir::gpu::GPUModuleOp device, const KernelShape &shape, bool hasLse,
                     bool joins);

/// Moves the code of a step into a new kernel of `device`. It takes the memrefs and then the number of units.
mlir::LogicalResult makeStepKernel(mlir::func::FuncOp code, mlir::gpu::GPUModuleOp device);

/// Gives every buffer its place in shared memory and answers the bytes of all of them.
int64_t placeBuffers(mlir::Operation *task, const KernelShape &shape);

/// Bytes of a slot of a buffer.
int64_t slotBytes(tile::BufferType type, const KernelShape &shape);

/// Rules for the ops of attn_tile, and for memrefs.
void populateTilePatterns(mlir::RewritePatternSet &patterns, mlir::TypeConverter &types, const KernelShape &shape);

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_KERNEL_H
