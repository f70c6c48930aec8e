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

func.func @list(%x: tensor<2x3x8x64xf32>, %r: tensor<?x?x?x?xi32>) {
  // expected-error@+1 {{operand 1 is 'tensor<?x?x?x?xi32>', but must have rank 3, [batch, groups, rows], or be [batch, rows] or [rows]; reshape it (E3)}}
  %0 = attn.gather_rows %x[%r] : tensor<2x3x8x64xf32>, tensor<?x?x?x?xi32> -> tensor<2x3x?x64xf32>
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

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has 1 maps for 1 inputs and the output; give one for each (E5)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{for operand 0, 'tensor<?x?x?x64xf32>'; give one of 4 loops and 4 indices (E5)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{number the loops so that it is the first of them, in order (E5)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, d, n)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has an index that is no sum of loops times numbers from 0 up in the map affine_map<(d0, d1, d2, d3) -> (d0, d1, d2 floordiv 2, d3)>; write it as one (E6)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n floordiv 2, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has an index that is no sum of loops times numbers from 0 up}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d, m) -> (b, h, m - n, d)>, affine_map<(b, h, n, d, m) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has a block of 1 arguments; it takes an f32 for each of 1 inputs and one for the total (E7)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has a loop, d4, whose extent no tensor tells; write it in extents (E8)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d, m) -> (b, h, n, d)>, affine_map<(b, h, n, d, m) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t) {
  // expected-error@+1 {{has extents of 2 loops; give one, or -1, for each of 4 (E8)}}
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) extents([1, 2]) {
  ^bb0(%x0: f32, %t: f32):
    attn.result %x0 : f32
  } : !t -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @compute(%x: !t, %r: tensor<?xf32>) {
  %0 = attn.compute(%x) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x0: f32, %t: f32):
    %c = arith.constant 0 : index
    // expected-error@+1 {{cannot stand in attn.compute; use arith and math ops on scalars (E7)}}
    %y = tensor.extract %r[%c] : tensor<?xf32>
    attn.result %y : f32
  } : !t -> !t
  return
}

// -----

// A table may be read beyond its end where its one extent is known.
!t = tensor<?x?x?x64xf32>
func.func @beyond(%x: !t, %w: tensor<2xf32>) {
  // expected-error@+1 {{reads index 4 of dimension 0 of operand 1, which has 2; change the map or the extents (E8)}}
  %0 = attn.compute(%x, %w) maps([affine_map<(b, h, n, d, c) -> (b, h, n, d)>, affine_map<(b, h, n, d, c) -> (c * 2)>,
                                  affine_map<(b, h, n, d, c) -> (b, h, n, d)>]) initial(0.0) extents([-1, -1, -1, -1, 3]) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    attn.result %b : f32
  } : !t, tensor<2xf32> -> !t
  return
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @mixed(%x: !t, %w: tensor<?xf32>) {
  // expected-error@+1 {{has an index of several loops whose extents no number tells; write the extents of all but one of them (E8)}}
  %0 = attn.compute(%x, %w) maps([affine_map<(b, h, n, d) -> (b, h, n, d)>, affine_map<(b, h, n, d) -> (b + n)>,
                                  affine_map<(b, h, n, d) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%a: f32, %b: f32, %t: f32):
    attn.result %b : f32
  } : !t, tensor<?xf32> -> !t
  return
}
