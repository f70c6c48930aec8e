// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnLinear.td.

func.func @plus(%x: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{adds a number that is not finite; give one that is (E10)}}
  %0 = attn.feature_map %x relu plus(0x7F800000) : tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>
  return
}

// -----

func.func @features(%x: tensor<2x3x8xf32>) {
  // expected-error@+1 {{operand 0 is 'tensor<2x3x8xf32>', but must have rank 4, [batch, heads, tokens, features]; reshape it (E10)}}
  %0 = attn.feature_map %x relu : tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  return
}

// -----

func.func @subtract(%x: tensor<2x3x8x16xf32>, %c: tensor<2x3x8xf16>) {
  // expected-error@+1 {{operand 1 is 'tensor<2x3x8xf16>', but must be of f32; convert it (E10)}}
  %0 = attn.feature_map %x exp subtract(%c : tensor<2x3x8xf16>) : tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>
  return
}

// -----

func.func @extents(%q: tensor<2x3x8x16xf32>, %k: tensor<2x3x8x24xf32>) {
  // expected-error@+1 {{operand 0 and operand 1 differ in features: 16 (dimension 3 of 'tensor<2x3x8x16xf32>') and 24 (dimension 3 of 'tensor<2x3x8x24xf32>'); make them equal (E1)}}
  %w, %z = attn.linear_weights %q, %k : tensor<2x3x8x16xf32>, tensor<2x3x8x24xf32> -> tensor<2x3x8xf32>, tensor<2x3x16xf32>
  return
}

// -----

func.func @types(%q: tensor<2x3x8x16xf32>, %k: tensor<2x3x8x16xf16>) {
  // expected-error@+1 {{has queries of 'f32' and keys of 'f16'; convert one of them (E11)}}
  %w, %z = attn.linear_weights %q, %k : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf16> -> tensor<2x3x8xf32>, tensor<2x3x16xf32>
  return
}

// -----

func.func @decay(%q: tensor<2x3x8x16xf32>, %g: tensor<3xf32>) {
  // expected-error@+1 {{decays from step to step, but is not causal; add `causal` or drop the decay (E11)}}
  %o, %s = attn.linear_attention %q, %q, %q decay(%g : tensor<3xf32>) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @rank(%q: tensor<2x3x8x16xf32>, %g: tensor<2x3xf32>) {
  // expected-error@+1 {{operand 3, the decay, is 'tensor<2x3xf32>', but must have rank 1, [heads], 3, [batch, heads, tokens], or 4, [batch, heads, tokens, features]; reshape it (E11)}}
  %o, %s = attn.linear_attention %q, %q, %q causal decay(%g : tensor<2x3xf32>) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @state(%q: tensor<2x3x8x16xf16>) {
  // expected-error@+1 {{result 1 is 'tensor<2x3x16x16xf16>', but must be of f32; convert it (E12)}}
  %o, %s = attn.linear_attention %q, %q, %q : tensor<2x3x8x16xf16>, tensor<2x3x8x16xf16>, tensor<2x3x8x16xf16> -> tensor<2x3x8x16xf16>, tensor<2x3x16x16xf16>
  return
}

// -----

func.func @values(%q: tensor<2x3x8x16xf32>, %v: tensor<2x3x8x16xf16>) {
  // expected-error@+1 {{result 0 has elements of type 'f32' where operand 2 has 'f16'; convert one of them (E2)}}
  %o, %s = attn.linear_attention %q, %q, %v : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf16> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @scale(%q: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{has a scale that is not finite; give one that is (E13)}}
  %o, %s = attn.linear_attention %q, %q, %q scale(0x7F800000) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @projection(%x: tensor<2x3x8x16xf32>, %p: tensor<16xf32>) {
  // expected-error@+1 {{operand 1 is 'tensor<16xf32>', but must have rank 2, [features, head_dim], or 3, with heads before these; reshape it (E14)}}
  %f, %m = attn.random_features %x, %p : tensor<2x3x8x16xf32>, tensor<16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @directions(%x: tensor<2x3x8x16xf16>, %p: tensor<32x16xf16>) {
  // expected-error@+1 {{operand 1 is 'tensor<32x16xf16>', but must be of f32; convert it (E14)}}
  %f, %m = attn.random_features %x, %p : tensor<2x3x8x16xf16>, tensor<32x16xf16> -> tensor<2x3x8x32xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @heads(%x: tensor<2x3x8x16xf32>, %p: tensor<4x32x16xf32>) {
  // expected-error@+1 {{operand 0 and operand 1 differ in heads: 3 (dimension 1 of 'tensor<2x3x8x16xf32>') and 4 (dimension 0 of 'tensor<4x32x16xf32>'); make them equal (E1)}}
  %f, %m = attn.random_features %x, %p : tensor<2x3x8x16xf32>, tensor<4x32x16xf32> -> tensor<2x3x8x32xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @maximum(%x: tensor<2x3x8xf32>, %c: tensor<2x3xf32>) {
  // expected-error@+1 {{has a state of earlier tokens, but is not causal; add `causal` or drop the state (E15)}}
  %m, %g, %l = attn.running_max %x state(%c : tensor<2x3xf32>) : tensor<2x3x8xf32> -> tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3xf32>
  return
}
