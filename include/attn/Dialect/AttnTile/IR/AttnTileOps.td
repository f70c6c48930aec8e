#ifndef ATTN_TILE_OPS_TD
#define ATTN_TILE_OPS_TD

include "attn/Dialect/AttnTile/IR/AttnTileDialect.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"

class AttnTile_Op<string mnemonic, list<Trait> traits = []> : Op<AttnTile_Dialect, mnemonic, traits>;

def AttnTile_KernelOp : AttnTile_Op<"kernel", [Symbol, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The parts of one compiled attention op";
  let description = [{
    Names the functions of a kernel and records what the runtime needs to plan and run it: `task` computes full query
    tiles, `tail` the last few rows of a sequence, `classify` is the interval reading of the mask (absent: no mask).

    A task function takes the memrefs of query, key, value and output, of the log-sum-exp where it is asked for, of the
    captured tensors and of the membership bitmaps, then the fields of AttnTask as indices, then `offsets` and `runs` of
    the plan, scratch memory and the place for partial results (see `attn/Runtime/Abi.h`).

    `config` holds the numbers of the runtime's kernel record by name (`attn/Runtime/Fields.def`), `tables` one triple of
    kind, captured operand and dimension per table that the runtime derives from a captured tensor. `scratch` says how many
    floats of memory a task needs: base + per_dim * head_dim + per_value_dim * value_dim. A target that keeps states in
    memory fills it in.

    Constraints
    - T3: `task` and `tail` are functions of one type, the one above
    - T4: `classify` is a function of AttnClassify's type; it is there if and only if has_mask is 1
    - T5: `config` has every number of the kernel record, as an i64, and nothing else
    - T6: `tables` are triples (0 range or 1 members, captured operand, dimension of it)
    - T7: `scratch` has three numbers, none below 0
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$task, FlatSymbolRefAttr:$tail,
                       OptionalAttr<FlatSymbolRefAttr>:$classify, DenseI64ArrayAttr:$tables, DictionaryAttr:$config,
                       OptionalAttr<DenseI64ArrayAttr>:$scratch);
  let assemblyFormat = [{
    $sym_name `task` `(` $task `)` `tail` `(` $tail `)` (`classify` `(` $classify^ `)`)? `tables` `(` $tables `)`
    (`scratch` `(` $scratch^ `)`)? `config` `` $config attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The numbers of `config`.
    KernelConfig getNumbers();
  }];
}

def AttnTile_LaunchOp : AttnTile_Op<"launch", [Pure, AttrSizedOperandSegments, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<CompiledOpInterface>]> {
  let summary = "Run a kernel over whole tensors";
  let description = [{
    Operands are query, key, value, then the captured tensors in the order of the kernel's task function; results are the
    output and, where asked for, the log-sum-exp. With `join`, an output and a log-sum-exp over other keys take part in the
    softmax: the runtime merges them with the partial results of the tasks. The inputs that `per_head` numbers have the query heads
    as their first dimension and head_dim as their last, where that is another one. Input number `scores` stands in place of query and
    key; these two are then the value once more, and only extents of keys are read of them.

    - T8: `kernel` is an attn_tile.kernel; its task function takes memrefs of these inputs and outputs, and one more for each
      of its tables of members
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs,
                       Optional<AnyRankedTensor>:$joinedOutput, Optional<AnyRankedTensor>:$joinedLse,
                       OptionalAttr<DenseI64ArrayAttr>:$per_head, OptionalAttr<I64Attr>:$scores);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $kernel `(` $inputs `)` (`per_head` `(` $per_head^ `)`)? (`scores` $scores^)? (`join` `(` $joinedOutput^ `,` $joinedLse `:` type($joinedOutput) `,` type($joinedLse) `)`)?
    attr-dict `:` functional-type($inputs, $outputs)
  }];
}

