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

def TileSteps : Pass<"attn-tile-steps", "::mlir::ModuleOp"> {
  let summary = "Turn the steps around attention into code over memrefs";
  let description = [{
    Each op between attentions (`attn.gather_rows`, `attn.merge`, ...) becomes an `attn_tile.step` of a function that computes one unit of it:
    some rows, with vectors of `lanes` numbers, or one number where `lanes` is 1 and the unit a thread of a GPU.

    Post-condition: of the ops that a function runs, only `attn.attention`, `attn_tile.launch` and `attn_tile.step` are left.
  }];
  let options = [Option<"lanes", "lanes", "int64_t", /*default=*/"16", "floats of a vector; 1 for a GPU">];
  let dependentDialects = ["::attn::tile::AttnTileDialect", "::mlir::func::FuncDialect", "::mlir::scf::SCFDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::vector::VectorDialect"];
}

#endif // ATTN_TILING_PASSES_TD
