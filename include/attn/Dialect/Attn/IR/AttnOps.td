//===- AttnOps.td - Attention and its regions ----------------*- tablegen -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_TD

include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/CommonTypeConstraints.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnPredicates.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"

def Attn_ScaleAttr : Attr<CPred<"::llvm::isa<::mlir::FloatAttr>($_self)">, "floating-point number"> {
  let storageType = "::mlir::FloatAttr";
  let returnType = "::mlir::FloatAttr";
  let convertFromStorage = "$_self";
}

def Attn_AttentionOp : Attn_Op<"attention", [
    Pure, SingleBlock, AttrSizedOperandSegments, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>,
    DeclareOpInterfaceMethods<CompiledOpInterface, ["getIndexed", "getMultiples"]>]> {
  let summary = "Attention over the keys that a predicate keeps";
  let description = [{
    For every batch b, query head h and query row r with position i (`align`), over all key positions j:

    ```
    s[j]   = score(scale * sum_d query[b, h, r, d] * key[b, h floordiv (Hq / Hkv), j, d], b, h, i, j)
    w[j]   = exp(s[j]) where mask(b, h, i, j), else exactly 0
    output = sum_j w[j] * value[b, h floordiv (Hq / Hkv), j, :] / (sum_j w[j] + exp(sink[h]))
    lse    = log(sum_j w[j] + exp(sink[h]))
    ```

    Shapes: query [B, Hq, N, D], key [B, Hkv, M, D], value [B, Hkv, M, Dv], output [B, Hq, N, Dv], lse [B, Hq, N] in f32 with the
    natural logarithm. Hq is a multiple of Hkv: grouped heads share keys. `scale` defaults to 1 / sqrt(D). The query position of
    row r is r (`top_left`) or r + M - N (`bottom_right`); the key position is the key row.

    The regions say the rest and may use values from outside. `mask` gets (b, h, i, j) and yields i1; without it all keys are
    kept. `score` gets (s : f32, b, h, i, j) and yields f32. They may read captured tensors with `tensor.extract`; an index
    outside such a tensor reads the nearest element. A mask of named predicates has a short form, which prints back:

    ```mlir
    %o = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
    %o, %lse = attn.attention %q, %k, %v scale(0.125) align(bottom_right) mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %past = arith.cmpi sle, %j, %i : index
      attn.yield %past : i1
    } : !t, !t, !t -> !t, tensor<?x?x?xf32>
    ```

    Clauses come in any order. In the short form stand the predicates of this dialect by name, with `and`, `or`, `not` and parentheses. Their parameters
    are `key = value` or by place; captured tensors are written with their type, `same_document(%doc : tensor<?x?xi32>)`. Further names:
    `blocked(size, P)` is P over block numbers (position floordiv size); `column_in(%set : type)` and `row_in(%set : type)` are
    membership of j and i; `in_table(%lists : type)` inside `blocked` is membership of the key block in the list of the query block.

    `join(%o, %z)` takes the output and the log-sum-exp of an attention of the same queries over other keys: both sets of keys share one
    softmax. So a memory, global tokens or another round are attentions that follow each other. A log-sum-exp of -inf joins nothing.

    ```mlir
    %m, %z = attn.attention %q, %km, %vm : !t, !t, !t -> !t, tensor<?x?x?xf32>
    %o = attn.attention %q, %k, %v join(%m, %z : !t, tensor<?x?x?xf32>) mask(causal) : !t, !t, !t -> !t
    ```

    `sink(%s)` adds exp(s[h]) to the sum of weights, the logit of a key of its own whose value is 0; a logit of 0 is the "softmax off
    by one". `normalizer(sigmoid)` and `normalizer(none)` make weights 1 / (1 + exp(-s[j])) and s[j], and nothing is divided.

    A mask that yields several i1 counts: a key weighs as often as there are such that hold, so that one that two patterns select is there
    twice, as it is where their keys are gathered side by side. `mask counted(a or b)` is the short form.

    `relative(%table, %bias)` adds a product with the distance, sum_d (query[b, h, r, d] + bias[h, d]) * table[h, i - j, d], to the one
    with the key, before the scale (Transformer-XL). A distance outside the table takes the nearest of it; bias may be left out.

    `scores(%s)` stands in place of query and key where scores are no products (Synthesizer): s[j] = score(scale * scores[b, h, r, j], ...),
    with a scale of 1 by default. They may be the same for all batches, [Hq, N, M].

    ```mlir
    %o = attn.attention scores(%s), %v mask(causal) : tensor<?x?x?x?xf32>, !t -> !t
    ```

    `query_rows(%r)` and `key_rows(%r)` give rows by number, as `attn.gather_rows` does: a query or key and value for each entry of
    the list. Masks and scores speak of the rows that it names, i and j being these numbers. An entry outside the tensor is no row: as
    a query it keeps nothing, as a key nobody keeps it. A key listed twice counts twice.

    ```mlir
    %o = attn.attention %q, %k, %v key_rows(%r : tensor<?x?x?xi32>) mask(causal) : !t, !t, !t -> !t
    ```

    Numerics: products, softmax and sums in f32 whatever the element type. A masked key takes no part, not even by a NaN in its
    row. A score of -inf counts as masked, +inf as the largest finite number. A row that keeps nothing gives output 0 and lse -inf.

    Constraints
    - A1: query, key and value have rank 4
    - A2: query, key, value and output have one element type: f32, f16 or bf16
    - A3: query, key, value agree in batch; key and value in heads and number of keys; query and key in head_dim
    - A4: query heads are a multiple of key/value heads
    - A5: output is [B, Hq, N, Dv] of query and value
    - A6: lse is [B, Hq, N] of query, in f32
    - A7: head_dim (D and Dv) is dynamic or 1 to 576; N and M are below 2^31
    - A8: scale is finite
    - A9: the mask block has the arguments (index, index, index, index), the score block (f32, index, index, index, index)
    - A10: the mask block ends with an attn.yield of one i1, or of those that are counted, the score block with one f32
    - A11: mask and score hold only the ops of their allowed set, on scalars: integers of up to 64 bits, index, f16, bf16, f32, f64
    - A12: a value from outside is a captured tensor, read by tensor.extract, tensor.dim or a predicate, or a scalar constant
    - A13: captured tensors are ranked, of such scalars
    - A15: what is joined has the types of output and lse
    - A16: sink is [Hq] of query, in f32
    - A17: only a softmax has a log-sum-exp: with another normalizer there is no lse, and nothing is joined and no sink added
    - A18: of relative, table is [Hq, distances, D] and bias [Hq, D] of query, in its element type; there is a distance
    - A19: only a softmax counts how often a key is kept
    - A20: scores are [B, Hq, N, M] or [Hq, N, M] of f32, f16 or bf16, and there are neither query and key nor products with distances
    - A21: query_rows and key_rows are of i32 or i64, [rows], [B, rows] or [B, groups, rows], groups a multiple of the heads of what they
      number and in their place for all else; queries are aligned top_left, and there are neither products with distances nor scores

    Source: Vaswani et al., Attention Is All You Need (2017); grouped heads: Ainslie et al., GQA (2023).
  }];
  let arguments = (ins
    Optional<AnyRankedTensor>:$query, Optional<AnyRankedTensor>:$key, AnyRankedTensor:$value,
    Optional<AnyRankedTensor>:$joinedOutput, Optional<AnyRankedTensor>:$joinedLse, Optional<AnyRankedTensor>:$sink,
    Optional<AnyRankedTensor>:$table, Optional<AnyRankedTensor>:$bias,
    Optional<AnyRankedTensor>:$scores,
    Optional<AnyRankedTensor>:$queryIndices, Optional<AnyRankedTensor>:$keyIndices,
    OptionalAttr<Attn_ScaleAttr>:$scale,
    DefaultValuedAttr<Attn_NormalizerAttr, "::attn::Normalizer::Softmax">:$normalizer,
    DefaultValuedAttr<Attn_AlignAttr, "::attn::Align::TopLeft">:$align,
    OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs AnyRankedTensor:$output, Optional<AnyRankedTensor>:$lse);
  let regions = (region MaxSizedRegion<1>:$score, MaxSizedRegion<1>:$mask);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizeMethod = 1;
  let builders = [
    /// Without clauses; its regions are empty.
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key, "::mlir::Value":$value, "::mlir::Type":$output)>
  ];
  let extraClassDeclaration = [{
    /// The block of the mask or score region; null where there is none.
    ::mlir::Block *getMaskBlock() { return getMask().empty() ? nullptr : &getMask().front(); }
    ::mlir::Block *getScoreBlock() { return getScore().empty() ? nullptr : &getScore().front(); }
    /// What the mask region yields, the i1 of which a key is kept as often as they hold; empty where there is none.
    ::mlir::ValueRange getMaskMembers();
    /// Are there several?
    bool isCounted() { return getMaskMembers().size() > 1; }
    /// What the score region yields; null where there is none.
    ::mlir::Value getScoreResult();

    /// Tensors [B, Hq, N, ...] and [B, Hkv, M, ...]: query and key, or what stands for them where there are scores.
    ::mlir::Value getQueryRows() { return getScores() ? ::mlir::Value(getOutput()) : ::mlir::Value(getQuery()); }
    ::mlir::Value getKeyRows() { return getScores() ? ::mlir::Value(getValue()) : ::mlir::Value(getKey()); }
    ::mlir::RankedTensorType getQueryType() { return ::llvm::cast<::mlir::RankedTensorType>(getQueryRows().getType()); }
    ::mlir::RankedTensorType getKeyType() { return ::llvm::cast<::mlir::RankedTensorType>(getKeyRows().getType()); }
    /// 0 where there are no products; dynamic where run time knows it.
    int64_t getHeadDim() { return getScores() ? 0 : getQueryType().getShape().back(); }
    ::mlir::RankedTensorType getValueType() { return ::llvm::cast<::mlir::RankedTensorType>(getValue().getType()); }
    ::mlir::RankedTensorType getOutputType() { return ::llvm::cast<::mlir::RankedTensorType>(getOutput().getType()); }

    /// Are queries, or keys, rows by number?
    bool hasIndices() { return getQueryIndices() || getKeyIndices(); }
    /// Which dimension of which tensor says how many heads, or rows, of queries there are to compute, and of keys.
    ::attn::ExtentPlace getQueryHeads();
    ::attn::ExtentPlace getQueryCount();
    ::attn::ExtentPlace getKeyHeads();
    ::attn::ExtentPlace getKeyCount();

    bool isSoftmax() { return getNormalizer() == ::attn::Normalizer::Softmax; }

    /// Adds the block with its arguments (b, h, i, j), or (s, b, h, i, j), to an empty region, without a terminator.
    ::mlir::Block *addMaskBlock();
    ::mlir::Block *addScoreBlock();
  }];
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator, HasParent<"::attn::AttentionOp">]> {
  let summary = "Ends a mask or score region with its value";
  let description = "Of a mask: whether the pair is kept, i1, or several to be counted. Of a score region: the score, f32 (A10).";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let builders = [OpBuilder<(ins "::mlir::Value":$value), [{ build($_builder, $_state, ::mlir::ValueRange(value)); }]>];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
