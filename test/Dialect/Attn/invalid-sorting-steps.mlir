// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnSorting.td.

func.func @rounds(%x: tensor<?x?x?x64xf32>, %w: tensor<?x?x64x8xf32>) {
  // expected-error@+1 {{operand 1 is 'tensor<?x?x64x8xf32>', but the number of rounds, dimension 1, must be known; put it into the type (E36)}}
  %0 = attn.lsh_buckets %x, %w : tensor<?x?x?x64xf32>, tensor<?x?x64x8xf32> -> tensor<?x?x?xi32>
  return
}

// -----

func.func @groups(%x: tensor<?x2x?x64xf32>, %w: tensor<2x3x64x8xf32>) {
  // expected-error@+1 {{result 0 has 5 groups (dimension 1 of 'tensor<?x5x?xi32>'), but 6 follow from operand 0; change one of them (E1)}}
  %0 = attn.lsh_buckets %x, %w : tensor<?x2x?x64xf32>, tensor<2x3x64x8xf32> -> tensor<?x5x?xi32>
  return
}

// -----

func.func @buckets(%k: tensor<?x?x?xi32>) {
  // expected-error@+1 {{has buckets(0); give a number of at least 1 (E37)}}
  %0:3 = attn.sort %k buckets(0) : tensor<?x?x?xi32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x?xi32>
  return
}

// -----

func.func @starts(%k: tensor<?x?x?xi32>) {
  // expected-error@+1 {{result 2 is 'tensor<?x?x7xi32>', but dimension 2 must be 8; change one of them (E37)}}
  %0:3 = attn.sort %k buckets(8) : tensor<?x?x?xi32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x7xi32>
  return
}

// -----

func.func @like(%k: tensor<?x?x?xi32>, %x: tensor<?x?xf32>) {
  // expected-error@+1 {{operand 1 is 'tensor<?x?xf32>', but must have rank 3 or 4, [batch, heads, tokens] and perhaps more; reshape it (E37)}}
  %0:3 = attn.sort %k buckets(8) like %x : tensor<?x?x?xi32>, tensor<?x?xf32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x?xi32>
  return
}

// -----

func.func @types(%k: tensor<?x?x?xi32>) {
  // expected-error@+1 {{result 0 has elements of type 'i64' where operand 0 has 'i32'; make them one type (E38)}}
  %0 = attn.look_back %k chunk(8) groups(1) : tensor<?x?x?xi32> -> tensor<?x?x?xi64>
  return
}

// -----

func.func @longer(%k: tensor<?x?x9xi32>) {
  // expected-error@+1 {{result 0 has 9 keys (dimension 2 of 'tensor<?x?x9xi32>'), but 17 follow from operand 0; change one of them (E1)}}
  %0 = attn.look_back %k chunk(8) groups(1) : tensor<?x?x9xi32> -> tensor<?x?x9xi32>
  return
}

// -----

func.func @square(%r: tensor<?x?x4x5xf32>) {
  // expected-error@+1 {{operand 0 and operand 0 differ in blocks: 4 (dimension 2 of 'tensor<?x?x4x5xf32>') and 5 (dimension 3 of 'tensor<?x?x4x5xf32>'); make them equal (E1)}}
  %0 = attn.sinkhorn %r iterations(1) : tensor<?x?x4x5xf32> -> tensor<?x?x4x5xf32>
  return
}

// -----

func.func @iterations(%r: tensor<?x?x?x?xf32>) {
  // expected-error@+1 {{has iterations(0); give a number of at least 1 (E39)}}
  %0 = attn.sinkhorn %r iterations(0) : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  return
}

// -----

func.func @weights(%p: tensor<?x?x?x?xf16>, %x: tensor<?x?x?x8xf16>) {
  // expected-error@+1 {{operand 0 is 'tensor<?x?x?x?xf16>', but must be of f32; convert it (E40)}}
  %0 = attn.mix_blocks %p, %x block(4) : tensor<?x?x?x?xf16>, tensor<?x?x?x8xf16> -> tensor<?x?x?x8xf16>
  return
}

// -----

func.func @cut(%p: tensor<?x?x3x3xf32>, %x: tensor<?x?x8x8xf32>) {
  // expected-error@+1 {{operand 0 has 3 blocks (dimension 3 of 'tensor<?x?x3x3xf32>'), but 2 follow from operand 1; change one of them (E1)}}
  %0 = attn.mix_blocks %p, %x block(4) : tensor<?x?x3x3xf32>, tensor<?x?x8x8xf32> -> tensor<?x?x12x8xf32>
  return
}
