// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -attn-tile-steps=lanes=8 | FileCheck %s --check-prefix=TILE

!t = tensor<?x?x?x64xf32>
!w = tensor<?x?x?xf32>
!s = tensor<?x?x64x64xf32>

// CHECK-LABEL: func.func @linear
// CHECK: attn.feature_map %{{.*}} elu_plus_one subtract(%{{.*}} : tensor<?x?x?xf32>) plus(1.000000e-03) : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
// CHECK: attn.linear_weights %{{.*}}, %{{.*}} causal decay(%{{.*}} : tensor<?xf32>) state(%{{.*}} : tensor<?x?x?xf32>) :
// CHECK: attn.linear_attention %{{.*}}, %{{.*}}, %{{.*}} scale(1.250000e-01) causal divide(%{{.*}} : tensor<?x?x?xf32>) decay(%{{.*}} : tensor<?xf32>) state(%{{.*}} : tensor<?x?x64x64xf32>) :

// Two vectors of columns and four tokens at a time: a row of the state is loaded and stored once.
// TILE: func.func private @linear.s2
// TILE: iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>)
// TILE-COUNT-16: math.fma {{.*}} vector<8xf32>
// TILE-COUNT-2: vector.store
// TILE: scf.yield
// TILE-LABEL: func.func @linear(
// TILE: attn_tile.step @linear.s2({{.*}}) units([6, 0, 1, 6, 1, 1, 6, 3, 16])
func.func @linear(%q: !t, %c: !w, %v: !t, %g: tensor<?xf32>, %z0: !w, %s0: !s) -> (!t, !w, !s) {
  %f = attn.feature_map %q elu_plus_one subtract(%c : !w) plus(1.0e-3) : !t -> !t
  %w, %z = attn.linear_weights %f, %f causal decay(%g : tensor<?xf32>) state(%z0 : !w) : !t, !t -> !w, !w
  %o, %s = attn.linear_attention %f, %f, %v scale(0.125) causal divide(%w : !w) decay(%g : tensor<?xf32>) state(%s0 : !s) : !t, !t, !t -> !t, !s
  return %o, %z, %s : !t, !w, !s
}