def AttnTile_StepOp : AttnTile_Op<"step", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<CompiledOpInterface>]> {
  let summary = "Run a function over whole tensors, unit by unit";
  let description = [{
    `code` is a function of the memrefs of all inputs, then of all outputs, and the number of a unit. It computes that unit's part of the
    outputs, whatever the others do: the runtime shares units out to threads, on a GPU one to each. `units` are triples (tensor,
    dimension, size): there are as many units as the product, over the triples, of the extent of that dimension divided by size,
    rounded up, and the last triple varies fastest. Tensors are numbered inputs first.

    `extents` has an array for each tie of extents: its name, pairs of tensor and dimension, and, where the extent follows from
    another one, the five numbers (tensor, dimension, times, plus, by) of (extent * times + plus) floordiv by. The tensors of
    `contiguous` have a last stride of 1. `multiples` are quadruples: the extent (tensor, dimension) is a multiple of the other.

    - T22: `code` is a function of memrefs of these tensors and an index, and returns nothing
    - T23: `units` are triples of a tensor, a dimension of it and a number from 1 up; `multiples` are pairs of such places
  }];
  let arguments = (ins FlatSymbolRefAttr:$code, Variadic<AnyRankedTensor>:$inputs, DenseI64ArrayAttr:$units,
                       ArrayAttr:$extents, DenseI64ArrayAttr:$unitStride, DenseI64ArrayAttr:$multipleExtents);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let assemblyFormat = [{
    $code `(` $inputs `)` `units` `(` $units `)` `extents` `(` $extents `)` `contiguous` `(` $unitStride `)`
    `multiples` `(` $multipleExtents `)` attr-dict
    `:` functional-type($inputs, $outputs)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Input or output by number.
    ::mlir::Value getTensor(int64_t number);
    /// `extents` and `contiguous` as another op states them of the same tensors, in the same order.
    static ::mlir::ArrayAttr encodeExtents(::attn::CompiledOpInterface op);
    static ::mlir::DenseI64ArrayAttr encodeContiguous(::attn::CompiledOpInterface op);
    static ::mlir::DenseI64ArrayAttr encodeMultiples(::attn::CompiledOpInterface op);
  }];
}

def AttnTile_SlotOp : AttnTile_Op<"slot", [Pure]> {
  let summary = "The state kept in one slot of a workspace";
  let description = [{
    `workspace` is scratch memory of a thread. Slot `index` holds the state of one query tile of the task, so that several
    query tiles can share a span of keys while it is in the cache. `dim` and `valueDim` are the run-time head_dim and value
    dimension; tiles have up to `keyTile` keys. How a state lies in its slot is the target's affair.
  }];
  let arguments = (ins AnyMemRef:$workspace, Index:$index, Index:$dim, Index:$valueDim, I64Attr:$keyTile);
  let results = (outs AttnTile_StateType:$state);
  let assemblyFormat = [{
    $workspace `[` $index `]` `dims` `(` $dim `,` $valueDim `)` `key_tile` `(` $keyTile `)` attr-dict
    `:` type($workspace) `->` type($state)
  }];
  let hasVerifier = 1;
}

def AttnTile_BeginOp : AttnTile_Op<"begin", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Start a query tile: load and scale its queries, guess the reference, clear sum and output";
  let description = [{
    Loads rows [row, row + queries) of `query` (clamped to the last row), times `scale`, which brings products to the unit
    of the state. The reference m is the score of each query with key row `row + r + own` (clamped): a guess that is usually
    near the largest score; `softmax` and `check` repair a bad one.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$query, AnyMemRef:$key, Index:$row, Index:$own, F32:$scale);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = [{
    $state `,` $query `[` $row `]` `,` $key `[` $own `]` `scale` `(` $scale `)` attr-dict
    `:` type($state) `,` type($query) `,` type($key)
  }];
  let hasVerifier = 1;
}

