// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnRouting.td.

func.func @eps(%x: tensor<2x3x8x64xf32>) {
  // expected-error@+1 {{has eps(-1.000000e+00); give a finite number of at least 0 (E30)}}
  %0 = attn.normalize_rows %x eps(-1.0) : tensor<2x3x8x64xf32> -> tensor<2x3x8x64xf32>
  return
}

// -----

func.func @tokens(%x: tensor<2x3x8x64xf32>) {
  // expected-error@+1 {{operand 0 and result 0 differ in tokens: 8 (dimension 2 of 'tensor<2x3x8x64xf32>') and 9 (dimension 2 of 'tensor<2x3x9x64xf32>'); make them equal (E1)}}
  %0 = attn.normalize_rows %x eps(0.0) centered : tensor<2x3x8x64xf32> -> tensor<2x3x9x64xf32>
  return
}

// -----

func.func @centroids(%x: tensor<2x3x?x64xf32>, %c: tensor<3x?x64xf32>) {
  // expected-error@+1 {{operand 1 is 'tensor<3x?x64xf32>', but the number of centroids, dimension 1, must be known; put it into the type (E31)}}
  %0 = attn.row_scores %x, %c : tensor<2x3x?x64xf32>, tensor<3x?x64xf32> -> tensor<2x?x?xf32>
  return
}

// -----

func.func @scores(%x: tensor<2x3x?x64xf16>, %c: tensor<3x4x64xf16>) {
  // expected-error@+1 {{result 0 is 'tensor<2x12x?xf16>', but must be of f32; convert it (E31)}}
  %0 = attn.row_scores %x, %c : tensor<2x3x?x64xf16>, tensor<3x4x64xf16> -> tensor<2x12x?xf16>
  return
}

// -----

func.func @clusters(%x: tensor<2x3x?x64xf32>, %c: tensor<3x4x64xf32>) {
  // expected-error@+1 {{result 0 has 13 groups (dimension 1 of 'tensor<2x13x?xf32>'), but 12 follow from operand 0; change one of them (E1)}}
  %0 = attn.row_scores %x, %c : tensor<2x3x?x64xf32>, tensor<3x4x64xf32> -> tensor<2x13x?xf32>
  return
}

// -----

func.func @none(%s: tensor<?x?x?xf32>) {
  // expected-error@+1 {{has count(0); give a number of at least 1 (E32)}}
  %0 = attn.top_rows %s count(0) : tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  return
}

// -----

func.func @count(%s: tensor<?x?x?xf32>) {
  // expected-error@+1 {{result 0 is 'tensor<?x?x5xi32>', but dimension 2 must be 4; change one of them (E32)}}
  %0 = attn.top_rows %s count(4) : tensor<?x?x?xf32> -> tensor<?x?x5xi32>
  return
}

// -----

func.func @like(%r: tensor<?x?x?xi32>) {
  // expected-error@+1 {{is like no tensor; name one that has its tokens (E33)}}
  %0 = "attn.invert_rows"(%r) : (tensor<?x?x?xi32>) -> tensor<?x?x?xi32>
  return
}

// -----

func.func @types(%r: tensor<?x?x?xi32>, %x: tensor<?x?x?xf32>) {
  // expected-error@+1 {{result 0 has elements of type 'i64' where operand 0 has 'i32'; make them one type (E33)}}
  %0 = attn.invert_rows %r like %x : tensor<?x?x?xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi64>
  return
}

// -----

func.func @groups(%x: tensor<?x?x?x8xf32>, %p: tensor<?x?x?xi32>) {
  // expected-error@+1 {{has groups(0); give a number of at least 1 (E34)}}
  %0 = attn.scatter_mean %x[%p] groups(0) eps(0.0) : tensor<?x?x?x8xf32>, tensor<?x?x?xi32> -> tensor<?x?x?x8xf32>
  return
}

// -----

func.func @multiple(%x: tensor<?x7x?x8xf32>, %p: tensor<?x7x?xi32>) {
  // expected-error@+1 {{dimension 1 of operand 0 is 7, no multiple of the 3 of result 0 (dimension 1); change one of them (E1)}}
  %0 = attn.scatter_mean %x[%p] groups(2) eps(0.0) : tensor<?x7x?x8xf32>, tensor<?x7x?xi32> -> tensor<?x3x?x8xf32>
  return
}

// -----

func.func @base(%x: tensor<?x?x?x8xf32>, %p: tensor<?x?x?xi32>, %base: tensor<?x?x8xf32>) {
  // expected-error@+1 {{operand 2 is 'tensor<?x?x8xf32>', but must have rank 4, [batch, heads, tokens, head_dim]; reshape it (E35)}}
  %0 = attn.scatter_rows %x[%p] into %base : tensor<?x?x?x8xf32>, tensor<?x?x?xi32>, tensor<?x?x8xf32> -> tensor<?x?x?x8xf32>
  return
}

// -----

func.func @means(%x: tensor<?x?x9x8xf32>) {
  // expected-error@+1 {{result 0 has 2 blocks (dimension 2 of 'tensor<?x?x2x8xf32>'), but 3 follow from operand 0; change one of them (E1)}}
  %0 = attn.block_means %x block(4) : tensor<?x?x9x8xf32> -> tensor<?x?x2x8xf32>
  return
}

// -----

func.func @block(%x: tensor<?x?x9x8xf32>) {
  // expected-error@+1 {{has block(0); give a number of at least 1 (E41)}}
  %0 = attn.block_means %x block(0) : tensor<?x?x9x8xf32> -> tensor<?x?x?x8xf32>
  return
}

// -----

func.func @always(%s: tensor<?x?x?x?xf32>, %x: tensor<?x?x?x8xf32>) {
  // expected-error@+1 {{has local(-1); give a number of at least 0 (E42)}}
  %0 = attn.top_blocks %s of %x, %x count(2) queries(1) block(8) local(-1) : tensor<?x?x?x?xf32>, tensor<?x?x?x8xf32>, tensor<?x?x?x8xf32> -> tensor<?x?x?x?xi32>
  return
}

// -----

func.func @rows(%s: tensor<?x?x7x?xf32>, %x: tensor<?x?x9x8xf32>) {
  // expected-error@+1 {{differ in blocks of queries: 7 (dimension 2 of 'tensor<?x?x7x?xf32>') and 9 (dimension 2 of 'tensor<?x?x9x8xf32>'); make them equal (E1)}}
  %0 = attn.top_blocks %s of %x, %x count(2) queries(1) block(8) : tensor<?x?x7x?xf32>, tensor<?x?x9x8xf32>, tensor<?x?x9x8xf32> -> tensor<?x?x?x?xi32>
  return
}
