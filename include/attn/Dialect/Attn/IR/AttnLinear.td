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
    I32EnumAttrCase<"Exp", 2, "exp">                  // exp(x)
  ]> {
  let cppNamespace = "::attn";
}

def Attn_FeatureMapOp : Attn_Step<"feature_map"> {
  let summary = "Features of queries or keys, number by number";
  let description = [{
    ```
    output[b, h, n, f] = map(input[b, h, n, f] - subtract[b, h, n]) + plus
    ```

    with map one of `elu_plus_one` (x + 1 where x > 0, else exp(x)), `relu` and `exp`.

    Shapes: input and output [B, H, N, F], subtract [B, H, N] in f32.

    ```mlir
    %f = attn.feature_map %x elu_plus_one : tensor<?x?x?x64xf16> -> tensor<?x?x?x64xf32>
    ```

    Constraints
    - E1
    - E10: features have rank 4, [batch, heads, tokens, features]; what is subtracted has rank 3 and is of f32; `plus` is finite

    Source: Katharopoulos et al., Transformers are RNNs (2020); Choromanski et al., Rethinking Attention with Performers (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Optional<Attn_Numbers>:$subtract, Attn_FeatureKind:$map,
                       OptionalAttr<F32Attr>:$plus);
  let results = (outs Attn_Numbers:$output);
  let assemblyFormat = [{
    $input $map (`subtract` `(` $subtract^ `:` type($subtract) `)`)? (`plus` `(` $plus^ `)`)? attr-dict
    `:` type($input) `->` type($output)
  }];
}

def Attn_LinearWeightsOp : Attn_Step<"linear_weights", [AttrSizedOperandSegments]> {
  let summary = "What linear attention divides by";
  let description = [{
    ```
    z_t           = exp(min(decay_t, 0)) * z_{t-1} + key[b, h, t, :]
    weights[b, h, t] = sum_f query[b, h, t, f] * z_t[f]
    ```

    from z_{-1} = `state`, or 0. Without `causal`, every query meets the z of the last token. The result `sums` is that z.

    Shapes: query, key [B, H, N, F]; weights [B, H, N], sums and state [B, H, F], in f32; decay [H], [B, H, N] or [B, H, N, F] in f32.

    ```mlir
    %w, %z = attn.linear_weights %fq, %fk causal : !f, !f -> tensor<?x?x?xf32>, tensor<?x?x64xf32>
    ```

    Constraints
    - E1
    - E11: query and key have rank 4 and one element type; decay has rank 1, 3 or 4 and needs `causal`
    - E12: weights, states and decays are of f32

    Source: Katharopoulos et al. (2020).
  }];
  let arguments = (ins Attn_Numbers:$query, Attn_Numbers:$key, Optional<Attn_Numbers>:$decay,
                       Optional<Attn_Numbers>:$state, UnitAttr:$causal);
  let results = (outs Attn_Numbers:$weights, Attn_Numbers:$sums);
  let assemblyFormat = [{
    $query `,` $key (`causal` $causal^)? (`decay` `(` $decay^ `:` type($decay) `)`)?
    (`state` `(` $state^ `:` type($state) `)`)? attr-dict `:` type($query) `,` type($key) `->` type(results)
  }];
}

def Attn_LinearAttentionOp : Attn_Step<"linear_attention", [AttrSizedOperandSegments]> {
  let summary = "Attention with weights that are products of features";
  let description = [{
    ```
    S_t                = exp(min(decay_t, 0)) * S_{t-1} + key[b, h, t, :]^T value[b, h, t, :]
    output[b, h, t, :] = scale * query[b, h, t, :] S_t, over divide[b, h, t] where it is there; 0 where that is 0
    ```

    from S_{-1} = `state`, or 0; `scale` is 1 where it is not given. Without `causal`, every query meets the S of the last token. The result `sums` is that S: the state
    from which a later call goes on, so decoding is a call with one token. A decay is the logarithm of a factor of at most 1, one for each
    head [H], step [B, H, N] or step and feature [B, H, N, F]; one above 0 counts as 0.

    Shapes: query, key [B, H, N, F]; value, output [B, H, N, Dv]; sums and state [B, H, F, Dv], divide [B, H, N], in f32.

    ```mlir
    %w, %z = attn.linear_weights %fq, %fk causal : !f, !f -> tensor<?x?x?xf32>, tensor<?x?x64xf32>
    %o, %s = attn.linear_attention %fq, %fk, %v causal divide(%w : tensor<?x?x?xf32>) : !f, !f, !t -> !t, tensor<?x?x64x64xf32>
    ```

    Constraints
    - E1, E2 of value and output, E11, E12
    - E13: scale is finite

    Source: Katharopoulos et al., Transformers are RNNs (2020); decays: Sun et al., Retentive Network (2023), Yang et al., Gated Linear
    Attention (2023), Dao and Gu, Mamba-2 (2024).
  }];
  let arguments = (ins Attn_Numbers:$query, Attn_Numbers:$key, Attn_Numbers:$value, Optional<Attn_Numbers>:$divide,
                       Optional<Attn_Numbers>:$decay, Optional<Attn_Numbers>:$state, UnitAttr:$causal,
                       OptionalAttr<F32Attr>:$scale);
  let results = (outs Attn_Numbers:$output, Attn_Numbers:$sums);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`scale` `(` $scale^ `)`)? (`causal` $causal^)? (`divide` `(` $divide^ `:` type($divide) `)`)?
    (`decay` `(` $decay^ `:` type($decay) `)`)? (`state` `(` $state^ `:` type($state) `)`)? attr-dict
    `:` type($query) `,` type($key) `,` type($value) `->` type(results)
  }];
}

def Attn_RandomFeaturesOp : Attn_Step<"random_features"> {
  let summary = "Products with random directions";
  let description = [{
    ```
    features[b, h, n, f] = sum_d projection[f, d] * input[b, h, n, d]
    maxima[b, h, n]      = max_f features[b, h, n, f]
    ```

    With `softmax`, the input is first divided by the fourth root of D, and half its squared length is subtracted from the features,
    not from the maxima: exp of what comes out are features whose products are exp(q . k / sqrt(D)) on average. Directions are an
    operand: nothing is drawn here.

    Shapes: input [B, H, N, D]; projection [F, D] or [H, F, D]; features [B, H, N, F], maxima [B, H, N], these three in f32.

    ```mlir
    %u, %m = attn.random_features %x, %p softmax : tensor<?x?x?x64xf16>, tensor<256x64xf32> -> tensor<?x?x?x256xf32>, tensor<?x?x?xf32>
    ```

    Constraints
    - E1
    - E14: input has rank 4, projection rank 2 or 3; projection, features and maxima are of f32

    Source: Choromanski et al., Rethinking Attention with Performers (2020).
  }];
  let arguments = (ins Attn_Numbers:$input, Attn_Numbers:$projection, UnitAttr:$softmax);
  let results = (outs Attn_Numbers:$features, Attn_Numbers:$maxima);
  let assemblyFormat = [{
    $input `,` $projection (`softmax` $softmax^)? attr-dict `:` type($input) `,` type($projection) `->` type(results)
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
