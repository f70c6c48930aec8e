//===- AttnSorting.td - Steps that sort tokens or blocks ------*- tablegen -*-===//
//
// Hashing and sorting of tokens (Reformer), soft sorting of blocks (Sinkhorn).
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNSORTING_TD
#define ATTN_DIALECT_ATTN_IR_ATTNSORTING_TD

def Attn_LshBucketsOp : Attn_Step<"lsh_buckets"> {
  let summary = "The bucket of each token, by random rotations";
  let description = [{
    With y[f] = sum_d input[b, h, n, d] * rotations[h, r, d, f] for f below F,

    ```
    buckets[b, h * R + r, n] = argmax (y[0], ..., y[F - 1], -y[0], ..., -y[F - 1]), the lowest where several are largest
    ```

    So there are 2 F buckets. A NaN is never largest. Shapes: input [B, H, N, D], rotations [H, R, D, F] with R in the type, buckets
    [B, H * R, N].

    ```mlir
    %b = attn.lsh_buckets %x, %r : tensor<?x?x?x64xf32>, tensor<?x4x64x16xf32> -> tensor<?x?x?xi32>
    ```

    Constraints
    - E1, E2
    - E36: input and rotations have rank 4 and one element type, buckets rank 3; the number of rounds is static

    Source: Kitaev et al., Reformer (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Numbers:$rotations);
  let results = (outs Attn_Rows:$buckets);
  let assemblyFormat = "$input `,` $rotations attr-dict `:` type($input) `,` type($rotations) `->` type($buckets)";
}

def Attn_SortOp : Attn_IndexingStep<"sort"> {
  let summary = "Tokens in the order of their keys";
  let description = [{
    `order[b, g, :]` are the tokens by (key, token): stable; `places[b, g, n]` is where token n is in it, and `starts[b, g, c]` where
    the first token of a key of at least c is. Keys are in [0, buckets); what is outside counts as the nearest in there.

    Shapes: keys, order and places [B, G, N], starts [B, G, buckets]; each of like [B, H, N, *] or [B, H, N], of which only extents are
    read, G a multiple of H.

    ```mlir
    %order, %places, %starts = attn.sort %keys buckets(32) like %v
      : tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x32xi32>
    ```

    Constraints
    - E1
    - E37: keys, order, places and starts have rank 3 and one element type, like rank 3 or 4; buckets is at least 1

    Source: Kitaev et al., Reformer (2020).
  }];
  let arguments = (ins Attn_Rows:$keys, I64Attr:$buckets, Variadic<Attn_Numbers>:$like);
  let results = (outs Attn_Rows:$order, Attn_Rows:$places, Attn_Rows:$starts);
  let assemblyFormat = [{
    $keys `buckets` `(` $buckets `)` (`like` $like^)? attr-dict `:` type(operands) `->` type(results)
  }];
}

def Attn_LookBackOp : Attn_Step<"look_back"> {
  let summary = "Rows behind a chunk from elsewhere, for the first chunk to look back at";
  let description = [{
    Rows are cut into chunks of m = `chunk`, the last one perhaps shorter. The groups h * R, ..., h * R + R - 1 are a ring of
    R = `groups`; with p the group before g in it,

    ```
    output[b, g, :m] = the last chunk of rows[b, p, :], -1 behind it;  output[b, g, m:] = rows[b, g, :]
    ```

    So query i sees its own chunk and the one before with `local_blocks(size = m, before = 0, after = m)`. With one group in a ring it
    is the group's own last chunk that comes before its first.

    Shapes: rows [B, G, N], output [B, G, m + N].

    ```mlir
    %keys = attn.look_back %order chunk(64) groups(4) : tensor<?x?x?xi32> -> tensor<?x?x?xi32>
    ```

    Constraints
    - E1
    - E38: rows and output have rank 3 and one element type; chunk and groups are at least 1

    Source: Kitaev et al., Reformer (2020), as its authors' code has it.
  }];
  let arguments = (ins Attn_Rows:$rows, I64Attr:$chunk, I64Attr:$groups);
  let results = (outs Attn_Rows:$output);
  let assemblyFormat = [{
    $rows `chunk` `(` $chunk `)` `groups` `(` $groups `)` attr-dict `:` type($rows) `->` type($output)
  }];
}

def Attn_SinkhornOp : Attn_Step<"sinkhorn"> {
  let summary = "Logits to a soft permutation";
  let description = [{
    `iterations` times, in logarithms: every row is normalised, then every column; of the result the exponential is taken.

    ```
    x[u, v] -= log sum_v exp(x[u, v]), then x[u, v] -= log sum_u exp(x[u, v]);  output = exp(x)
    ```

    With `causal` only v < u takes part, all else is 0, and the sum of a column at u runs over the rows up to u: no row of the output
    depends on later rows of logits. A sum over nothing, or of weights that are all 0, divides nothing.

    Shapes: logits and output [B, H, n, n] in f32.

    ```mlir
    %p = attn.sinkhorn %r iterations(8) : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
    ```

    Constraints
    - E1
    - E39: logits and output have rank 4 of f32; iterations is at least 1

    Source: Tay et al., Sparse Sinkhorn Attention (2020).
  }];
  let arguments = (ins Attn_Numbers:$logits, I64Attr:$iterations, UnitAttr:$causal);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $logits `iterations` `(` $iterations `)` (`causal` $causal^)? attr-dict `:` type($logits) `->` type($output)
  }];
}

def Attn_MixBlocksOp : Attn_Step<"mix_blocks"> {
  let summary = "Blocks of rows as sums of blocks";
  let description = [{
    With blocks of b = `block` rows, the last one perhaps cut,

    ```
    output[_, h, u * b + t, :] = sum over v with v * b + t < N of weights[_, h, u, v] * input[_, h, v * b + t, :]
    ```

    A block of weight 0 takes no part, not even by a NaN. Shapes: weights [B, H, U, V] in f32 with V = ceil(N / b), input [B, H, N, D],
    output [B, H, U * b, D].

    ```mlir
    %y = attn.mix_blocks %p, %x block(64) : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1, E2
    - E40: weights (of f32), input and output have rank 4; block is at least 1

    Source: Tay et al., Sparse Sinkhorn Attention (2020).
  }];
  let arguments = (ins Attn_Numbers:$weights, Attn_Numbers:$input, I64Attr:$block);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $weights `,` $input `block` `(` $block `)` attr-dict `:` type($weights) `,` type($input) `->` type($output)
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNSORTING_TD
