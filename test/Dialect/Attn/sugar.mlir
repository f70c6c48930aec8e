// RUN: attn-opt %s --verify-roundtrip | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=REGION

!t = tensor<?x?x?x64xf32>

// The example of the README.
// CHECK-LABEL: func @window
func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-NEXT: attn.attention %{{[^:]*}} mask(causal and window(left = 255)) :
  // REGION: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // REGION-NEXT: %[[C:.*]] = "attn.causal"(%[[I]], %[[J]]) : (index, index) -> i1
  // REGION-NEXT: %[[W:.*]] = "attn.window"(%[[I]], %[[J]]) <{left = 255 : i64}> : (index, index) -> i1
  // REGION-NEXT: %[[K:.*]] = "arith.andi"(%[[C]], %[[W]]) : (i1, i1) -> i1
  // REGION-NEXT: "attn.yield"(%[[K]]) : (i1) -> ()
  %o = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
  return %o : !t
}

// Every predicate without captured tensors, parameters by place and by key.
// CHECK-LABEL: func @all
func.func @all(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  // CHECK-NEXT: mask(causal or window(left = 1, right = 2) or window(right = 2) or dilated_window(left = 3, right = 1, dilation = 2) or
  // CHECK-SAME: stride(size = 128) or same_block(size = 128) or chunk_lookback(size = 64, before = 1) or
  // CHECK-SAME: local_blocks(size = 256, before = 256, after = 0) or last_columns(block = 128, count = 32)) :
  %0 = attn.attention %q, %k, %v mask(causal or window(1, 2) or window(right = 2) or dilated_window(3, 1, 2)
    or stride(128) or same_block(128) or chunk_lookback(64, before = 1) or local_blocks(size = 256, before = 256)
    or last_columns(128, 32)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(same_row(width = 64) or same_column(width = 64) or local_blocks_2d(width = 64, block = [8, 8], flange = [4, 0]) or
  // CHECK-SAME: neighborhood(size = 7) or neighborhood_2d(width = 64, size = [3, 5]) or prefix(length = 10) or
  // CHECK-SAME: global(count = 4) or global(tokens = [0, 9]) or heads(period = 2, index = 1)) :
  %1 = attn.attention %q, %k, %v mask(same_row(width = 64) or same_column(64) or local_blocks_2d(64, [8, 8], [4, 0])
    or neighborhood(7) or neighborhood_2d(64, [3, 5]) or prefix(10) or global(4) or global(tokens = [0, 9]) or heads(2, 1))
    : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}

// Captured tensors carry their types.
// CHECK-LABEL: func @captured(
// CHECK-SAME: %[[Q:[a-z0-9]*]]: {{[^%]*}}%[[K:[a-z0-9]*]]: {{[^%]*}}%[[V:[a-z0-9]*]]: {{[^%]*}}%[[DOC:[a-z0-9]*]]: {{[^%]*}}%[[LEN:[a-z0-9]*]]: {{[^%]*}}%[[BITS:[a-z0-9]*]]: tensor<?x?x?xi1>
func.func @captured(%q: !t, %k: !t, %v: !t, %doc: tensor<?x?xi32>, %len: tensor<?xi64>, %bits: tensor<?x?x?xi1>) -> !t {
  // CHECK-NEXT: mask(same_document(%[[DOC]] : tensor<?x?xi32>) and key_length(%[[LEN]] : tensor<?xi64>) and
  // CHECK-SAME: block_mask(size = 64, %[[BITS]] : tensor<?x?x?xi1>)) :
  %o = attn.attention %q, %k, %v mask(same_document(%doc : tensor<?x?xi32>) and key_length(%len : tensor<?xi64>)
    and block_mask(%bits : tensor<?x?x?xi1>, size = 64)) : !t, !t, !t -> !t
  return %o : !t
}

// Index sets: by column, by row, and by block in a list of each query block; ranks with and without batch and head.
// CHECK-LABEL: func @sets
// REGION-LABEL: sym_name = "sets"
func.func @sets(%q: !t, %k: !t, %v: !t, %r1: tensor<?xi32>, %r2: tensor<?x?xi32>, %r3: tensor<?x?x?xi64>, %r4: tensor<?x?x?x?xindex>) -> (!t, !t) {
  // CHECK-NEXT: mask(column_in(%{{.*}} : tensor<?xi32>) or column_in(%{{.*}} : tensor<?x?xi32>) or row_in(%{{.*}} : tensor<?x?x?xi64>)) :
  // REGION: ^bb0(%[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // REGION-NEXT: "attn.contains"(%{{[a-z0-9]*}}, %[[J]])
  // REGION-NEXT: "attn.contains"(%{{[a-z0-9]*}}, %[[B]], %[[J]])
  // REGION-NEXT: arith.ori
  // REGION-NEXT: "attn.contains"(%{{[a-z0-9]*}}, %[[B]], %[[H]], %[[I]])
  %0 = attn.attention %q, %k, %v mask(column_in(%r1 : tensor<?xi32>) or column_in(%r2 : tensor<?x?xi32>)
    or row_in(%r3 : tensor<?x?x?xi64>)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(blocked(64, in_table(%{{.*}} : tensor<?x?xi32>) or in_table(%{{.*}} : tensor<?x?x?xi64>) or
  // CHECK-SAME: in_table(%{{.*}} : tensor<?x?x?x?xindex>))) :
  // REGION: ^bb0(%[[B1:.*]]: index, %[[H1:.*]]: index, %[[I1:.*]]: index, %[[J1:.*]]: index):
  // REGION: %[[IB:.*]] = "arith.floordivsi"(%[[I1]],
  // REGION: %[[JB:.*]] = "arith.floordivsi"(%[[J1]],
  // REGION-NEXT: "attn.contains"(%{{[a-z0-9]*}}, %[[IB]], %[[JB]])
  // REGION-NEXT: "attn.contains"(%{{[a-z0-9]*}}, %[[H1]], %[[IB]], %[[JB]])
  // REGION: "attn.contains"(%{{[a-z0-9]*}}, %[[B1]], %[[H1]], %[[IB]], %[[JB]])
  %1 = attn.attention %q, %k, %v mask(blocked(64, in_table(%r2 : tensor<?x?xi32>) or in_table(%r3 : tensor<?x?x?xi64>)
    or in_table(%r4 : tensor<?x?x?x?xindex>))) : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}

// Precedence and parentheses: not, and, or.
// CHECK-LABEL: func @precedence
func.func @precedence(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t, !t) {
  // CHECK-NEXT: mask(causal and stride(size = 2) or prefix(length = 3) and not causal) :
  %0 = attn.attention %q, %k, %v mask((causal and stride(2)) or (prefix(3) and (not (causal)))) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal and (stride(size = 2) or prefix(length = 3))) :
  %1 = attn.attention %q, %k, %v mask(causal and (stride(2) or prefix(3))) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal and (stride(size = 2) and not (prefix(length = 3) and causal))) :
  %2 = attn.attention %q, %k, %v mask(causal() and (stride(2) and not (prefix(3) and causal))) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal or (not not stride(size = 2) or prefix(length = 3))) :
  %3 = attn.attention %q, %k, %v mask(causal or (not not stride(2) or prefix(3))) : !t, !t, !t -> !t
  return %0, %1, %2, %3 : !t, !t, !t, !t
}

// Block numbers next to positions; two sizes; a common scope is written once.
// CHECK-LABEL: func @blocked
func.func @blocked(%q: !t, %k: !t, %v: !t, %random: tensor<?x?x?xi32>) -> (!t, !t) {
  // CHECK-NEXT: mask(blocked(64, window(left = 1, right = 1) or global(count = 1) or in_table(%{{.*}} : tensor<?x?x?xi32>)) and causal) :
  %0 = attn.attention %q, %k, %v mask(blocked(64, window(left = 1, right = 1) or global(1) or in_table(%random : tensor<?x?x?xi32>))
    and causal) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(blocked(4, not causal) and (blocked(16, prefix(length = 3)) or blocked(4, prefix(length = 9)))) :
  %1 = attn.attention %q, %k, %v mask(blocked(4, not causal) and (blocked(16, prefix(3)) or blocked(4, prefix(9)))) : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}

// A region that says the same prints in short form; one that says more does not.
// CHECK-LABEL: func @region
func.func @region(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  // CHECK-NEXT: mask(blocked(8, causal)) :
  %0 = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c8 = arith.constant 8 : index
    %ib = arith.floordivsi %i, %c8 : index
    %c8_0 = arith.constant 8 : index
    %jb = arith.floordivsi %j, %c8_0 : index
    %keep = attn.causal %ib, %jb
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  // CHECK-NEXT: mask {
  // CHECK: attn.causal %{{.*}}, %{{.*}} {note}
  %1 = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %keep = attn.causal %i, %j {note}
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}

// Clauses come in any order and print in one.
// CHECK-LABEL: func @order
func.func @order(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-NEXT: scale(1.000000e-01) align(bottom_right) mask(causal) schedule(#attn.schedule<tasks = 8>) :
  %0 = attn.attention %q, %k, %v schedule(#attn.schedule<tasks = 8>) mask(causal) align(bottom_right) scale(0.1) : !t, !t, !t -> !t
  return %0 : !t
}

// What is counted is what the outermost `or`s join.
// CHECK-LABEL: func @counted
func.func @counted(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  // CHECK-NEXT: mask counted(causal and window(left = 9) or not stride(size = 4) or (global(count = 1) or prefix(length = 3)) or
  // CHECK-SAME: blocked(16, window(left = 1) or causal)) :
  %0 = attn.attention %q, %k, %v mask counted(causal and window(left = 9) or not stride(4) or (global(count = 1) or prefix(3)) or
    blocked(16, window(left = 1) or causal)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal) :
  %1 = attn.attention %q, %k, %v mask counted(causal) : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}
