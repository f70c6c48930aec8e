#ifndef ATTN_TILING_PASSES_TD
#define ATTN_TILING_PASSES_TD

include "mlir/Pass/PassBase.td"

def TileAttention : Pass<"attn-tile-attention", "::mlir::ModuleOp"> {
  let summary = "Turn attention ops into kernels of loops over tiles";
  let description = [{
    Each `attn.attention` with an `#attn.schedule` becomes an `attn_tile.launch` of an `attn_tile.kernel`: two task functions
    (full query tiles, and the narrow tiles at the end of a sequence) with loops over the planned runs of keys, full and
    partial tiles apart, and a `classify` function, the interval reading of the mask that the planner calls.

    Post-condition: no `attn.attention` is left.
  }];
  let dependentDialects = ["::attn::tile::AttnTileDialect", "::mlir::func::FuncDialect", "::mlir::scf::SCFDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_TILING_PASSES_TD
