//===- AttnRouting.td - Steps that choose who attends to whom -*- tablegen -*-===//
//
// Normalised rows, their scores against centroids, the best of them, and the mean over clusters; blocks of keys by score.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNROUTING_TD
#define ATTN_DIALECT_ATTN_IR_ATTNROUTING_TD

def Attn_NormalizeRowsOp : Attn_Step<"normalize_rows"> {
  let summary = "Rows of one length";
  let description = [{
    ```
    y = x - mean(x) where `centered`, else x
    output[b, h, n, :] = y / sqrt(mean(y^2) + eps), or 0 where that root is 0
    ```

    `centered` is layer normalisation without scale and bias. Without it rows have length sqrt(D): attention's default scale of
    1 / sqrt(D) then makes scores those of unit keys. Shapes: input and output [B, H, N, D].

    ```mlir
    %y = attn.normalize_rows %x eps(1.0e-5) centered : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1, E2
    - E30: input and output have rank 4; eps is finite and at least 0

    Source: Kitaev et al., Reformer (2020), keys; Roy et al., Routing Transformer (2020), queries and keys.
  }];
  let arguments = (ins Attn_Numbers:$input, F64Attr:$eps, UnitAttr:$centered);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = "$input `eps` `(` $eps `)` (`centered` $centered^)? attr-dict `:` type($input) `->` type($output)";
}

def Attn_RowScoresOp : Attn_Step<"row_scores"> {
  let summary = "Scores of rows against the centroids of their head";
  let description = [{
    ```
    scores[b, h * C + c, n] = sum_d input[b, h, n, d] * centroids[h, c, d]
    ```

    Shapes: input [B, H, N, D], centroids [H, C, D] with C in the type, scores [B, H * C, N] in f32.

    ```mlir
    %s = attn.row_scores %x, %c : tensor<?x?x?x64xf32>, tensor<?x16x64xf32> -> tensor<?x?x?xf32>
    ```

    Constraints
    - E1, E2
    - E31: input has rank 4, centroids rank 3 with a static number of centroids, scores rank 3 of f32

    Source: Roy et al., Routing Transformer (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Numbers:$centroids);
  let results = (outs Attn_Numbers:$scores);
  let assemblyFormat = "$input `,` $centroids attr-dict `:` type($input) `,` type($centroids) `->` type($scores)";
}

def Attn_TopRowsOp : Attn_Step<"top_rows"> {
  let summary = "The rows of largest score";
  let description = [{
    `rows[b, g, :]` are the `count` tokens of largest `scores[b, g, :]`, in ascending order; among equal scores the lowest
    tokens. A NaN counts as -inf. Where there are fewer tokens than `count`, -1 fills the end.

    Shapes: scores [B, G, N] in f32, rows [B, G, count].

    ```mlir
    %r = attn.top_rows %s count(64) : tensor<?x?x?xf32> -> tensor<?x?x64xi32>
    ```

    A choice among all tokens depends on later ones: a causal mask over chosen rows does not make a function causal.

    Constraints
    - E1
    - E32: scores have rank 3 of f32, rows rank 3; count is at least 1

    Source: Roy et al., Routing Transformer (2020).
  }];
  let arguments = (ins Attn_Numbers:$scores, I64Attr:$count);
  let results = (outs Attn_Rows:$rows);
  let assemblyFormat = "$scores `count` `(` $count `)` attr-dict `:` type($scores) `->` type($rows)";
}

def Attn_InvertRowsOp : Attn_IndexingStep<"invert_rows"> {
  let summary = "Where each token is in lists of rows";
  let description = [{
    `places[b, g, n]` is the last w with `rows[b, g, w] = n`, or -1 where there is none.

    Shapes: rows [B, G, W], each of like [B, H, N, *] or [B, H, N], of which only extents are read, places [B, G, N].

    ```mlir
    %p = attn.invert_rows %rows like %q : tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?xi32>
    ```

    Constraints
    - E1
    - E33: rows and places have rank 3 and one element type; there is a tensor to be like, of rank 3 or 4
  }];
  let arguments = (ins Attn_Rows:$rows, Variadic<Attn_Numbers>:$like);
  let results = (outs Attn_Rows:$places);
  let assemblyFormat = "$rows `like` $like attr-dict `:` type($rows) `,` type($like) `->` type($places)";
}

def Attn_ScatterMeanOp : Attn_IndexingStep<"scatter_mean"> {
  let summary = "The mean over the groups that a token is in";
  let description = [{
    Group g = h * C + c belongs to head h. With the `count` groups of the head that have 0 <= places[b, g, n] < W,

    ```
    output[b, h, n, :] = sum_g input[b, g, places[b, g, n], :] / (count + eps), or 0 where count is 0
    ```

    Shapes: input [B, H * C, W, Dv], places [B, H * C, N], output [B, H, N, Dv]. C is `groups`; places are those of `attn.invert_rows`.

    ```mlir
    %y = attn.scatter_mean %o[%places] groups(16) eps(0.0) : tensor<?x?x?x64xf32>, tensor<?x?x?xi32> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1, E2
    - E34: input and output have rank 4, places rank 3; groups is at least 1, eps finite and at least 0

    Source: Roy et al., Routing Transformer (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Rows:$places, I64Attr:$groups, F64Attr:$eps);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $input `[` $places `]` `groups` `(` $groups `)` `eps` `(` $eps `)` attr-dict
    `:` type($input) `,` type($places) `->` type($output)
  }];
}

