//===- AttnSteps.td - What stands around attention -----------*- tablegen -*-===//
//
// Steps of a compiled function: rows moved to where attention is dense, and results put together. All constraints that a
// step has on extents are its `getExtentTies`.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNSTEPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNSTEPS_TD

include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"

// An op that a compiled function runs between attentions.
class Attn_Step<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<CompiledOpInterface, ["getWork"]>] # traits> {
  let hasVerifier = 1;
}

def Attn_Numbers : RankedTensorOf<[F32, F16, BF16]>;
def Attn_Rows : RankedTensorOf<[I32, I64]>;

// A step with an operand of indices, and groups of heads.
class Attn_IndexingStep<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<CompiledOpInterface, ["getIndexed", "getMultiples", "getWork"]>] # traits> {
  let hasVerifier = 1;
}

def Attn_GatherRowsOp : Attn_IndexingStep<"gather_rows"> {
  let summary = "Rows of a tensor by number";
  let description = [{
    ```
    output[b, g, w, :] = input[b, g floordiv (G / H), rows[b, g, w], :], or 0 where rows[b, g, w] is outside [0, N)
    ```

    Shapes: input [B, H, N, D] or [B, H, N] (one number a row), rows [B, G, W], output [B, G, W, D] or [B, G, W]. G, the groups, is a
    multiple of H: a head may be gathered several times, once for each cluster or round. Rows [B, W] or [W] are the same for all heads,
    and G is H, or for all batches as well. A row of -1 is no row.

    ```mlir
    %g = attn.gather_rows %x[%rows] : tensor<?x?x?x64xf32>, tensor<?x?x?xi32> -> tensor<?x?x?x64xf32>
    ```

    Masks of attention over gathered rows speak of places in the list; they capture `rows` to ask for original positions.

    Constraints
    - E1: dimensions of one name have one extent; an extent that another one divides is a multiple of it
    - E2: what is computed from numbers has their element type: f32, f16 or bf16
    - E3: input has rank 3 or 4, rows rank 1 to 3, output the rank of input
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Rows:$rows);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = "$input `[` $rows `]` attr-dict `:` type($input) `,` type($rows) `->` type($output)";
}

def Attn_MergeOp : Attn_Step<"merge"> {
  let summary = "Results of attention over disjoint keys, put together";
  let description = [{
    Group g = h * R + r has the attention of head h over part r of the keys. With z = lses[b, g, n] and o = outputs[b, g, n, :],

    ```
    lse[b, h, n]       = log sum_r exp(z)
    output[b, h, n, :] = sum_r exp(z - lse[b, h, n]) * o
    ```

    as one softmax over all keys. A part with z = -inf takes no part, not even by a NaN; where all have, output is 0 and lse -inf.
    A key that two parts share counts twice.

    Shapes: outputs [B, H * R, N, Dv], lses [B, H * R, N] in f32, output [B, H, N, Dv], lse [B, H, N] in f32. R is `groups`.

    ```mlir
    %o, %z = attn.merge %os, %zs groups(4) : tensor<?x?x?x64xf32>, tensor<?x?x?xf32> -> tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
    ```

    Constraints
    - E1, E2
    - E4: outputs has rank 4, lses rank 3 of f32; groups is at least 1

    Source: Kitaev et al., Reformer (2020), rounds of hashing; Dao et al., FlashAttention (2022).
  }];
  let arguments = (ins Attn_Numbers:$outputs, Attn_Numbers:$lses, I64Attr:$groups);
  let results = (outs Attn_Numbers:$output, Optional<Attn_Numbers>:$lse);
  let assemblyFormat = [{
    $outputs `,` $lses `groups` `(` $groups `)` attr-dict `:` type($outputs) `,` type($lses) `->` type(results)
  }];
}

def Attn_ComputeOp : Attn_Step<"compute", [SingleBlock]> {
  let summary = "Sums over the elements of tensors, in nested loops";
  let description = [{
    Loops d0, d1, ... run over extents that the tensors give. `maps` say at which indices of an input, and last of the output, they
    read and write. The output's map is its own loops in order, (d0, ..., dP-1); the others are summed over, the last one fastest:

    ```
    total = initial; for dP, dP+1, ...: total = body(inputs[0][map(d)], inputs[1][map(d)], ..., total);  output[d0, ..., dP-1] = total
    ```

    The body works on f32, whatever the tensors hold. An index may be any affine expression with factors from 0 up, as of a
    strided convolution, `(d2 * 3 + d4)`; an output extent that only such indices have is the largest that stays inside. `extents`
    gives the extent of loops that no tensor tells (-1: a tensor does).

    ```mlir
    // Linformer: keys projected along the tokens, E k
    %kp = attn.compute(%e, %k) maps([affine_map<(b, h, p, d, n) -> (p, n)>, affine_map<(b, h, p, d, n) -> (b, h, n, d)>,
                                     affine_map<(b, h, p, d, n) -> (b, h, p, d)>]) initial(0.0) {
    ^bb0(%x: f32, %y: f32, %total: f32):
      %xy = arith.mulf %x, %y : f32
      %sum = arith.addf %total, %xy : f32
      attn.result %sum : f32
    } : tensor<256x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x256x64xf32>
    ```

    Constraints
    - E5: there is a map for each input and one for the output, all of the same loops; the output's is its own loops in order
    - E6: indices are loops, multiplied by numbers from 0 up, and sums of these
    - E7: the block takes an f32 for each input and the total, and holds arith and math ops that give one f32
    - E8: the extent of every loop is told by a tensor, by `extents`, or, of the output, by what stays inside; of the loops of an index
      that is no loop alone, one at most has an extent that no number in the IR tells
  }];
  let arguments = (ins Variadic<Attn_Numbers>:$inputs, AffineMapArrayAttr:$maps, F32Attr:$initial,
                       OptionalAttr<DenseI64ArrayAttr>:$extents);
  let results = (outs Attn_Numbers:$output);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `)` `maps` `(` $maps `)` `initial` `(` $initial `)` (`extents` `(` $extents^ `)`)? $body attr-dict
    `:` type($inputs) `->` type($output)
  }];
  let extraClassDeclaration = [{
    ::mlir::SmallVector<::mlir::AffineMap> getIndexMaps();
    unsigned getNumLoops() { return getIndexMaps().back().getNumDims(); }
    unsigned getNumOutputLoops() { return ::llvm::cast<::mlir::RankedTensorType>(getOutput().getType()).getRank(); }
    /// The inputs, then the output.
    ::mlir::SmallVector<::mlir::Value> getTensors();
    /// Where a tensor tells the extent of a loop.
    ::std::optional<::attn::ExtentPlace> getPlace(unsigned loop);
    /// What keeps indices that are no loop alone inside.
    ::mlir::SmallVector<::attn::ExtentLeast> getLeast();
    /// A number, where `extents` or a type has it; else -1.
    int64_t getKnownExtent(unsigned loop);
  }];
}

def Attn_ResultOp : Attn_Op<"result", [Pure, Terminator, HasParent<"::attn::ComputeOp">]> {
  let summary = "Ends the body of attn.compute with the new total";
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

include "attn/Dialect/Attn/IR/AttnRouting.td"
include "attn/Dialect/Attn/IR/AttnSorting.td"

include "attn/Dialect/Attn/IR/AttnLinear.td"

#endif // ATTN_DIALECT_ATTN_IR_ATTNSTEPS_TD
