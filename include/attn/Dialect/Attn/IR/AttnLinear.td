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

#endif // ATTN_DIALECT_ATTN_IR_ATTNLINEAR_TD
