#ifndef ATTN_CODEGEN_CPU_PASSES_TD
#define ATTN_CODEGEN_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertAttnTileToCPU : Pass<"convert-attn-tile-to-cpu", "::mlir::ModuleOp"> {
  let summary = "Turn tile ops into calls of vector micro-kernels";
  let description = [{
    Every attn_tile op of a task becomes a call of a function that is built once per kernel and shape, with queries in
    vector lanes. A state becomes its slot of the task's workspace, updated in place: weights of a tile at the start, then
    one slot per query tile. `score`, `modify`, `mask` and `softmax` become one pass over the tile.

    With `amx`, products of bf16 run in tile registers where tiles and runs of keys are whole blocks of 32; with `bf16-pairs`
    alone, the same tiles are multiplied by vdpbf16ps.

    Post-condition: no attn_tile op is left but `kernel` and `launch`.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "floats of a vector">,
    Option<"rows", "rows", "int64_t", "8", "key rows of a register block of three vectors">,
    Option<"avx512Exp", "avx512-exp", "bool", "true", "use the AVX-512 instructions for exponentials">,
    Option<"amx", "amx", "bool", "false", "multiply tiles of bf16 (AMX); needs 16 lanes">,
    Option<"bf16Pairs", "bf16-pairs", "bool", "false", "multiply pairs of bf16 (AVX512-BF16); needs 16 lanes">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "1048576", "bytes of a core's second-level cache">
  ];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::vector::VectorDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

def LowerCPUMath : Pass<"attn-cpu-lower-math", "::mlir::ModuleOp"> {
  let summary = "Replace math functions by polynomials, and what would be a library call by arithmetic";
  let description = [{
    The object needs no libm and no compiler runtime. A math op that has no polynomial here is an error that names it and
    the ones that have. What the CPU has no instruction for is written out: arithmetic on f16 and bf16 and their
    conversions, rounding to whole numbers, fma, the remainder of floats.

    Post-condition: the math and float ops left are instructions of the target, or a few that LLVM writes inline.
  }];
  let options = [
    Option<"fma", "fma", "bool", "true", "the CPU has fused multiply-adds (FMA on x86)">,
    Option<"rounding", "rounding", "bool", "true", "the CPU rounds to whole numbers (SSE4.1 on x86)">,
    Option<"f16Conversions", "f16-conversions", "bool", "true", "the CPU converts f16 from and to f32 (F16C on x86)">,
    Option<"avx512Exp", "avx512-exp", "bool", "false", "use the AVX-512 instruction that scales by a power of two">
  ];
  let dependentDialects = ["::mlir::math::MathDialect", "::mlir::vector::VectorDialect", "::mlir::arith::ArithDialect",
                           "::mlir::scf::SCFDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_CODEGEN_CPU_PASSES_TD
