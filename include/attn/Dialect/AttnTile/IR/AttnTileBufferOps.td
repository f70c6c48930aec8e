#ifndef ATTN_TILE_BUFFER_OPS_TD
#define ATTN_TILE_BUFFER_OPS_TD

// Ops for targets whose threads share a small fast memory: tiles of keys and values are fetched into it ahead of their
// use, while the products of earlier tiles run.

def AttnTile_BufferOp : AttnTile_Op<"buffer", [MemoryEffects<[MemAlloc]>]> {
  let summary = "Fast memory shared by the threads that work on a query tile";
  let description = [{
    Has `slots` slots of `rows` by `width` elements. How a slot is laid out is the target's affair; only tile ops read it.
  }];
  let results = (outs AttnTile_BufferType:$buffer);
  let assemblyFormat = "attr-dict `:` type($buffer)";
}

def AttnTile_FetchOp : AttnTile_Op<"fetch"> {
  let summary = "Start copying rows of a matrix into a slot";
  let description = [{
    Rows [row, row + count) of `source` become rows 0, 1, ... of the slot; what the slot holds beyond `count` rows or the
    source's columns becomes 0. `count` is at least 1. Of a source of rank 3, heads x rows x columns, row r of the slot is row
    `row` + r div heads of head r mod heads, and `count` counts the rows of a head. The copy is under way until `await`.

    - T20: source and buffer have the same elements and columns
  }];
  let arguments = (ins AnyMemRef:$source, Index:$row, Index:$count, AttnTile_BufferType:$buffer, Index:$slot);
  let assemblyFormat = [{
    $source `[` $row `]` `rows` `(` $count `)` `into` $buffer `[` $slot `]` attr-dict `:` type($source) `,` type($buffer)
  }];
  let hasVerifier = 1;
}

def AttnTile_CommitOp : AttnTile_Op<"commit"> {
  let summary = "Close a group of fetches: those since the last commit";
  let description = "`await` counts groups, also empty ones: a pass of a loop that fetches nothing commits as the others do.";
  let assemblyFormat = "attr-dict";
}

def AttnTile_AwaitOp : AttnTile_Op<"await"> {
  let summary = "Wait until all groups but the newest `pending` have arrived, and for each other";
  let description = [{
    All threads of the tile meet here: what they fetched can be read by all, and what they read before can be overwritten.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "`pending` `(` $pending `)` attr-dict";
}

def AttnTile_StartOp : AttnTile_Op<"start"> {
  let summary = "Start a query tile from queries in a buffer: no key seen yet";
  let description = [{
    The state's reference is -infinity, so the first tile sets it. `scale` brings products to the unit of the state, as in
    `begin`. Slot 0 of the buffer has to have arrived. A state of dim 0 has no queries.

    - T19: this buffer, and those of keys and values of `score` and `accumulate`, have the rows of the tile and the columns
      of the state
  }];
  let arguments = (ins Optional<AttnTile_BufferType>:$query, F32:$scale);
  let results = (outs AttnTile_StateType:$state);
  let assemblyFormat = "(`queries` `(` $query^ `:` type($query) `)`)? `scale` `(` $scale `)` attr-dict `->` type($state)";
  let hasVerifier = 1;
}

def AttnTile_ClipOp : AttnTile_Op<"clip", [Pure, AllTypesMatch<["tile", "result"]>]> {
  let summary = "Mask the key rows at and after `count`";
  let description = [{
    A slot is as high as a tile, also where fewer keys are left: the rows behind them hold zeros, whose scores are no scores.
  }];
  let arguments = (ins AttnTile_TileType:$tile, Index:$count);
  let results = (outs AttnTile_TileType:$result);
  let assemblyFormat = "$tile `rows` `(` $count `)` attr-dict `:` type($tile)";
}

#endif // ATTN_TILE_BUFFER_OPS_TD
