// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnSteps.td.

func.func @extents(%x: tensor<2x3x8x64xf32>, %r: tensor<1x3x?xi32>) {
  // expected-error@+1 {{operand 0 and operand 1 differ in batch: 2 (dimension 0 of 'tensor<2x3x8x64xf32>') and 1 (dimension 0 of 'tensor<1x3x?xi32>'); make them equal (E1)}}
  %0 = attn.gather_rows %x[%r] : tensor<2x3x8x64xf32>, tensor<1x3x?xi32> -> tensor<2x3x?x64xf32>
  return
}

// -----

func.func @groups(%x: tensor<2x3x8x64xf32>, %r: tensor<2x4x?xi32>) {
  // expected-error@+1 {{dimension 1 of operand 1 is 4, no multiple of the 3 of operand 0 (dimension 1); change one of them (E1)}}
  %0 = attn.gather_rows %x[%r] : tensor<2x3x8x64xf32>, tensor<2x4x?xi32> -> tensor<2x4x?x64xf32>
  return
}

// -----

func.func @rule(%o: tensor<2x8x?x64xf32>, %z: tensor<2x8x?xf32>) {
  // expected-error@+1 {{result 0 has 3 heads (dimension 1 of 'tensor<2x3x?x64xf32>'), but 4 follow from operand 0; change one of them (E1)}}
  %0 = attn.merge %o, %z groups(2) : tensor<2x8x?x64xf32>, tensor<2x8x?xf32> -> tensor<2x3x?x64xf32>
  return
}

// -----

func.func @elements(%x: tensor<2x3x8x64xf32>, %r: tensor<2x3x?xi32>) {
  // expected-error@+1 {{result 0 has elements of type 'f16' where operand 0 has 'f32'; convert one of them (E2)}}
  %0 = attn.gather_rows %x[%r] : tensor<2x3x8x64xf32>, tensor<2x3x?xi32> -> tensor<2x3x?x64xf16>
  return
}

// -----

func.func @indices(%x: tensor<2x3x8x64xf32>, %r: tensor<2x3x?xi8>) {
  // expected-error@+1 {{operand #1 must be ranked tensor of 32-bit signless integer or 64-bit signless integer values, but got 'tensor<2x3x?xi8>'}}
  %0 = attn.gather_rows %x[%r] : tensor<2x3x8x64xf32>, tensor<2x3x?xi8> -> tensor<2x3x?x64xf32>
  return
}

// -----

func.func @rank(%x: tensor<3x8xf32>, %r: tensor<2x3x?xi32>) {
  // expected-error@+1 {{operand 0 is 'tensor<3x8xf32>', but must have rank 4, [batch, heads, tokens, head_dim], or 3, one number a row; reshape it (E3)}}
  %0 = attn.gather_rows %x[%r] : tensor<3x8xf32>, tensor<2x3x?xi32> -> tensor<3x8xf32>
  return
}

// -----

func.func @parts(%o: tensor<2x8x?x64xf32>, %z: tensor<2x8x?xf32>) {
  // expected-error@+1 {{has groups(0); give the number of parts, at least 1 (E4)}}
  %0 = attn.merge %o, %z groups(0) : tensor<2x8x?x64xf32>, tensor<2x8x?xf32> -> tensor<2x8x?x64xf32>
  return
}

// -----

func.func @lse(%o: tensor<2x8x?x64xf16>, %z: tensor<2x8x?xf16>) {
  // expected-error@+1 {{operand 1 is 'tensor<2x8x?xf16>', but a log-sum-exp is of f32; convert it (E4)}}
  %0 = attn.merge %o, %z groups(2) : tensor<2x8x?x64xf16>, tensor<2x8x?xf16> -> tensor<2x4x?x64xf16>
  return
}