def Attn_ScatterRowsOp : Attn_IndexingStep<"scatter_rows"> {
  let summary = "Some rows of a tensor replaced";
  let description = [{
    Group g belongs to head g floordiv (G / H). With the last group of head h that has 0 <= places[b, g, n] < W,

    ```
    output[b, h, n, :] = input[b, g, places[b, g, n], :], or base[b, h, n, :] where there is no such group
    ```

    Shapes: input [B, G, W, D], places [B, G, N], base and output [B, H, N, D]; places are those of `attn.invert_rows`.

    ```mlir
    %y = attn.scatter_rows %o[%places] into %base
      : tensor<?x?x?x64xf32>, tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1, E2
    - E35: input, base and output have rank 4, places rank 3

    Source: Beltagy et al., Longformer (2020), rows of global tokens.
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Rows:$places, Attn_Numbers:$base);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $input `[` $places `]` `into` $base attr-dict `:` type($input) `,` type($places) `,` type($base) `->` type($output)
  }];
}

def Attn_BlockMeansOp : Attn_Step<"block_means"> {
  let summary = "The mean of each block of rows";
  let description = [{
    With m = `block`, the last block perhaps cut,

    ```
    output[b, h, u, :] = the mean of input[b, h, n, :] over the n from u m to min((u + 1) m, N) - 1
    ```

    Shapes: input [B, H, N, D], output [B, H, ceil(N / m), D].

    ```mlir
    %y = attn.block_means %x block(64) : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1, E2
    - E41: input and output have rank 4; block is at least 1

    Source: Lu et al., MoBA (2025); Yuan et al., Native Sparse Attention (2025).
  }];
  let arguments = (ins Attn_Numbers:$input, I64Attr:$block);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = "$input `block` `(` $block `)` attr-dict `:` type($input) `->` type($output)";
}

def Attn_TopBlocksOp : Attn_Step<"top_blocks"> {
  let summary = "The blocks of keys that each block of queries attends to";
  let description = [{
    Row u stands for the query rows u Q, ..., u Q + Q - 1, Q = `queries`, the last one perhaps for fewer; block v for the keys v m, ...,
    v m + m - 1, m = `block`. The last query stands at the last key: row r at position r + M - N. The *own* blocks of a row are those
    from that of its first query's position to that of its last one's.

    ```
    table[b, g, u, v] = 1 where row u takes block v, else 0
    ```

    A row always takes the blocks below `first`, and its own ones with the `local` - 1 before them (none where `local` is 0). They
    count; to them come the others of largest `scores[b, g, u, :]` until it has `count`, the lowest first where scores are equal. A
    block of score -inf or NaN is only taken where it always is. With `causal` no block behind the last own one is taken, whatever its
    score, so that with `local` at least 1 a choice depends on scores of earlier blocks alone.

    The table is a run-time mask of blocks: attention that reads it in its mask is planned when it is there, and skips the tiles of
    blocks that no query of them takes (on a CPU).

    Shapes: scores [B, G, U, V] in f32, query [B, H, N, *] and key [B, Hkv, M, *], of which only extents are read, table [B, G, U, V],
    with U = ceil(N / Q) and V = ceil(M / m).

    ```mlir
    %t = attn.top_blocks %s of %q, %k count(16) queries(1) block(64) first(1) local(2) causal
      : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x?xi32>
    ```

    Constraints
    - E1
    - E42: scores (of f32), query, key and table have rank 4; count, queries and block are at least 1, first and local at least 0

    Source: Lu et al., MoBA (2025); Yuan et al., Native Sparse Attention (2025).
  }];
  let arguments = (ins Attn_Numbers:$scores, Attn_Numbers:$query, Attn_Numbers:$key, I64Attr:$count, I64Attr:$queries,
                       I64Attr:$block, DefaultValuedAttr<I64Attr, "0">:$first, DefaultValuedAttr<I64Attr, "0">:$local,
                       UnitAttr:$causal);
  let results = (outs Attn_Rows:$table);
  let assemblyFormat = [{
    $scores `of` $query `,` $key `count` `(` $count `)` `queries` `(` $queries `)` `block` `(` $block `)`
    (`first` `(` $first^ `)`)? (`local` `(` $local^ `)`)? (`causal` $causal^)? attr-dict
    `:` type($scores) `,` type($query) `,` type($key) `->` type($table)
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNROUTING_TD