def AttnTile_ClearOp : AttnTile_Op<"clear", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Start a query tile whose scores lie in memory: guess a reference of 0, clear sum and output";
  let description = "As `begin` for a state of dim 0, which has no queries.";
  let arguments = (ins AttnTile_StateType:$state);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def AttnTile_RestartOp : AttnTile_Op<"restart", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Forget the reference, sum and output of a state, keep its queries";
  let description = [{
    The state is that of a query tile that has seen no key, and has no guess of a reference: what follows is `softmax exact`,
    which sets one.
  }];
  let arguments = (ins AttnTile_StateType:$state);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def AttnTile_ScoreOp : AttnTile_Op<"score", [MemoryEffects<[MemRead]>]> {
  let summary = "S^T = K Q^T for `count` key rows from `row`, in the unit of the state";
  let description = "Of a buffer, `row` names the slot, and the tile is as high as the slot.";
  let arguments = (ins AttnTile_StateType:$state, AnyTypeOf<[AnyMemRef, AttnTile_BufferType]>:$key, Index:$row, Index:$count);
  let results = (outs AttnTile_TileType:$tile);
  let assemblyFormat = [{
    $state `,` $key `[` $row `]` `rows` `(` $count `)` attr-dict `:` type($state) `,` type($key) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def AttnTile_ReadOp : AttnTile_Op<"read", [MemoryEffects<[MemRead]>]> {
  let summary = "Scores that lie in memory, in place of products, in the unit of the state";
  let description = [{
    The score of query row r and key row c of the tile is `scores[query + r, key + c]`, the nearest element, times `scale`. Of scores of
    rank 3, heads x rows x keys, row r of the tile is row `query` + r div heads of head r mod heads.

    - T26: scores are a memref of rank 2 or 3 of f32, f16 or bf16, of a static number of heads
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$scores, Index:$query, Index:$key, Index:$count, F32:$scale);
  let results = (outs AttnTile_TileType:$tile);
  let assemblyFormat = [{
    $state `,` $scores `[` $query `,` $key `]` `rows` `(` $count `)` `scale` `(` $scale `)` attr-dict
    `:` type($state) `,` type($scores) `->` type($tile)
  }];
  let hasVerifier = 1;
}

def AttnTile_RelativeOp : AttnTile_Op<"relative", [MemoryEffects<[MemRead]>, AttrSizedOperandSegments, AllTypesMatch<["tile", "result"]>]> {
  let summary = "Add products of queries with rows of distances, in the unit of the state";
  let description = [{
    Query row r and key row c of the tile are `distance` + (r - c) * step apart; the row of that distance, or the nearest of `table`, is
    multiplied with the query, plus `bias`, of the head, and with `scale` as `begin` and `start` take it. Where queries lie in a buffer
    it is `query`, and with `pack` = p row r is query r div p of head `head` + r mod p.

    - T25: table is a memref heads x distances x dim, bias heads x dim, of f32, f16 or bf16
  }];
  let arguments = (ins AttnTile_TileType:$tile, AttnTile_StateType:$state, Optional<AttnTile_BufferType>:$query,
                       AnyMemRef:$table, Optional<AnyMemRef>:$bias, Index:$head, Index:$distance, I64Attr:$step, F32:$scale,
                       DefaultValuedAttr<I64Attr, "1">:$pack);
  let results = (outs AttnTile_TileType:$result);
  let assemblyFormat = [{
    $tile `,` $state (`query` `(` $query^ `:` type($query) `)`)? `,` $table `[` $head `,` $distance `]` `step` $step
    (`bias` `(` $bias^ `:` type($bias) `)`)? `scale` `(` $scale `)` attr-dict `:` type($tile) `,` type($state) `,` type($table)
  }];
  let hasVerifier = 1;
}

class AttnTile_RegionOp<string mnemonic> : AttnTile_Op<mnemonic, [
    Pure, SingleBlock, IsolatedFromAbove, AllTypesMatch<["tile", "result"]>]> {
  let arguments = (ins AttnTile_TileType:$tile, Index:$batch, Index:$head, Index:$query, Index:$key, I64Attr:$step,
                       Index:$numQueries, Index:$numKeys, Variadic<AnyType>:$captured,
                       UnitAttr:$nonnegative, DefaultValuedAttr<I64Attr, "1">:$pack);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs AttnTile_TileType:$result);
  let assemblyFormat = [{
    $tile `at` `(` $batch `,` $head `,` $query `,` $key `)` `step` $step `of` `(` $numQueries `,` $numKeys `)`
    (`nonnegative` $nonnegative^)?
    (`captured` `(` $captured^ `:` type($captured) `)`)? $body attr-dict `:` type($tile)
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def AttnTile_ModifyOp : AttnTile_RegionOp<"modify"> {
  let summary = "Apply a score region to every element";
  let description = [{
    The region takes (score : f32, b, h, i, j, number of queries, number of keys, captured...) and yields f32. Query row r
    of the tile stands at position `query + r * step`, key row c at `key + c * step`; with `nonnegative` no query position is
    below 0. With `pack` = p, row r is query r div p of head `head` + r mod p. Captured memrefs are read with `memref.load`; an index outside reads the nearest element.

    Constraints of `modify` and `mask`
    - T14: the region takes these arguments
    - T15: it yields f32 (`modify`) or i1 (`mask`)
    - T16: it holds arith and math ops on scalars, memref.load and memref.dim
    - T17: the scores that a score region gets are of a state that is not `log2`
  }];
}

def AttnTile_MaskOp : AttnTile_RegionOp<"mask"> {
  let summary = "Keep the elements for which a mask region holds";
  let description = "As `modify`, without the score and yielding i1. Masked elements get weight exactly 0 in `softmax`.";
}

def AttnTile_YieldOp : AttnTile_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["ModifyOp", "MaskOp"]>]> {
  let summary = "The value of a modify or mask region";
  let description = "A score as f32, or whether an element is kept as i1.";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def AttnTile_SoftmaxOp : AttnTile_Op<"softmax", [AllTypesMatch<["state", "result"]>, AllTypesMatch<["scores", "weights"]>]> {
  let summary = "Weights of the scores of a tile against the reference m, added to the sum";
  let description = [{
    The weight is 2^(s - m) or e^(s - m), or without any reference what the unit of the state says.

    Lazy (the default): m stays as it is unless weights of the tile would be huge, by a measure of the target; then m becomes
    the largest score so far, sum and output are rescaled, and the weights are those against the new m. Scores beyond f32 may
    come out as anything that `check` sees. With `exact`, they count as the largest score or as masked, and m is raised to
    the largest kept score of every tile first (the online softmax of Milakov and Gimelshein, arXiv 1805.02867).
  }];
  let arguments = (ins AttnTile_TileType:$scores, AttnTile_StateType:$state, UnitAttr:$exact);
  let results = (outs AttnTile_TileType:$weights, AttnTile_StateType:$result);
  let assemblyFormat = "(`exact` $exact^)? $scores `,` $state attr-dict `:` type($scores) `,` type($state)";
  let hasVerifier = 1;
}

def AttnTile_AccumulateOp : AttnTile_Op<"accumulate", [AllTypesMatch<["state", "result"]>]> {
  let summary = "O^T += V^T P^T for the tile's key rows from `row`";
  let description = [{
    With `skip_zero`, a weight of 0 adds nothing whatever the value row holds, so that a NaN or an infinity of a masked key
    cannot reach the output. Of a buffer, `row` names the slot.
  }];
  let arguments = (ins AttnTile_TileType:$weights, AnyTypeOf<[AnyMemRef, AttnTile_BufferType]>:$value, Index:$row, Index:$count, AttnTile_StateType:$state,
                       UnitAttr:$skip_zero);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = [{
    $weights `,` $value `[` $row `]` `rows` `(` $count `)` `into` $state (`skip_zero` $skip_zero^)? attr-dict
    `:` type($weights) `,` type($value) `,` type($state)
  }];
  let hasVerifier = 1;
}

def AttnTile_CheckOp : AttnTile_Op<"check"> {
  let summary = "May weights have been lost, or scores have left the range of f32?";
  let description = [{
    True where a sum or an output is not finite, or a sum is so small, by a measure of the target, that weights may have been
    rounded to 0 or to few digits; perhaps also for a row that keeps nothing. The tile is then done again from `restart`
    with exact softmax.
  }];
  let arguments = (ins AttnTile_StateType:$state);
  let results = (outs I1:$lost);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def AttnTile_SinkOp : AttnTile_Op<"sink", [AllTypesMatch<["state", "result"]>]> {
  let summary = "Add a logit to the sum of weights, as a key would whose value is 0";
  let description = [{
    The logit, in natural units, is `logits[head]`; of a tile with `pack` = p, row r has that of head `head` + r mod p. Of the parts of
    split keys one adds it.

    - T24: the state is of a softmax, `log2` or `natural`; logits are a memref of rank 1 of f32
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$logits, Index:$head, DefaultValuedAttr<I64Attr, "1">:$pack);
  let results = (outs AttnTile_StateType:$result);
  let assemblyFormat = "$state `,` $logits `[` $head `]` attr-dict `:` type($state) `,` type($logits)";
  let hasVerifier = 1;
}

def AttnTile_FinishOp : AttnTile_Op<"finish"> {
  let summary = "Normalise and store a query tile, and its log-sum-exp (natural log)";
  let description = [{
    Stores rows [row, min(row + queries, rows of output)). A row that kept nothing is 0 with log-sum-exp -inf. Into an
    output of rank 3, heads x rows x columns, row r of the tile goes to row `row` + r div heads of head r mod heads.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$output, Index:$row, Optional<AnyMemRef>:$lse);
  let assemblyFormat = [{
    $state `,` $output `[` $row `]` (`lse` `(` $lse^ `:` type($lse) `)`)? attr-dict `:` type($state) `,` type($output)
  }];
  let hasVerifier = 1;
}

def AttnTile_FinishPartialOp : AttnTile_Op<"finish_partial"> {
  let summary = "Store the unnormalised result of a range of keys, to be merged with others";
  let description = [{
    Row r of `partials` is valueDim floats of sum(p v), then m in the unit of the state (`log2`: in quarters), then l. `rows` rows are stored
    from `row`.
  }];
  let arguments = (ins AttnTile_StateType:$state, AnyMemRef:$partials, Index:$row, Index:$rows);
  let assemblyFormat = "$state `,` $partials `[` $row `]` `rows` `(` $rows `)` attr-dict `:` type($state) `,` type($partials)";
  let hasVerifier = 1;
}

include "attn/Dialect/AttnTile/IR/AttnTileBufferOps.td"

#endif
