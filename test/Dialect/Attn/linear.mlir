// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -attn-tile-steps=lanes=8 | FileCheck %s --check-prefix=TILE
// RUN: attn-opt %s -attn-tile-steps=lanes=1 | FileCheck %s --check-prefix=GPU

!t = tensor<?x?x?x64xf32>
!w = tensor<?x?x?xf32>
!z = tensor<?x?x64xf32>
!s = tensor<?x?x64x64xf32>

// CHECK-LABEL: func.func @linear
// CHECK: attn.feature_map %{{.*}} elu_plus_one subtract(%{{.*}} : tensor<?x?x?xf32>) plus(1.000000e-03) : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
// CHECK: attn.linear_weights %{{.*}}, %{{.*}} feature(square) causal decay(%{{.*}} : tensor<?xf32>) state(%{{.*}} : tensor<?x?x64xf32>) :
// CHECK: attn.linear_attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01) causal divide(%{{.*}} : tensor<?x?x?xf32>) decay(%{{.*}} : tensor<?xf32>) state(%{{.*}} : tensor<?x?x64x64xf32>) :

// Two vectors of columns and some tokens at a time: a row of the state is loaded and stored once. Features of these tokens are read
// from one array.
// TILE: func.func private @linear.s2
// TILE: iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// TILE-COUNT-12: math.fma {{.*}} vector<8xf32>
// TILE-COUNT-2: vector.store
// TILE: scf.yield
// TILE-LABEL: func.func @linear(
// TILE: attn_tile.step @linear.s2({{.*}}) units([7, 0, 1, 7, 1, 1, 6, 3, 64])
func.func @linear(%q: !t, %c: !w, %v: !t, %g: tensor<?xf32>, %z0: !z, %s0: !s) -> (!t, !z, !s) {
  %f = attn.feature_map %q elu_plus_one subtract(%c : !w) plus(1.0e-3) : !t -> !t
  %w, %z = attn.linear_weights %f, %f feature(square) causal decay(%g : tensor<?xf32>) state(%z0 : !z) : !t, !t -> !w, !z
  %o, %s = attn.linear_attention %f, %f, %v scale(0.125) causal divide(%w : !w) decay(%g : tensor<?xf32>) state(%s0 : !s) : !t, !t, !t -> !t, !s
  return %o, %z, %s : !t, !z, !s
}

// On a GPU what is divided by is a step of its own.
// CHECK-LABEL: func.func @normalized
// CHECK: attn.random_features %{{.*}}, %{{.*}} trigonometric : tensor<?x?x?x64xf32>, tensor<?x32x64xf32> -> tensor<?x?x?x32xf32>, tensor<?x?x?xf32>
// CHECK: attn.feature_map %{{.*}} trigonometric logs(%{{.*}} : tensor<?x?x?xf32>) subtract(%{{.*}} : tensor<?x?x?xf32>) : tensor<?x?x?x32xf32> -> tensor<?x?x?x64xf32>
// CHECK: attn.linear_attention %{{.*}}, %{{.*}}, %{{.*}} feature(relu) normalize causal state(%{{.*}}, %{{.*}} : tensor<?x?x64x64xf32>, tensor<?x?x64xf32>) :
// GPU: func.func private @normalized.s2
// GPU: func.func private @normalized.s3
// GPU-LABEL: func.func @normalized(
// GPU: %[[W:.*]]:2 = attn_tile.step @normalized.s2
// GPU: attn_tile.step @normalized.s3({{.*}}%[[W]]#0
func.func @normalized(%x: !t, %p: tensor<?x32x64xf32>, %c: !w, %v: !t, %s0: !s, %z0: !z) -> (!t, !s, !z) {
  %u, %m = attn.random_features %x, %p trigonometric : !t, tensor<?x32x64xf32> -> tensor<?x?x?x32xf32>, !w
  %f = attn.feature_map %u trigonometric logs(%m : !w) subtract(%c : !w) : tensor<?x?x?x32xf32> -> !t
  %o, %s, %z = attn.linear_attention %f, %f, %v feature(relu) normalize causal state(%s0, %z0 : !s, !z) : !t, !t, !t -> !t, !s, !z
  return %o, %s, %z : !t, !s, !z
}
