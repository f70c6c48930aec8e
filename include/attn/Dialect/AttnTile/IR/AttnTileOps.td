#ifndef ATTN_TILE_OPS_TD
#define ATTN_TILE_OPS_TD

include "attn/Dialect/AttnTile/IR/AttnTileDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

class AttnTile_Op<string mnemonic, list<Trait> traits = []> : Op<AttnTile_Dialect, mnemonic, traits>;

def AttnTile_KernelOp : AttnTile_Op<"kernel", [Symbol]> {
  let summary = "The parts of one compiled attention op";
  let description = [{
    Names the functions of a kernel and records what the runtime needs to plan and run it: `task` computes full query
    tiles, `tail` the last few rows of a sequence, `classify` is the interval reading of the mask (absent: no mask).
    `config` holds the numbers of the runtime's kernel record (`attn/Runtime/Abi.h`), by field name.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$task, FlatSymbolRefAttr:$tail,
                       OptionalAttr<FlatSymbolRefAttr>:$classify, DenseI64ArrayAttr:$tables, DictionaryAttr:$config);
  let assemblyFormat = [{
    $sym_name `task` `(` $task `)` `tail` `(` $tail `)` (`classify` `(` $classify^ `)`)? `tables` `(` $tables `)`
    `config` `` $config attr-dict
  }];
}

def AttnTile_LaunchOp : AttnTile_Op<"launch", [Pure]> {
  let summary = "Run a kernel over whole tensors";
  let description = [{
    Operands are query, key, value, then the captured tensors in the order of the kernel's task function; results are the
    output and, where asked for, the log-sum-exp.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

def AttnTile_SlotOp : AttnTile_Op<"slot", [Pure]> {
  let summary = "The state kept in one slot of a workspace";
  let description = [{
    `workspace` is scratch memory of a thread. Slot `index` holds the state of one query tile of the task, so that several
    query tiles can share a span of keys while it is in the cache. `dim` and `valueDim` are the run-time head_dim and value
    dimension; tiles have up to `keyTile` keys.
  }];
  let arguments = (ins AnyMemRef:$workspace, Index:$index, Index:$dim, Index:$valueDim, I64Attr:$keyTile);
  let results = (outs AttnTile_StateType:$state);
  let assemblyFormat = [{
    $workspace `[` $index `]` `dims` `(` $dim `,` $valueDim `)` `key_tile` `(` $keyTile `)` attr-dict
    `:` type($workspace) `->` type($state)
  }];
}

def AttnTile_BeginOp : AttnTile_Op<"begin", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Start a query tile: load and scale its queries, guess the reference, clear sum and output";
  let description = [{
    Loads rows [row, row + queries) of `query` (clamped to the last row), times `scale`. The reference m is the score of
    each query with key row `row + r + own` (clamped): a guess that is usually near the largest score; `softmax` and
    `check` repair a bad one.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$query, AnyMemRef:$key, Index:$row, Index:$own, F32:$scale);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = [{
    $state `,` $query `[` $row `]` `,` $key `[` $own `]` `scale` `(` $scale `)` attr-dict
    `:` type($state) `,` type($query) `,` type($key)
  }];
}

def AttnTile_RestartOp : AttnTile_Op<"restart", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Forget the reference, sum and output of a state, keep its queries";
  let arguments = (ins AttnTile_StateType:$state);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def AttnTile_ScoreOp : AttnTile_Op<"score", [Pure]> {
  let summary = "S^T = K Q^T for `count` key rows from `row`";
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$key, Index:$row, Index:$count);
  let results = (outs AttnTile_TileType:$tile);
  let assemblyFormat = [{
    $state `,` $key `[` $row `]` `rows` `(` $count `)` attr-dict `:` type($state) `,` type($key) `->` type($tile)
  }];
}

class AttnTile_RegionOp<string mnemonic> : AttnTile_Op<mnemonic, [Pure, SingleBlock, AllTypesMatch<["tile", "result"]>]> {
  let arguments = (ins AttnTile_TileType:$tile, Index:$batch, Index:$head, Index:$query, Index:$key, I64Attr:$step,
                       Index:$numQueries, Index:$numKeys, Variadic<AnyType>:$captured,
                       UnitAttr:$nonnegative);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs AttnTile_TileType:$result);
  let assemblyFormat = [{
    $tile `at` `(` $batch `,` $head `,` $query `,` $key `)` `step` $step `of` `(` $numQueries `,` $numKeys `)`
    (`nonnegative` $nonnegative^)?
    (`captured` `(` $captured^ `:` type($captured) `)`)? $body attr-dict `:` type($tile)
  }];
}

def AttnTile_ModifyOp : AttnTile_RegionOp<"modify"> {
  let summary = "Apply a score region to every element";
  let description = [{
    The region takes (score : f32, b, h, i, j, number of queries, number of keys, captured...) and yields f32. Query row r
    of the tile stands at position `query + r * step`, key row c at `key + c * step`; with `nonnegative` no query position is
    below 0. Captured memrefs are read with `memref.load`; an index outside reads the nearest element.
  }];
}

def AttnTile_MaskOp : AttnTile_RegionOp<"mask"> {
  let summary = "Keep the elements for which a mask region holds";
  let description = "As `modify`, without the score and yielding i1. Masked elements get weight exactly 0 in `softmax`.";
}

def AttnTile_YieldOp : AttnTile_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["ModifyOp", "MaskOp"]>]> {
  let summary = "The value of a modify or mask region";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def AttnTile_SoftmaxOp : AttnTile_Op<"softmax", [AllTypesMatch<["state", "result"]>, AllTypesMatch<["scores", "weights"]>]> {
  let summary = "Weights exp(s - m) of a tile, added to the sum";
  let description = [{
    Lazy (the default): m stays as it is unless a sum passes 2^40; then m becomes the largest score so far, the sum and the
    output are rescaled, and the tile is done again. With `exact`, m is raised to the largest kept score of every tile
    first (the online softmax of Milakov and Gimelshein, arXiv 1805.02867).
  }];
  let arguments = (ins AttnTile_TileType:$scores, AttnTile_StateType:$state, UnitAttr:$exact);
  let results = (outs AttnTile_TileType:$weights, AttnTile_StateType:$result);
  let assemblyFormat = "(`exact` $exact^)? $scores `,` $state attr-dict `:` type($scores) `,` type($state)";
}

def AttnTile_AccumulateOp : AttnTile_Op<"accumulate", [AllTypesMatch<["state", "result"]>]> {
  let summary = "O^T += V^T P^T for the tile's key rows from `row`";
  let description = [{
    With `skip_zero`, a weight of 0 adds nothing whatever the value row holds, so that a NaN or an infinity of a masked key
    cannot reach the output.
  }];
  let arguments = (ins AttnTile_TileType:$weights, AnyMemRef:$value, Index:$row, Index:$count, AttnTile_StateType:$state,
                       UnitAttr:$skip_zero);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = [{
    $weights `,` $value `[` $row `]` `rows` `(` $count `)` `into` $state (`skip_zero` $skip_zero^)? attr-dict
    `:` type($weights) `,` type($value) `,` type($state)
  }];
}

def AttnTile_CheckOp : AttnTile_Op<"check"> {
  let summary = "Is some sum so small (below 2^-60) that weights may have been lost?";
  let description = [{
    True also for a row that keeps nothing. The tile is then done again from `restart` with exact softmax.
  }];
  let arguments = (ins AttnTile_StateType:$state);
  let results = (outs I1:$lost);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def AttnTile_FinishOp : AttnTile_Op<"finish"> {
  let summary = "Normalise and store a query tile, and its log-sum-exp (natural log)";
  let description = [{
    Stores rows [row, min(row + queries, rows of output)). A row that kept nothing is 0 with log-sum-exp -inf.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$output, Index:$row, Optional<AnyMemRef>:$lse);
  let assemblyFormat = [{
    $state `,` $output `[` $row `]` (`lse` `(` $lse^ `:` type($lse) `)`)? attr-dict `:` type($state) `,` type($output)
  }];
}

def AttnTile_FinishPartialOp : AttnTile_Op<"finish_partial"> {
  let summary = "Store the unnormalised result of a range of keys, to be merged with others";
  let description = [{
    Row r of `partials` is valueDim floats of sum(p v), then m, then l. `rows` rows are stored from `row`.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$partials, Index:$row, Index:$rows);
  let assemblyFormat = "$state `,` $partials `[` $row `]` `rows` `(` $rows `)` attr-dict `:` type($state) `,` type($partials)";
}

#endif
