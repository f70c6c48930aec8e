//===- Passes.td - Passes of the entry stage ---------------*- tablegen -*-===//
#ifndef ATTN_ENTRY_PASSES_TD
#define ATTN_ENTRY_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerEntryPoints : Pass<"attn-lower-entry-points", "::mlir::ModuleOp"> {
  let summary = "Make the C functions over DLPack tensors, and the tables that describe them to the runtime";
  let description = [{
    Every public function becomes `NAME`, `NAME_plan` and `NAME_run` (see attn/Runtime/Attn.h), and a constant table in the
    layout of attn/Runtime/Abi.h. Task functions get an entry that unpacks the runtime's descriptors.

    Post-condition: no op of attn or attn_tile is left.
  }];
  let options = [
    Option<"threads", "threads", "bool", "true", "let the runtime use all OpenMP threads">,
    Option<"x86", "x86", "bool", "true", "the target is x86: tasks flush denormals to zero">
  ];
  let dependentDialects = ["::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect", "::mlir::arith::ArithDialect",
                           "::mlir::LLVM::LLVMDialect"];
}

#endif // ATTN_ENTRY_PASSES_TD
