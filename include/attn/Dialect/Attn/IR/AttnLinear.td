//===- AttnLinear.td - Linear attention ----------------------*- tablegen -*-===//
//
// Attention whose weights are products of features, so that keys are summed up once, in a state: kernels of Transformers
// that are RNNs, and today's recurrences with decay.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNLINEAR_TD
#define ATTN_DIALECT_ATTN_IR_ATTNLINEAR_TD

include "mlir/IR/EnumAttr.td"

def Attn_FeatureKind : I32EnumAttr<"FeatureKind", "a function of a number", [
    I32EnumAttrCase<"EluPlusOne", 0, "elu_plus_one">, // x + 1 where x > 0, else exp(x)
    I32EnumAttrCase<"Relu", 1, "relu">,               // max(x, 0)
    I32EnumAttrCase<"Exp", 2, "exp">,                 // exp(x)
    I32EnumAttrCase<"Abs", 3, "abs">,                 // |x|
    I32EnumAttrCase<"Square", 4, "square">,           // x x
    I32EnumAttrCase<"Sigmoid", 5, "sigmoid">,         // 1 / (1 + exp(-x))
    I32EnumAttrCase<"Trigonometric", 6, "trigonometric"> // cos(x) and sin(x)
  ]> {
  let cppNamespace = "::attn";
}

def Attn_RandomKind : I32EnumAttr<"RandomKind", "what products with random directions are for", [
    I32EnumAttrCase<"Softmax", 0, "softmax">,
    I32EnumAttrCase<"Trigonometric", 1, "trigonometric">
  ]> {
  let cppNamespace = "::attn";
}

// A step of queries and keys whose heads may be grouped.
class Attn_GroupedStep<string mnemonic, list<Trait> traits = []>
    : Attn_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<CompiledOpInterface, ["getMultiples", "getWork"]>] # traits> {
  let hasVerifier = 1;
}

