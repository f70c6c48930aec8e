#ifndef ATTN_CODEGEN_GPU_PASSES_TD
#define ATTN_CODEGEN_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnTileToGPU : Pass<"convert-attn-tile-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn tasks of tile ops into kernels of a GPU";
  let description = [{
    Every task function becomes a kernel, an `llvm.func` of the module's `gpu.module @attn_device`, that a block of threads
    runs. A state becomes registers of its threads (see lib/Codegen/GPU/Shape.h), a buffer a part of the block's shared
    memory. Control flow stays structured: the emulator takes the kernels as they are after this pass.

    A kernel takes, per memref of the task, a pointer, its extents and its strides; then pointers to the blocks (AttnBlock),
    the plan's offsets and runs, and partial results; then the number of blocks of a (batch, head) pair, the distances
    between plans of two batches and of two heads, and between partial results of two pairs. The grid has one dimension:
    all blocks of the first pair, then those of the next.

    The code of a step becomes a kernel, too, that takes its memrefs and the number of units; a thread has the units that its
    number in the grid, and steps of the grid's size from there, name.

    Post-condition: no attn_tile op is left but `kernel`, `launch` and `step`.
  }];
  let options = [
    Option<"tensorCores", "tensor-cores", "bool", "true", "multiply f16 and bf16 by mma.sync (sm_80)">,
    Option<"asyncCopies", "async-copies", "bool", "true", "copy to shared memory by cp.async (sm_80)">
  ];
  let dependentDialects = ["::mlir::gpu::GPUDialect", "::mlir::NVVM::NVVMDialect", "::mlir::LLVM::LLVMDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::func::FuncDialect"];
}

def LowerGPUMath : Pass<"attn-gpu-lower-math", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Replace math functions by polynomials and GPU instructions";
  let description = [{
    PTX alone has no math library. exp becomes exp2, which is one instruction; the others become polynomials, as on a CPU.

    Post-condition: the math ops left are single instructions.
  }];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::arith::ArithDialect"];
}

#endif // ATTN_CODEGEN_GPU_PASSES_TD
