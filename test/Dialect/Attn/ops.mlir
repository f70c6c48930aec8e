// RUN: attn-opt %s --verify-roundtrip | FileCheck %s
// RUN: attn-opt %s --mlir-print-op-generic | attn-opt | FileCheck %s

// Every op and clause of the dialect as written in full; sugar.mlir has the short forms.

!t = tensor<?x?x?x64xf32>

// All clauses, both regions, both results.
// CHECK-LABEL: func @clauses
func.func @clauses(%q: !t, %k: !t, %v: !t, %slope: tensor<?xf32>) -> (!t, tensor<?x?x?xf32>) {
  // CHECK: attn.attention %{{.*}} scale(1.250000e-01) align(bottom_right) score {
  // CHECK-NEXT: ^bb0(%[[S:.*]]: f32, %{{.*}}: index, %[[H:.*]]: index, %{{.*}}: index, %{{.*}}: index):
  // CHECK-NEXT: tensor.extract %{{.*}}[%[[H]]]
  // CHECK: attn.yield %{{.*}} : f32
  // CHECK-NEXT: } mask {
  // CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK-NEXT: arith.cmpi sle, %[[J]], %[[I]] : index
  // CHECK-NEXT: attn.yield %{{.*}} : i1
  // CHECK-NEXT: } schedule(#attn.schedule<query_tile = 16, reindex = residue, reindex_size = 4>) {note = "kept"}
  // CHECK-SAME: -> tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
  %o, %lse = attn.attention %q, %k, %v scale(0.125) align(bottom_right) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %slope[%h] : tensor<?xf32>
    %d = arith.subi %j, %i : index
    %di = arith.index_cast %d : index to i64
    %df = arith.sitofp %di : i64 to f32
    %bias = arith.mulf %m, %df : f32
    %r = arith.addf %s, %bias : f32
    attn.yield %r : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %past = arith.cmpi sle, %j, %i : index
    attn.yield %past : i1
  } schedule(#attn.schedule<query_tile = 16, key_tile = 128, reindex = residue, reindex_size = 4>) {note = "kept"} : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %o, %lse : !t, tensor<?x?x?xf32>
}

// Two segments in one softmax.
// CHECK-LABEL: func @join
func.func @join(%q: !t, %k: !t, %v: !t, %km: !t, %vm: !t) -> !t {
  // CHECK: %[[M:.*]]:2 = attn.attention
  %m, %z = attn.attention %q, %km, %vm : !t, !t, !t -> !t, tensor<?x?x?xf32>
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} join(%[[M]]#0, %[[M]]#1 : tensor<?x?x?x64xf32>, tensor<?x?x?xf32>) mask(causal) : tensor
  %o = attn.attention %q, %k, %v mask(causal) join(%m, %z : !t, tensor<?x?x?xf32>) : !t, !t, !t -> !t
  return %o : !t
}

// Queries and keys by number.
// CHECK-LABEL: func @rows
func.func @rows(%q: !t, %k: !t, %v: !t, %i: tensor<?x?x?xi32>, %j: tensor<?xi64>) -> !t {
  // CHECK: attn.attention %{{.*}}, %{{.*}}, %{{.*}} query_rows(%{{.*}} : tensor<?x?x?xi32>) key_rows(%{{.*}} : tensor<?xi64>) scale(1.000000e+00) mask(causal) : tensor
  %o = attn.attention %q, %k, %v scale(1.0) mask(causal) key_rows(%j : tensor<?xi64>) query_rows(%i : tensor<?x?x?xi32>) : !t, !t, !t -> !t
  return %o : !t
}

// A sink, and weights that are not those of a softmax.
// CHECK-LABEL: func @normalizers
func.func @normalizers(%q: !t, %k: !t, %v: !t, %s: tensor<?xf32>) -> (!t, !t, !t) {
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} sink(%{{.*}} : tensor<?xf32>) mask(causal) : tensor
  %a = attn.attention %q, %k, %v normalizer(softmax) mask(causal) sink(%s : tensor<?xf32>) : !t, !t, !t -> !t
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} scale(5.000000e-01) normalizer(sigmoid) : tensor
  %b = attn.attention %q, %k, %v normalizer(sigmoid) scale(0.5) : !t, !t, !t -> !t
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} normalizer(none) mask(causal) : tensor
  %c = attn.attention %q, %k, %v normalizer(none) mask(causal) : !t, !t, !t -> !t
  return %a, %b, %c : !t, !t, !t
}

