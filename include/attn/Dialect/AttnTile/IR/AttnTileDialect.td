#ifndef ATTN_TILE_DIALECT_TD
#define ATTN_TILE_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"

def AttnTile_Dialect : Dialect {
  let name = "attn_tile";
  let cppNamespace = "::attn::tile";
  let summary = "One tile of attention work, no target yet";
  let description = [{
    A *task* computes some query tiles of one (batch, query head). It loops over the key ranges that the plan kept and, per
    tile of keys, does `score`, `modify`, `mask`, `softmax`, `accumulate`. Scores lie key-major: `tile<keys x queries>`.

    The running state of a query tile (scaled queries, reference m, sum l, accumulated output) is one SSA value of type
    `!attn_tile.state`. Ops that update a state return the new one; a target may keep it in registers (GPU) or update the
    slot of memory that it came from in place (CPU), which is why a state is used up (T21).

    Constraints are numbered; those of single types and ops stand there. Of all ops that have a tile, a state or memory:
    - T9: query, key, value and output are matrices (rank 2) of f32, f16 or bf16; the queries that are fetched into a buffer,
      and the output, also one for each of some heads (rank 3)
    - T10: their columns are what the state says, `dim` for query and key, `valueDim` for value and output: equal, or -1 and
      dynamic
    - T11: workspace, partial results and log-sum-exp are memrefs of rank 1 of f32; log-sum-exp has one rank less than the
      output
    - T12: tile and state have the same number of queries
    - T13: key_tile, step and pack are at least 1
    - T21: a state that an op updates or finishes, or that a loop, branch or end of a region takes, has no use behind it on
      any path; in a loop it is updated only if the loop carries it
  }];
  let useDefaultTypePrinterParser = 1;
}

def AttnTile_ScoreUnit : I32Enum<"ScoreUnit", "what a score means for its weight", [
    I32EnumCase<"Log2", 0, "log2">,       // a difference of 1 is a factor of 2
    I32EnumCase<"Natural", 1, "natural">, // a difference of 1 is a factor of e
    I32EnumCase<"Sigmoid", 2, "sigmoid">, // it is 1 / (1 + e^-s)
    I32EnumCase<"Weight", 3, "weight">    // it is s
  ]> {
  let cppNamespace = "::attn::tile";
}

class AttnTile_Type<string name, string typeMnemonic> : TypeDef<AttnTile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def AttnTile_TileType : AttnTile_Type<"Tile", "tile"> {
  let summary = "Scores or weights of a tile: keys x queries, f32";
  let description = [{
    - T1: a tile has at least 1 key and 1 query
  }];
  let parameters = (ins "int64_t":$keys, "int64_t":$queries);
  let assemblyFormat = "`<` $keys `by` $queries `>`";
  let genVerifyDecl = 1;
}

def AttnTile_StateType : AttnTile_Type<"State", "state"> {
  let summary = "Running state of a query tile";
  let description = [{
    `queries` rows with head_dim `dim` and value dimension `valueDim`; -1 where the extent is known only at run time.

    `unit` is the unit of the scores of this state and of its reference m: the weight of a score s is 2^(s - m) in `log2`,
    e^(s - m) in `natural`. The scale that `begin` takes brings products to this unit: in `log2` it contains log2 e, and a
    product is the exponent of a power of two, which machines compute. A score region speaks of natural units, so that the
    states of a kernel with one are `natural`, and the factor log2 e comes behind the region. The unit holds for all that
    comes of a state: `finish` gives the log-sum-exp in natural units from either, `finish_partial` stores m in the unit of
    the state, of `log2` a quarter, which never overflows (`natural_partials` of the kernel tells the runtime which it is).

    Scores in `sigmoid` and `weight` are natural, but say what a weight is by themselves: such a state has no reference and no sum,
    `finish` divides by nothing, and there are no partial results.

    - T2: a state has at least 1 query; dim is at least 0 (no queries) and valueDim at least 1, or -1
  }];
  let parameters = (ins "int64_t":$queries, "int64_t":$dim, "int64_t":$valueDim, EnumParameter<AttnTile_ScoreUnit>:$unit);
  let assemblyFormat = "`<` $queries `,` $dim `,` $valueDim `,` $unit `>`";
  let genVerifyDecl = 1;
}

def AttnTile_BufferType : AttnTile_Type<"Buffer", "buffer"> {
  let summary = "Slots for tiles in the memory that the threads of a query tile share";
  let description = [{
    - T18: a buffer has at least 1 slot, row and column, of f32, f16 or bf16
  }];
  let parameters = (ins "int64_t":$slots, "int64_t":$rows, "int64_t":$width, "::mlir::Type":$element);
  let assemblyFormat = "`<` $slots `of` $rows `by` $width `,` $element `>`";
  let genVerifyDecl = 1;
}

#endif
