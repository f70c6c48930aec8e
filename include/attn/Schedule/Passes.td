#ifndef ATTN_SCHEDULE_PASSES_TD
#define ATTN_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def ExpandRows : Pass<"attn-expand-rows", "::mlir::ModuleOp"> {
  let summary = "Attention over lists of rows to attention over gathered rows";
  let description = [{
    `query_rows` and `key_rows` of an `attn.attention` become `attn.gather_rows`. In its regions a position is then an entry of the
    list, and the mask leaves out entries that are no row.

    Post-condition: no `attn.attention` has `query_rows` or `key_rows`.
  }];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect"];
}

def SelectSchedule : Pass<"attn-select-schedule", "::mlir::ModuleOp"> {
  let summary = "Choose tile sizes, reindexing and key splits";
  let description = [{
    Writes an `#attn.schedule` on every `attn.attention` that has none, from the mask's shape and the numbers of the target
    below. A union in f32 that is less work as attentions that join each other becomes those first. An option other than 0
    overrides the choice. A schedule that stands on an op is kept as it is, so it can be written by hand; one that there is
    no code for on the target is an error.

    Post-condition: every `attn.attention` has a schedule that the target can run.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", "16", "floats of a vector">,
    Option<"rows", "rows", "int64_t", "8", "key rows of a register block of three vectors">,
    Option<"amx", "amx", "bool", "false", "the CPU multiplies tiles of bf16 (AMX)">,
    Option<"bf16Pairs", "bf16-pairs", "bool", "false", "the CPU multiplies pairs of bf16 (AVX512-BF16)">,
    Option<"l1Bytes", "l1-bytes", "int64_t", "32768", "bytes of a core's first-level data cache">,
    Option<"l2Bytes", "l2-bytes", "int64_t", "1048576", "bytes of a core's second-level cache">,
    Option<"cores", "cores", "int64_t", "16", "cores to have work for">,
    ListOption<"pairCosts", "pair-costs", "double", "time of a pair in query tiles of 1, 2, 3 and 4 vectors, of a wide one">,
    Option<"chip", "chip", "std::string", "\"\"", "choose for this GPU (sm_80, ...), not for a CPU">,
    Option<"queryTile", "query-tile", "int64_t", "0", "query rows of a tile; 0: choose">,
    Option<"keyTile", "key-tile", "int64_t", "0", "key rows of a tile; 0: choose">,
    Option<"group", "group", "int64_t", "0", "query tiles of a task; 0: choose">,
    Option<"split", "split", "int64_t", "0", "keys of a split where there are few tasks; 0: choose">,
    Option<"pack", "pack", "int64_t", "0", "query heads that share a query tile, on a GPU; 0: choose">,
    Option<"reindex", "reindex", "bool", "true", "run strided, axial and blocked masks as smaller dense problems">
  ];
  let dependentDialects = ["::attn::AttnDialect"];
}

#endif // ATTN_SCHEDULE_PASSES_TD
