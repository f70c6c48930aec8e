// RUN: attn-opt %s | attn-opt | FileCheck %s

!t = tensor<?x?x?x64xf32>
!z = tensor<?x?x?xf32>
!i = tensor<?x?x?xi32>

// CHECK-LABEL: func.func @routing
// CHECK: attn.normalize_rows %{{.*}} eps(1.000000e-05) centered : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
// CHECK: attn.normalize_rows %{{.*}} eps(0.000000e+00) : tensor
// CHECK: attn.row_scores %{{.*}}, %{{.*}} : tensor<?x?x?x64xf32>, tensor<?x8x64xf32> -> tensor<?x?x?xf32>
// CHECK: attn.top_rows %{{.*}} count(16) : tensor<?x?x?xf32> -> tensor<?x?x16xi32>
// CHECK: attn.invert_rows %{{.*}} like %{{.*}}, %{{.*}} : tensor<?x?x16xi32>, tensor<?x?x?x64xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
// CHECK: attn.scatter_mean %{{.*}}[%{{.*}}] groups(8) eps(1.000000e-02) : tensor<?x?x?x64xf32>, tensor<?x?x?xi32> -> tensor<?x?x?x64xf32>
// CHECK: attn.scatter_rows %{{.*}}[%{{.*}}] into %{{.*}} : tensor<?x?x?x64xf32>, tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
func.func @routing(%x: !t, %c: tensor<?x8x64xf32>, %z: !z) -> (!t, !t) {
  %n = attn.normalize_rows %x eps(1.0e-5) centered : !t -> !t
  %u = attn.normalize_rows %n eps(0.0) : !t -> !t
  %s = attn.row_scores %u, %c : !t, tensor<?x8x64xf32> -> !z
  %r = attn.top_rows %s count(16) : !z -> tensor<?x?x16xi32>
  %g = attn.gather_rows %x[%r] : !t, tensor<?x?x16xi32> -> !t
  %p = attn.invert_rows %r like %x, %z : tensor<?x?x16xi32>, !t, !z -> !i
  %o = attn.scatter_mean %g[%p] groups(8) eps(0.01) : !t, !i -> !t
  %y = attn.scatter_rows %g[%p] into %o : !t, !i, !t -> !t
  return %o, %y : !t, !t
}

!s = tensor<?x?x?x?xf32>

// CHECK-LABEL: func.func @blocks
// CHECK: attn.block_means %{{.*}} block(64) : tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
// CHECK: attn.top_blocks %{{.*}} of %{{.*}}, %{{.*}} count(16) queries(1) block(64) first(1) local(2) causal : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x?xi32>
// CHECK: attn.top_blocks %{{.*}} of %{{.*}}, %{{.*}} count(2) queries(8) block(64) : tensor
func.func @blocks(%x: !t, %s: !s) -> (!t, tensor<?x?x?x?xi32>, tensor<?x?x?x?xi64>) {
  %m = attn.block_means %x block(64) : !t -> !t
  %a = attn.top_blocks %s of %x, %x count(16) queries(1) block(64) first(1) local(2) causal : !s, !t, !t -> tensor<?x?x?x?xi32>
  %b = attn.top_blocks %s of %x, %x count(2) queries(8) block(64) : !s, !t, !t -> tensor<?x?x?x?xi64>
  return %m, %a, %b : !t, tensor<?x?x?x?xi32>, tensor<?x?x?x?xi64>
}
