//===- AttnAttrs.td - Attributes of the attn dialect ---------*- tablegen -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD

include "mlir/IR/AttrTypeBase.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"

def Attn_AlignAttr : EnumAttr<Attn_Dialect, Attn_Align, "align">;
def Attn_NormalizerAttr : EnumAttr<Attn_Dialect, Attn_Normalizer, "normalizer">;

class Attn_Size<string default, string desc> : DefaultValuedParameter<"int64_t", default, desc>;

def Attn_ScheduleAttr : AttrDef<Attn_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "How an attention op is cut into tiles";
  let description = [{
    Everything the stages after `schedule` need to know. Keys left out keep their defaults; all counts are rows unless said
    otherwise.

    ```mlir
    #attn.schedule<query_tile = 48, key_tile = 128, reindex = residue, reindex_size = 128>
    ```

    Constraints
    - S1: query_tile, key_tile, tail_tile, granule, group, span and reindex_size are at least 1; split and tasks are at least 0
    - S2: key_tile is a multiple of granule
    - S3: reindex = dense has reindex_size = 1
    - S4: warps is at least 0, and stages at least 1
    - S5: with warps, key_tile is a multiple of 16, and query_tile of 16 * warps; or query_tile is one of 16, and 16 * warps
      of it: then several warps share the columns of the values
    - S6: pack is at least 1 and at most query_tile; above 1 only with warps
  }];
  let parameters = (ins
    Attn_Size<"48", "query rows of a tile">:$query_tile,
    Attn_Size<"128", "key rows of a tile">:$key_tile,
    Attn_Size<"16", "query rows of a tile where few rows are left">:$tail_tile,
    Attn_Size<"16", "runs of keys start and end at multiples of this">:$granule,
    Attn_Size<"8", "query tiles of a task; they share a span of keys in the cache">:$group,
    Attn_Size<"2048", "keys that stay in the cache while the query tiles of a task pass over them">:$span,
    Attn_Size<"0", "least keys of a part where keys are split as there are few tasks; 0: never split">:$split,
    Attn_Size<"32", "tasks to aim for: below it groups get smaller, then keys are split; 0: neither">:$tasks,
    DefaultValuedParameter<"::attn::ReindexKind", "::attn::ReindexKind::Dense",
                           "how the mask falls into smaller dense problems">:$reindex,
    Attn_Size<"1", "the modulus or block size of the reindexing">:$reindex_size,
    Attn_Size<"0", "warps of a block of GPU threads, which share a query tile; 0: code for a CPU">:$warps,
    Attn_Size<"2", "tiles of keys and values that a block has in shared memory, under way or in use">:$stages,
    Attn_Size<"1", "query heads whose rows share a query tile, and with it keys and values, on a GPU">:$pack);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
