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
  // expected-error@+1 {{dimension 1 of operand 0 is 3, no multiple of the 4 of operand 1 (dimension 0); change one of them (E1)}}
  %f, %m = attn.random_features %x, %p : tensor<2x3x8x16xf32>, tensor<4x32x16xf32> -> tensor<2x3x8x32xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @maximum(%x: tensor<2x3x8xf32>, %c: tensor<2x3xf32>) {
  // expected-error@+1 {{has a state of earlier tokens, but is not causal; add `causal` or drop the state (E15)}}
  %m, %g, %l = attn.running_max %x state(%c : tensor<2x3xf32>) : tensor<2x3x8xf32> -> tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3xf32>
  return
}

// -----

func.func @logs(%x: tensor<2x3x8x16xf32>, %l: tensor<2x3x8xf32>) {
  // expected-error@+1 {{has logs, which relu does not take; make it trigonometric, or drop them (E16)}}
  %0 = attn.feature_map %x relu logs(%l : tensor<2x3x8xf32>) : tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>
  return
}

// -----

func.func @no_logs(%x: tensor<2x3x8x16xf32>, %l: tensor<2x3x8xf32>) {
  // expected-error@+1 {{subtracts from logs that are not there; give logs, or drop what is subtracted (E16)}}
  %0 = attn.feature_map %x trigonometric subtract(%l : tensor<2x3x8xf32>) : tensor<2x3x8x16xf32> -> tensor<2x3x8x32xf32>
  return
}

// -----

func.func @two(%x: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{result 0 has 16 features (dimension 3 of 'tensor<2x3x8x16xf32>'), but 32 follow from operand 0; change one of them (E1)}}
  %0 = attn.feature_map %x trigonometric : tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>
  return
}

// -----

func.func @groups(%q: tensor<2x6x8x16xf32>, %k: tensor<2x4x8x16xf32>) {
  // expected-error@+1 {{dimension 1 of operand 0 is 6, no multiple of the 4 of operand 1 (dimension 1); change one of them (E1)}}
  %o, %s = attn.linear_attention %q, %k, %k : tensor<2x6x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x6x8x16xf32>, tensor<2x4x16x16xf32>
  return
}

// -----

func.func @group_state(%q: tensor<2x6x8x16xf32>, %k: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{operand 1 and result 1 differ in key/value heads: 3 (dimension 1 of 'tensor<2x3x8x16xf32>') and 6 (dimension 1 of 'tensor<2x6x16xf32>'); make them equal (E1)}}
  %w, %z = attn.linear_weights %q, %k : tensor<2x6x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x6x8xf32>, tensor<2x6x16xf32>
  return
}

// -----

func.func @no_sums(%q: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{normalizes, but has no third result for the sums of keys; add it (E17)}}
  %o, %s = attn.linear_attention %q, %q, %q normalize : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @sums(%q: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{has a third result, for the sums of keys, but does not normalize; add `normalize`, or drop it (E17)}}
  %o, %s, %z = attn.linear_attention %q, %q, %q : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>, tensor<2x3x16xf32>
  return
}

// -----

func.func @one_state(%q: tensor<2x3x8x16xf32>, %s0: tensor<2x3x16x16xf32>) {
  // expected-error@+1 {{normalizes, but has no second state for the sums of keys; add it (E17)}}
  %o, %s, %z = attn.linear_attention %q, %q, %q normalize state(%s0 : tensor<2x3x16x16xf32>) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>, tensor<2x3x16xf32>
  return
}

// -----

func.func @two_states(%q: tensor<2x3x8x16xf32>, %s0: tensor<2x3x16x16xf32>, %z0: tensor<2x3x16xf32>) {
  // expected-error@+1 {{has a second state, for the sums of keys, but does not normalize; add `normalize`, or drop it (E17)}}
  %o, %s = attn.linear_attention %q, %q, %q state(%s0, %z0 : tensor<2x3x16x16xf32>, tensor<2x3x16xf32>) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>
  return
}

// -----

func.func @twice(%q: tensor<2x3x8x16xf32>, %w: tensor<2x3x8xf32>) {
  // expected-error@+1 {{normalizes and divides; drop one of them (E17)}}
  %o, %s, %z = attn.linear_attention %q, %q, %q normalize divide(%w : tensor<2x3x8xf32>) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8x16xf32>, tensor<2x3x16x16xf32>, tensor<2x3x16xf32>
  return
}

// -----

func.func @pairs(%q: tensor<2x3x8x16xf32>) {
  // expected-error@+1 {{has trigonometric features, which are two of a number; make them by attn.feature_map before (E18)}}
  %w, %z = attn.linear_weights %q, %q feature(trigonometric) : tensor<2x3x8x16xf32>, tensor<2x3x8x16xf32> -> tensor<2x3x8xf32>, tensor<2x3x16xf32>
  return
}