// Products with distances, with and without a bias.
// CHECK-LABEL: func @relative
func.func @relative(%q: !t, %k: !t, %v: !t, %r: tensor<?x?x64xf32>, %w: tensor<?x64xf32>) -> (!t, !t) {
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} relative(%{{.*}}, %{{.*}} : tensor<?x?x64xf32>, tensor<?x64xf32>) mask(causal) : tensor
  %a = attn.attention %q, %k, %v mask(causal) relative(%r, %w : tensor<?x?x64xf32>, tensor<?x64xf32>) : !t, !t, !t -> !t
  // CHECK-NEXT: attn.attention %{{.*}}, %{{.*}}, %{{.*}} relative(%{{.*}} : tensor<?x?x64xf32>) : tensor
  %b = attn.attention %q, %k, %v relative(%r : tensor<?x?x64xf32>) : !t, !t, !t -> !t
  return %a, %b : !t, !t
}

// Scores in place of products, of every batch or of all.
// CHECK-LABEL: func @scores
func.func @scores(%s: tensor<?x?x?x?xf16>, %r: tensor<?x?x?xf32>, %v: !t) -> (!t, !t) {
  // CHECK-NEXT: attn.attention scores(%{{.*}}), %{{.*}} scale(2.000000e+00) mask(causal) : tensor<?x?x?x?xf16>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  %a = attn.attention scores(%s), %v mask(causal) scale(2.0) : tensor<?x?x?x?xf16>, !t -> !t
  // CHECK-NEXT: attn.attention scores(%{{.*}}), %{{.*}} : tensor<?x?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  %b = attn.attention scores(%r), %v : tensor<?x?x?xf32>, !t -> !t
  return %a, %b : !t, !t
}

// A mask that counts.
// CHECK-LABEL: func @counted
func.func @counted(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: mask {
  // CHECK-NEXT: ^bb0(%{{.*}}: index, %{{.*}}: index, %[[I:.*]]: index, %[[J:.*]]: index):
  // CHECK-NEXT: %[[A:.*]] = arith.cmpi sle, %[[J]], %[[I]] : index
  // CHECK-NEXT: attn.yield %[[A]], %[[A]] : i1, i1
  %a = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.cmpi sle, %j, %i : index
    attn.yield %x, %x : i1, i1
  } : !t, !t, !t -> !t
  return %a : !t
}

