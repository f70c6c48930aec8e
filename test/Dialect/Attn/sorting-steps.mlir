// RUN: attn-opt %s | attn-opt | FileCheck %s

!t = tensor<?x?x?x64xf32>
!i = tensor<?x?x?xi32>
!p = tensor<?x?x?x?xf32>

// CHECK-LABEL: func.func @hash
// CHECK: attn.lsh_buckets %{{.*}}, %{{.*}} : tensor<?x?x?x64xf32>, tensor<?x4x64x8xf32> -> tensor<?x?x?xi32>
// CHECK: attn.sort %{{.*}} buckets(16) like %{{.*}} : tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x16xi32>
// CHECK: attn.sort %{{.*}} buckets(16) : tensor<?x?x?xi32> -> tensor<?x?x?xi32>, tensor<?x?x?xi32>, tensor<?x?x?xi32>
// CHECK: attn.look_back %{{.*}} chunk(32) groups(4) : tensor<?x?x?xi32> -> tensor<?x?x?xi32>
func.func @hash(%x: !t, %w: tensor<?x4x64x8xf32>) -> (!i, !i) {
  %b = attn.lsh_buckets %x, %w : !t, tensor<?x4x64x8xf32> -> !i
  %o, %p, %s = attn.sort %b buckets(16) like %x : !i, !t -> !i, !i, tensor<?x?x16xi32>
  %o2, %p2, %s2 = attn.sort %b buckets(16) : !i -> !i, !i, !i
  %k = attn.look_back %o chunk(32) groups(4) : !i -> !i
  return %k, %o2 : !i, !i
}

// CHECK-LABEL: func.func @soft
// CHECK: attn.sinkhorn %{{.*}} iterations(8) : tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
// CHECK: attn.sinkhorn %{{.*}} iterations(1) causal : tensor
// CHECK: attn.mix_blocks %{{.*}}, %{{.*}} block(16) : tensor<?x?x?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
func.func @soft(%r: !p, %x: !t) -> !t {
  %a = attn.sinkhorn %r iterations(8) : !p -> !p
  %b = attn.sinkhorn %a iterations(1) causal : !p -> !p
  %y = attn.mix_blocks %b, %x block(16) : !p, !t -> !t
  return %y : !t
}
