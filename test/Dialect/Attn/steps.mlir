// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -attn-tile-steps=lanes=8 | FileCheck %s --check-prefix=TILE

!t = tensor<?x?x?x64xf32>
!z = tensor<?x?x?xf32>
!i = tensor<?x?x?xi32>

// CHECK-LABEL: func.func @rows
// CHECK: attn.gather_rows %{{.*}}[%{{.*}}] : tensor<?x?x?x64xf32>, tensor<?x?x?xi32> -> tensor<?x?x?x64xf32>
// CHECK: attn.merge %{{.*}}, %{{.*}} groups(4) : tensor<?x?x?x64xf32>, tensor<?x?x?xf32> -> tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
// TILE: func.func private @rows.s0(%arg0: memref<?x?x?x64xf32, strided<[?, ?, ?, 1], offset: ?>>,
// TILE: vector.load {{.*}} vector<8xf32>
// TILE-LABEL: func.func @rows(
// TILE: attn_tile.step @rows.s0(%arg0, %arg2) units([2, 0, 1, 2, 1, 1, 2, 2, 32])
// TILE-SAME: extents({{.*}}["heads", array<i64: 0, 1>]{{.*}}) contiguous([0, 2]) multiples([1, 1, 0, 1])
// TILE: attn_tile.step @rows.s1
// TILE-SAME: ["heads", array<i64: 2, 1, 3, 1>, array<i64: 0, 1, 1, 0, 4>]
func.func @rows(%x: !t, %z: !z, %r: !i) -> (!t, !z) {
  %g = attn.gather_rows %x[%r] : !t, !i -> !t
  %o, %l = attn.merge %g, %z groups(4) : !t, !z -> !t, !z
  return %o, %l : !t, !z
}

// CHECK-LABEL: func.func @convolution
// CHECK: attn.compute(%{{.*}}, %{{.*}}) maps([#{{.*}}, #{{.*}}, #{{.*}}]) initial(0.000000e+00) {
// CHECK: attn.result %{{.*}} : f32
// TILE: func.func private @convolution.s0
// TILE: vector.load {{.*}} vector<8xf32>
// TILE-LABEL: func.func @convolution(
// An output extent that only (m * 3 + c) has: (N + 3 - 1 - 2) floordiv 3.
// TILE: ["output tokens", array<i64: 2, 2>, array<i64: 0, 2, 1, 0, 3>]
func.func @convolution(%x: !t, %w: tensor<?x64x3x64xf32>) -> !t {
  %y = attn.compute(%x, %w) maps([affine_map<(b, h, m, e, d, c) -> (b, h, m * 3 + c, d)>,
                                  affine_map<(b, h, m, e, d, c) -> (h, d, c, e)>,
                                  affine_map<(b, h, m, e, d, c) -> (b, h, m, e)>]) initial(0.0) {
  ^bb0(%a: f32, %b: f32, %total: f32):
    %ab = arith.mulf %a, %b : f32
    %sum = arith.addf %total, %ab : f32
    attn.result %sum : f32
  } : !t, tensor<?x64x3x64xf32> -> !t
  return %y : !t
}
