#ifndef ATTN_TILE_DIALECT_TD
#define ATTN_TILE_DIALECT_TD

include "mlir/IR/AttrTypeBase.td"
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
    slot of memory that it came from in place (CPU), which is why a state is used by one op at a time.
  }];
  let useDefaultTypePrinterParser = 1;
}

class AttnTile_Type<string name, string typeMnemonic> : TypeDef<AttnTile_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def AttnTile_TileType : AttnTile_Type<"Tile", "tile"> {
  let summary = "Scores or weights of a tile: keys x queries, f32";
  let parameters = (ins "int64_t":$keys, "int64_t":$queries);
  let assemblyFormat = "`<` $keys `by` $queries `>`";
}

def AttnTile_StateType : AttnTile_Type<"State", "state"> {
  let summary = "Running state of a query tile";
  let description = [{
    `queries` rows with head_dim `dim` and value dimension `valueDim`; -1 where the extent is known only at run time.
  }];
  let parameters = (ins "int64_t":$queries, "int64_t":$dim, "int64_t":$valueDim);
  let assemblyFormat = "`<` $queries `,` $dim `,` $valueDim `>`";
}

#endif
