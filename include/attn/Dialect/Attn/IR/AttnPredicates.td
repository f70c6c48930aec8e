//===- AttnPredicates.td - Named predicates ------------------*- tablegen -*-===//
//
// Ops of a mask region. %b, %h are batch and query head, %i and %j query and key position (or block numbers); div and mod round
// towards negative infinity. `expand` gives each one its meaning in arith.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNPREDICATES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNPREDICATES_TD

include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"

// Numbers of predicates are below 2^31, as extents are; the constraints leave that unsaid.

// A predicate that expand() spells out.
class Attn_Predicate<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<MaskOpInterface, ["expand"]>] # traits> {
  let results = (outs I1:$keep);
}

// A predicate over query and key position.
class Attn_PairPredicate<string mnemonic, dag attributes> : Attn_Predicate<mnemonic> {
  let arguments = !con((ins Index:$i, Index:$j), attributes);
  let assemblyFormat = "$i `,` $j attr-dict";
}

//===----------------------------------------------------------------------===//
// By distance
//===----------------------------------------------------------------------===//

def Attn_CausalOp : Attn_PairPredicate<"causal", (ins)> {
  let summary = "No key after the query";
  let description = [{
    keep = j <= i. Source: Vaswani et al. (2017), decoder.
  }];
  let hasFolder = 1;
}

def Attn_WindowOp : Attn_PairPredicate<"window", (ins OptionalAttr<I64Attr>:$left, OptionalAttr<I64Attr>:$right)> {
  let summary = "Keys near the query";
  let description = [{
    keep = i - left <= j <= i + right; without a bound that side is open. Source: Beltagy et al., Longformer (2020).
    - P1: at least one of left, right; both at least 0
  }];
  let hasVerifier = 1;
}

