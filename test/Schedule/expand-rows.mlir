// Attention over lists of rows is attention over gathered rows.

// RUN: attn-opt %s --attn-expand-rows | FileCheck %s

!t = tensor<?x8x?x64xf32>

// A list for each two of the 8 query heads: heads share keys, positions are what the lists say, and what they do not name is masked.
// CHECK-LABEL: @keys
// CHECK: %[[K:.*]] = attn.gather_rows %arg1[%arg2] : tensor<?x2x?x64xf32>, tensor<?x4x?xi32> -> tensor<?x4x?x64xf32>
// CHECK-NEXT: attn.attention %arg0, %[[K]], %[[K]] score {
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %{{.*}}: index):
// CHECK: %[[J:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: arith.subi %[[I]], %[[J]] : index
// CHECK: mask {
// CHECK: ^bb0(%[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[U:.*]]: index):
// CHECK: %[[SHARED:.*]] = arith.divsi %c8{{.*}}, %c4{{.*}} : index
// CHECK: %[[LEAST:.*]] = arith.maxsi %[[SHARED]], %c1{{.*}} : index
// CHECK: %[[G:.*]] = arith.divsi %[[H]], %[[LEAST]] : index
// CHECK: %[[ENTRY:.*]] = tensor.extract %arg2[%[[B]], %[[G]], %[[U]]]
// CHECK: %[[J:.*]] = arith.index_cast %[[ENTRY]] : i32 to index
// CHECK: %[[PAST:.*]] = attn.causal %[[I]], %[[J]]
// CHECK: %[[M:.*]] = tensor.dim %arg1, %c2
// CHECK: arith.cmpi slt, %[[J]], %[[M]] : index
// CHECK: arith.cmpi sge, %[[J]], %c0
func.func @keys(%q: !t, %k: tensor<?x2x?x64xf32>, %r: tensor<?x4x?xi32>) -> !t {
  %o = attn.attention %q, %k, %k key_rows(%r : tensor<?x4x?xi32>) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %d = arith.subi %i, %j : index
    %n = arith.index_cast %d : index to i32
    %x = arith.sitofp %n : i32 to f32
    attn.yield %x : f32
  } mask(causal) : !t, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> !t
  return %o : !t
}

// All batches and heads have one list. A predicate that asks how many keys there are asks the keys, not the list.
// CHECK-LABEL: @neighbors
// CHECK: attn.gather_rows %arg0[%arg1] : tensor<?x8x?x64xf32>, tensor<5xi64> -> tensor<?x8x5x64xf32>
// CHECK: mask {
// CHECK: tensor.extract %arg1[%{{.*}}] : tensor<5xi64>
// CHECK-NOT: attn.num_keys
// CHECK: tensor.dim %arg0, %c2
// CHECK-NOT: attn.neighborhood
// CHECK: attn.same_block
// CHECK: attn.yield
func.func @neighbors(%q: !t, %r: tensor<5xi64>) -> tensor<?x8x5x64xf32> {
  %o = attn.attention %q, %q, %q query_rows(%r : tensor<5xi64>) mask(neighborhood(size = 9) and same_block(size = 16))
    : !t, !t, !t -> tensor<?x8x5x64xf32>
  return %o : tensor<?x8x5x64xf32>
}