def Attn_FeatureMapOp : Attn_Step<"feature_map", [AttrSizedOperandSegments]> {
  let summary = "Features of queries or keys, number by number";
  let description = [{
    ```
    output[b, h, n, f] = map(input[b, h, n, f] - subtract[b, h, n]) + plus
    ```

    with map one of `elu_plus_one` (x + 1 where x > 0, else exp(x)), `relu`, `exp`, `abs`, `square` and `sigmoid`. `trigonometric` makes two
    features of a number, real and imaginary part of exp(logs - subtract + i input); `logs` that are not given are 0:

    ```
    output[b, h, n, f]     = exp(logs[b, h, n] - subtract[b, h, n]) * cos(input[b, h, n, f]) + plus
    output[b, h, n, F + f] = exp(logs[b, h, n] - subtract[b, h, n]) * sin(input[b, h, n, f]) + plus
    ```

    Shapes: input and output [B, H, N, F], output of `trigonometric` [B, H, N, 2 F], logs and subtract [B, H, N] in f32.

    ```mlir
    %f = attn.feature_map %x elu_plus_one : tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1
    - E10: features have rank 4, [batch, heads, tokens, features]; what is subtracted has rank 3 and is of f32; `plus` is finite
    - E16: `logs` is for `trigonometric`, has rank 3 and is of f32; there `subtract` needs it

    Source: Katharopoulos et al., Transformers are RNNs (2020); Choromanski et al., Rethinking Attention with Performers (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Optional<Attn_Numbers>:$logs, Optional<Attn_Numbers>:$subtract,
                       Attn_FeatureKind:$map, OptionalAttr<F32Attr>:$plus);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $input $map (`logs` `(` $logs^ `:` type($logs) `)`)? (`subtract` `(` $subtract^ `:` type($subtract) `)`)? (`plus` `(` $plus^ `)`)? attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Attn_LinearWeightsOp : Attn_GroupedStep<"linear_weights", [AttrSizedOperandSegments]> {
  let summary = "What linear attention divides by";
  let description = [{
    ```
    z_t              = exp(min(decay_t, 0)) * z_{t-1} + feature(key[b, h, t, :])
    weights[b, h, t] = sum_f feature(query[b, h, t, f]) * z_t[f]
    ```

    from z_{-1} = `state`, or 0. Without `causal`, every query meets the z of the last token. The result `sums` is that z. `feature`, a map of
    `attn.feature_map`, is applied as queries and keys are read; without it they are features. Query head h meets the z of key head
    h floordiv (Hq / H).

    Shapes: query [B, Hq, N, F], key [B, H, N, F]; weights [B, Hq, N], sums and state [B, H, F], in f32; decay [H], [B, H, N] or
    [B, H, N, F] in f32. Hq is a multiple of H.

    ```mlir
    %w, %z = attn.linear_weights %fq, %fk causal : !f, !f -> tensor<?x?x?xf32>, tensor<?x?x64xf32>
    ```

    Constraints
    - E1
    - E11: query and key have rank 4 and one element type; decay has rank 1, 3 or 4 and needs `causal`
    - E12: weights, states and decays are of f32
    - E18: `feature` makes one number of one, so it is not `trigonometric`

    Source: Katharopoulos et al. (2020).
  }];
  let arguments = (ins Attn_Numbers:$query, Attn_Numbers:$key, Optional<Attn_Numbers>:$decay,
                       Optional<Attn_Numbers>:$state, OptionalAttr<Attn_FeatureKind>:$feature, UnitAttr:$causal);
  let results = (outs Attn_Numbers:$weights, Attn_Numbers:$sums);
  let assemblyFormat = [{
    $query `,` $key (`feature` `(` $feature^ `)`)? (`causal` $causal^)? (`decay` `(` $decay^ `:` type($decay) `)`)?
    (`state` `(` $state^ `:` type($state) `)`)? attr-dict `:` type($query) `,` type($key) `->` type(results)
  }];
}

def Attn_LinearAttentionOp : Attn_GroupedStep<"linear_attention", [AttrSizedOperandSegments]> {
  let summary = "Attention with weights that are products of features";
  let description = [{
    ```
    S_t                = exp(min(decay_t, 0)) * S_{t-1} + feature(key[b, h, t, :])^T value[b, h, t, :]
    output[b, h, t, :] = scale * feature(query[b, h, t, :]) S_t, over divide[b, h, t] where it is there; 0 where that is 0
    ```

    from S_{-1} = `state`, or 0; `scale` is 1 where it is not given. Without `causal`, every query meets the S of the last token. The result `sums` is that S: the state
    from which a later call goes on, so decoding is a call with one token. A decay is the logarithm of a factor of at most 1, one for each
    head [H], step [B, H, N] or step and feature [B, H, N, F]; one above 0 counts as 0.

    `feature`, a map of `attn.feature_map`, is applied as queries and keys are read; without it they are features. `normalize` divides by the
    weights of `attn.linear_weights` of the same operands, whose sums are then a further result, and a further state. Query head h
    meets the state of key head h floordiv (Hq / H).

    Shapes: query [B, Hq, N, F], key [B, H, N, F], value [B, H, N, Dv], output [B, Hq, N, Dv]; sums and state [B, H, F, Dv], key_sums and
    key_state [B, H, F], divide [B, Hq, N], in f32. Hq is a multiple of H.

    ```mlir
    %o, %s, %z = attn.linear_attention %q, %k, %v feature(elu_plus_one) normalize causal
      : !t, !t, !t -> !t, tensor<?x?x64x64xf32>, tensor<?x?x64xf32>
    ```

    Constraints
    - E1, E2 of value and output, E11, E12, E18
    - E13: scale is finite
    - E17: `normalize` has the sums of keys as a third result and, beside a state, as a second state; `divide` has no place with it

    Source: Katharopoulos et al., Transformers are RNNs (2020); decays: Sun et al., Retentive Network (2023), Yang et al., Gated Linear
    Attention (2023), Dao and Gu, Mamba-2 (2024).
  }];
  let arguments = (ins Attn_Numbers:$query, Attn_Numbers:$key, Attn_Numbers:$value, Optional<Attn_Numbers>:$divide,
                       Optional<Attn_Numbers>:$decay, Optional<Attn_Numbers>:$state, Optional<Attn_Numbers>:$key_state,
                       OptionalAttr<Attn_FeatureKind>:$feature, UnitAttr:$normalize, UnitAttr:$causal,
                       OptionalAttr<F32Attr>:$scale);
  let results = (outs Attn_Numbers:$output, Attn_Numbers:$sums, Optional<Attn_Numbers>:$key_sums);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`feature` `(` $feature^ `)`)? (`normalize` $normalize^)? (`scale` `(` $scale^ `)`)?
    (`causal` $causal^)? (`divide` `(` $divide^ `:` type($divide) `)`)? (`decay` `(` $decay^ `:` type($decay) `)`)?
    (`state` `(` $state^ (`,` $key_state^)? `:` type($state) (`,` type($key_state)^)? `)`)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type(results)
  }];
}

def Attn_RandomFeaturesOp : Attn_GroupedStep<"random_features"> {
  let summary = "Products with random directions";
  let description = [{
    ```
    features[b, h, n, f] = sum_d projection[f, d] * input[b, h, n, d]
    maxima[b, h, n]      = max_f features[b, h, n, f]
    ```

    With `softmax` or `trigonometric`, the input is first divided by the fourth root of D. Then half its squared length is, with
    `softmax`, subtracted from the features, not from the maxima: exp of what comes out are features whose products are
    exp(q . k / sqrt(D)) on average. With `trigonometric` it takes the place of the maxima: the `trigonometric` map with these as `logs`
    makes features of the same average. Directions are an operand: nothing is drawn here. Head h has the directions
    h floordiv (H / Hp).

    Shapes: input [B, H, N, D]; projection [F, D] or [Hp, F, D]; features [B, H, N, F], maxima [B, H, N], these three in f32. H is a
    multiple of Hp.

    ```mlir
    %u, %m = attn.random_features %x, %p softmax : tensor<?x?x?x64xf16>, tensor<256x64xf32> -> tensor<?x?x?x256xf32>, tensor<?x?x?xf32>
    ```

    Constraints
    - E1
    - E14: input has rank 4, projection rank 2 or 3; projection, features and maxima are of f32

    Source: Choromanski et al., Rethinking Attention with Performers (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Numbers:$projection, OptionalAttr<Attn_RandomKind>:$kind);
  let results = (outs Attn_Numbers:$features, Attn_Numbers:$maxima);
  let assemblyFormat = [{
    $input `,` $projection ($kind^)? attr-dict `:` type($input) `,` type($projection) `->` type(results)
  }];
}

def Attn_RunningMaxOp : Attn_Step<"running_max"> {
  let summary = "Maxima over tokens, and how they grow";
  let description = [{
    ```
    maxima[b, h, t] = max(maxima[b, h, t - 1], input[b, h, t]), from maxima[b, h, -1] = state[b, h] or -inf
    decays[b, h, t] = maxima[b, h, t - 1] - maxima[b, h, t], or 0 where the former is -inf
    last[b, h]      = maxima[b, h, N - 1]
    ```

    Without `causal`, maxima are those over all tokens, and decays 0. Features exp(x - maxima) with these decays make of linear attention
    what exp(x) would, without an overflow, and without a look at later tokens.

    Shapes: input, maxima, decays [B, H, N], state, last [B, H], in f32.

    ```mlir
    %m, %g, %c = attn.running_max %x causal : !w -> !w, !w, tensor<?x?xf32>
    ```

    Constraints
    - E1
    - E15: input, maxima and decays have rank 3, state and last rank 2, all of f32; a state needs `causal`
  }];
  let arguments = (ins Attn_Numbers:$input, Optional<Attn_Numbers>:$state, UnitAttr:$causal);
  let results = (outs Attn_Numbers:$maxima, Attn_Numbers:$decays, Attn_Numbers:$last);
  let assemblyFormat = [{
    $input (`causal` $causal^)? (`state` `(` $state^ `:` type($state) `)`)? attr-dict `:` type($input) `->` type(results)
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNLINEAR_TD