def Attn_DilatedWindowOp : Attn_PairPredicate<"dilated_window", (ins
    DefaultValuedAttr<I64Attr, "0">:$left, DefaultValuedAttr<I64Attr, "0">:$right, I64Attr:$dilation)> {
  let summary = "Every dilation-th key near the query";
  let description = [{
    keep = (i - j) mod dilation == 0 and i - left * dilation <= j <= i + right * dilation: `left` and `right` count keys.
    Source: Beltagy et al., Longformer (2020).
    - P2: left and right at least 0
    - P3: dilation at least 1
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_StrideOp : Attn_PairPredicate<"stride", (ins I64Attr:$size)> {
  let summary = "Keys a multiple of a stride away";
  let description = [{
    keep = (i - j) mod size == 0. Source: Child et al., Sparse Transformers (2019).
    - P4: size at least 1
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// By block
//===----------------------------------------------------------------------===//

def Attn_SameBlockOp : Attn_PairPredicate<"same_block", (ins I64Attr:$size)> {
  let summary = "Keys in the block of the query";
  let description = [{
    keep = i div size == j div size. Source: Liu et al., Memory Compressed Attention (2018).
    - P4: size at least 1
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_ChunkLookbackOp : Attn_PairPredicate<"chunk_lookback", (ins I64Attr:$size, I64Attr:$before)> {
  let summary = "Keys in the block of the query and in some blocks before it";
  let description = [{
    keep = 0 <= i div size - j div size <= before. Source: Kitaev et al., Reformer (2020).
    - P4: size at least 1
    - P5: before at least 0
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_LocalBlocksOp : Attn_PairPredicate<"local_blocks", (ins
    I64Attr:$size, DefaultValuedAttr<I64Attr, "0">:$before, DefaultValuedAttr<I64Attr, "0">:$after)> {
  let summary = "Keys in the block of the query, widened on both sides";
  let description = [{
    keep = q * size - before <= j < (q + 1) * size + after with q = i div size. Source: Parmar et al., Image Transformer (2018), 1-D local.
    - P4: size at least 1
    - P5: before and after at least 0
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_LastColumnsOp : Attn_Predicate<"last_columns"> {
  let summary = "Keys at the end of their block";
  let description = [{
    keep = j mod block >= block - count. Source: Child et al., Sparse Transformers (2019), fixed pattern.
    - P6: block at least 1, count from 1 to block
  }];
  let arguments = (ins Index:$j, I64Attr:$block, I64Attr:$count);
  let assemblyFormat = "$j attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// On a grid, in raster order: row = position div width, column = position mod width
//===----------------------------------------------------------------------===//

def Attn_SameRowOp : Attn_PairPredicate<"same_row", (ins I64Attr:$width)> {
  let summary = "Keys in the grid row of the query";
  let description = [{
    keep = i div width == j div width. Source: Ho et al., Axial Attention (2019).
    - P7: width at least 1
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_SameColumnOp : Attn_PairPredicate<"same_column", (ins I64Attr:$width)> {
  let summary = "Keys in the grid column of the query";
  let description = [{
    keep = i mod width == j mod width. Source: Ho et al., Axial Attention (2019).
    - P7: width at least 1
  }];
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Attn_LocalBlocks2DOp : Attn_PairPredicate<"local_blocks_2d", (ins
    I64Attr:$width, DenseI64ArrayAttr:$block, DenseI64ArrayAttr:$flange)> {
  let summary = "Keys in the grid block of the query, widened on all sides";
  let description = [{
    With [h, w] = block, [fh, fw] = flange and the query in block (p, q) of the grid: keep =
    p * h - fh <= row(j) < (p + 1) * h + fh and q * w - fw <= column(j) < (q + 1) * w + fw.
    Source: Parmar et al., Image Transformer (2018), 2-D local.
    - P7: width at least 1
    - P8: block is [rows, columns], both at least 1; flange is [rows, columns], both at least 0
  }];
  let hasVerifier = 1;
}

def Attn_NeighborhoodOp : Attn_PairPredicate<"neighborhood", (ins I64Attr:$size)> {
  let summary = "The nearest keys, always as many";
  let description = [{
    keep = start <= j < start + size with start = max(min(i - size div 2, M - size), 0), M the number of keys: at the borders the window
    is moved, not cut. Source: Hassani et al., Neighborhood Attention (2023).
    - P4: size at least 1
  }];
  let hasVerifier = 1;
}

def Attn_Neighborhood2DOp : Attn_PairPredicate<"neighborhood_2d", (ins I64Attr:$width, DenseI64ArrayAttr:$size)> {
  let summary = "The nearest keys of a grid, always as many";
  let description = [{
    `neighborhood` in rows and in columns, with size = [rows, columns], over a grid of M div width rows.
    Source: Hassani et al., Neighborhood Attention (2023).
    - P7: width at least 1
    - P9: size is [rows, columns], both at least 1
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// By token
//===----------------------------------------------------------------------===//

def Attn_PrefixOp : Attn_Predicate<"prefix"> {
  let summary = "The first keys";
  let description = [{
    keep = j < length. With a length per sequence: `attn.key_length`. Source: Raffel et al., T5 (2020), prefix LM.
    - P10: length at least 1
  }];
  let arguments = (ins Index:$j, I64Attr:$length);
  let assemblyFormat = "$j attr-dict";
  let hasVerifier = 1;
}

def Attn_KeyLengthOp : Attn_Predicate<"key_length"> {
  let summary = "The keys of a sequence, without its padding";
  let description = [{
    keep = j < lengths[b], or lengths[] where the tensor has rank 0. Source: batches of sequences that are padded to one
    length, as the `key_padding_mask` of PyTorch.
    - P11: lengths has integer elements and rank 0 or 1
  }];
  let arguments = (ins Index:$b, Index:$j, AnyRankedTensor:$lengths);
  let assemblyFormat = "$b `,` $j `,` $lengths attr-dict `:` type($lengths)";
  let hasVerifier = 1;
}

def Attn_GlobalOp : Attn_PairPredicate<"global", (ins
    OptionalAttr<I64Attr>:$count, OptionalAttr<DenseI64ArrayAttr>:$tokens)> {
  let summary = "Global tokens see all and are seen by all";
  let description = [{
    keep = global(i) or global(j) with global(p) = 0 <= p < count, or p one of `tokens`.
    Source: Beltagy et al., Longformer (2020); Ainslie et al., ETC (2020).
    - P12: either count, at least 1, or tokens, not empty and not negative
  }];
  let hasVerifier = 1;
}

def Attn_SameDocumentOp : Attn_Predicate<"same_document"> {
  let summary = "Keys of the document of the query";
  let description = [{
    keep = documents[b, i] == documents[b, j]. Source: Krell et al., Efficient Sequence Packing without Cross-contamination
    (2021).
    - P13: documents has integer elements and rank 2: batch, token
  }];
  let arguments = (ins Index:$b, Index:$i, Index:$j, AnyRankedTensor:$documents);
  let assemblyFormat = "$b `,` $i `,` $j `,` $documents attr-dict `:` type($documents)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// By head
//===----------------------------------------------------------------------===//

def Attn_HeadsOp : Attn_Predicate<"heads"> {
  let summary = "All keys, for every period-th query head";
  let description = [{
    keep = h mod period == index: `(heads(period = 2, index = 0) and P) or (heads(period = 2, index = 1) and Q)` has P and Q in
    turns. Source: Child et al., Sparse Transformers (2019), patterns by head.
    - P16: period at least 1, index from 0 to period - 1
  }];
  let arguments = (ins Index:$h, I64Attr:$period, I64Attr:$index);
  let assemblyFormat = "$h attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// By table
//===----------------------------------------------------------------------===//

def Attn_BlockMaskOp : Attn_Predicate<"block_mask"> {
  let summary = "Blocks of keys that a table keeps";
  let description = [{
    keep = table[i div size, j div size] != 0; a table of rank 3 starts with the head, one of rank 4 with batch and head.
    Source: FlexAttention and FlashInfer block masks; Zaheer et al., BigBird (2020).
    - P4: size at least 1
    - P14: table has integer elements and rank 2, 3 or 4
  }];
  let arguments = (ins Index:$b, Index:$h, Index:$i, Index:$j, AnyRankedTensor:$table, I64Attr:$size);
  let assemblyFormat = "$b `,` $h `,` $i `,` $j `,` $table attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Attn_ContainsOp : Attn_Op<"contains", [Pure, DeclareOpInterfaceMethods<MaskOpInterface, ["readInterval"]>]> {
  let summary = "Membership in a row of a captured index set";
  let description = [{
    True where `value` occurs in set[indices..., :]. Negative entries never match, so they pad rows of different lengths.

    ```mlir
    %keep = attn.contains %lists[%b, %block], %j : tensor<?x?x?xi32>
    ```
    - P15: set has integer or index elements and one dimension more than there are indices
  }];
  let arguments = (ins AnyRankedTensor:$set, Variadic<Index>:$indices, Index:$value);
  let results = (outs I1:$found);
  let assemblyFormat = "$set `[` $indices `]` `,` $value attr-dict `:` type($set)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Extents of the enclosing attention
//===----------------------------------------------------------------------===//

class Attn_ExtentOp<string mnemonic> : Attn_Op<mnemonic, [
    Pure, DeclareOpInterfaceMethods<MaskOpInterface, ["readInterval"]>]> {
  let results = (outs Index:$extent);
  let assemblyFormat = "attr-dict";
}

def Attn_NumKeysOp : Attn_ExtentOp<"num_keys"> {
  let summary = "Number of keys (M) of the enclosing attention";
  let description = "For masks and scores that depend on it: key positions are 0 to M - 1.";
}

def Attn_NumQueriesOp : Attn_ExtentOp<"num_queries"> {
  let summary = "Number of query rows (N) of the enclosing attention";
  let description = "For masks and scores that depend on it: query row r is at position r, or r + M - N with `bottom_right`.";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNPREDICATES_TD