// No clause; grouped heads; value_dim differs from head_dim; a negative scale that is not f64.
// CHECK-LABEL: func @plain
func.func @plain(%q: tensor<2x8x100x64xbf16>, %k: tensor<2x2x300x64xbf16>, %v: tensor<2x2x300x32xbf16>) -> tensor<2x8x100x32xbf16> {
  // CHECK-NEXT: attn.attention %{{[^:]*}} scale(-5.000000e-01 : f32) schedule(#attn.schedule<>) : tensor<2x8x100x64xbf16>
  %o = attn.attention %q, %k, %v scale(-0.5 : f32) align(top_left) schedule(#attn.schedule<>) : tensor<2x8x100x64xbf16>, tensor<2x2x300x64xbf16>, tensor<2x2x300x32xbf16> -> tensor<2x8x100x32xbf16>
  return %o : tensor<2x8x100x32xbf16>
}

// Predicates over values other than the positions print as a region.
// CHECK-LABEL: func @predicates
func.func @predicates(%q: !t, %k: !t, %v: !t, %int: tensor<?x?xi32>, %len: tensor<?xi64>, %one: tensor<index>, %table: tensor<?x?x?x?xi1>) -> !t {
  // CHECK: } mask {
  // CHECK-NEXT: ^bb0(%[[B:.*]]: index, %[[H:.*]]: index, %[[I:.*]]: index, %[[J:.*]]: index):
  %o = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    attn.yield %s : f32
  } mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // CHECK-NEXT: attn.causal %[[I]], %[[J]]
    %0 = attn.causal %i, %j
    // CHECK-NEXT: attn.window %[[I]], %[[J]] {left = 255 : i64}
    %1 = attn.window %i, %j {left = 255}
    // CHECK-NEXT: attn.dilated_window %[[I]], %[[J]] {dilation = 2 : i64, left = 3 : i64}
    %2 = attn.dilated_window %i, %j {left = 3, right = 0, dilation = 2}
    // CHECK-NEXT: attn.stride %[[I]], %[[J]] {size = 128 : i64}
    %3 = attn.stride %i, %j {size = 128}
    // CHECK-NEXT: attn.same_block %[[I]], %[[J]] {size = 128 : i64}
    %4 = attn.same_block %i, %j {size = 128}
    // CHECK-NEXT: attn.chunk_lookback %[[I]], %[[J]] {before = 1 : i64, size = 64 : i64}
    %5 = attn.chunk_lookback %i, %j {size = 64, before = 1}
    // CHECK-NEXT: attn.local_blocks %[[I]], %[[J]] {before = 256 : i64, size = 256 : i64}
    %6 = attn.local_blocks %i, %j {size = 256, before = 256}
    // CHECK-NEXT: attn.last_columns %[[J]] {block = 128 : i64, count = 32 : i64}
    %7 = attn.last_columns %j {block = 128, count = 32}
    // CHECK-NEXT: attn.same_row %[[I]], %[[J]] {width = 64 : i64}
    %8 = attn.same_row %i, %j {width = 64}
    // CHECK-NEXT: attn.same_column %[[I]], %[[J]] {width = 64 : i64}
    %9 = attn.same_column %i, %j {width = 64}
    // CHECK-NEXT: attn.local_blocks_2d %[[I]], %[[J]] {block = array<i64: 8, 8>, flange = array<i64: 4, 0>, width = 64 : i64}
    %10 = attn.local_blocks_2d %i, %j {width = 64, block = array<i64: 8, 8>, flange = array<i64: 4, 0>}
    // CHECK-NEXT: attn.neighborhood %[[I]], %[[J]] {size = 7 : i64}
    %11 = attn.neighborhood %i, %j {size = 7}
    // CHECK-NEXT: attn.neighborhood_2d %[[I]], %[[J]] {size = array<i64: 3, 5>, width = 64 : i64}
    %12 = attn.neighborhood_2d %i, %j {width = 64, size = array<i64: 3, 5>}
    // CHECK-NEXT: attn.prefix %[[J]] {length = 10 : i64}
    %13 = attn.prefix %j {length = 10}
    // CHECK-NEXT: attn.key_length %[[B]], %[[J]], %{{.*}} : tensor<?xi64>
    %14 = attn.key_length %b, %j, %len : tensor<?xi64>
    // CHECK-NEXT: attn.key_length %[[B]], %[[J]], %{{.*}} : tensor<index>
    %15 = attn.key_length %b, %j, %one : tensor<index>
    // CHECK-NEXT: attn.global %[[I]], %[[J]] {count = 4 : i64}
    %16 = attn.global %i, %j {count = 4}
    // CHECK-NEXT: attn.global %[[I]], %[[J]] {tokens = array<i64: 0, 9>}
    %17 = attn.global %i, %j {tokens = array<i64: 0, 9>}
    // CHECK-NEXT: attn.same_document %[[B]], %[[I]], %[[J]], %{{.*}} : tensor<?x?xi32>
    %18 = attn.same_document %b, %i, %j, %int : tensor<?x?xi32>
    // CHECK-NEXT: attn.block_mask %[[B]], %[[H]], %[[I]], %[[J]], %{{.*}} {size = 64 : i64} : tensor<?x?x?x?xi1>
    %19 = attn.block_mask %b, %h, %i, %j, %table {size = 64} : tensor<?x?x?x?xi1>
    // CHECK-NEXT: attn.contains %{{.*}}[%[[B]]], %[[J]] : tensor<?x?xi32>
    %20 = attn.contains %int[%b], %j : tensor<?x?xi32>
    // CHECK-NEXT: attn.contains %{{.*}}[], %[[J]] : tensor<?xi64>
    %21 = attn.contains %len[], %j : tensor<?xi64>
    // CHECK-NEXT: attn.num_keys
    %22 = attn.num_keys
    // CHECK-NEXT: attn.num_queries
    %23 = attn.num_queries
    // CHECK-NEXT: attn.heads %[[H]] {index = 1 : i64, period = 2 : i64}
    %24 = attn.heads %h {period = 2, index = 1}
    %25 = arith.cmpi slt, %22, %23 : index
    attn.yield %25 : i1
  } : !t, !t, !t -> !t
  return %o : !t
}

// What a region may hold besides: tensor.dim, math and index ops, constants and tensor constants from inside and outside.
// CHECK-LABEL: func @region_ops
func.func @region_ops(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK: dense<[1, 0]> : tensor<2xi8>
  %outside = arith.constant dense<[1, 0]> : tensor<2xi8>
  %two = arith.constant 2 : index
  %o = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %inside = arith.constant dense<[0, 1]> : tensor<2xi8>
    // CHECK: tensor.dim
    %n = tensor.dim %k, %two : !t
    %half = index.divs %n, %two
    %parity = arith.remui %j, %two : index
    %x = tensor.extract %outside[%parity] : tensor<2xi8>
    %y = tensor.extract %inside[%parity] : tensor<2xi8>
    %z = math.absi %x : i8
    %a = arith.cmpi eq, %z, %y : i8
    %c = index.cmp slt(%j, %half)
    %keep = arith.ori %a, %c : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %o : !t
}
