// RUN: attn-opt %s --attn-tile-attention | FileCheck %s --implicit-check-not=attn.attention

// Without a mask there is no classify function and no plan to read: the keys are one loop.
!t = tensor<?x?x?x64xf32>
#s = #attn.schedule<query_tile = 48, key_tile = 128, tail_tile = 16, granule = 16, group = 8, span = 2048, split = 1024>

// CHECK-LABEL: func.func private @dense.k0.task(
// CHECK:         %[[SCALE:.+]] = arith.constant 0.180336878 : f32
// CHECK:         scf.for
// CHECK:           attn_tile.begin {{.*}} scale(%[[SCALE]])
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-NOT:         attn_tile.mask
// CHECK:               attn_tile.softmax
// CHECK-NOT:         skip_zero
// CHECK:         attn_tile.check
// CHECK:           attn_tile.restart
// CHECK:               attn_tile.softmax exact
// CHECK:         attn_tile.finish_partial
// CHECK:         attn_tile.finish
// CHECK:       func.func private @dense.k0.tail(
// CHECK:         -> <16, 64, 64, log2>
// CHECK:       attn_tile.kernel @dense.k0 task(@dense.k0.task) tail(@dense.k0.tail) tables([])
// CHECK-SAME:    has_mask = 0
// CHECK-SAME:    natural_partials = 0
// CHECK-LABEL: func.func @dense(
// CHECK:         attn_tile.launch @dense.k0(%arg0, %arg1, %arg2)
func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v schedule(#s) : !t, !t, !t -> !t
  return %o : !t
}

// Full runs have no masking work; partial runs mask, and a masked key's value cannot reach the output.
// CHECK-LABEL: func.func @window.k0.classify(
// CHECK-LABEL: func.func private @window.k0.task(
// CHECK:         scf.if
// CHECK-NOT:       attn_tile.mask
// CHECK:           attn_tile.accumulate
// CHECK-NOT:       skip_zero
// CHECK:         } else {
// CHECK:           attn_tile.mask
// CHECK:             arith.cmpi sle
// CHECK:           attn_tile.accumulate {{.*}} skip_zero
// CHECK:       attn_tile.kernel @window.k0 {{.*}}classify(@window.k0.classify)
// CHECK-SAME:    depends_batch = 0 : i64, depends_head = 0
// CHECK-SAME:    has_mask = 1
func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal and window(left = 255)) schedule(#s) : !t, !t, !t -> !t
  return %o : !t
}

// A strided mask is dense on the rows of one residue: what is left to mask is the causal part, at the original positions.
// CHECK-LABEL: func.func private @strided.k0.task(
// CHECK:         memref.subview {{.*}} [1, 1, 128, 1]
// CHECK:         attn_tile.mask {{.*}} step 128
// CHECK-NOT:       arith.rem
// CHECK:           attn_tile.yield
// CHECK:       attn_tile.kernel @strided.k0
// CHECK-SAME:    reindex = 1 : i64, reindex_size = 128
func.func @strided(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal and stride(128))
      schedule(#attn.schedule<reindex = residue, reindex_size = 128>) : !t, !t, !t -> !t
  return %o : !t
}

// A block-diagonal mask has nothing left to mask inside its blocks.
// CHECK-LABEL: func.func private @blocks.k0.task(
// CHECK-NOT:     attn_tile.mask
// CHECK:       attn_tile.kernel @blocks.k0
// CHECK-SAME:    has_mask = 0
// CHECK-SAME:    reindex = 2 : i64, reindex_size = 64
func.func @blocks(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(same_block(64))
      schedule(#attn.schedule<query_tile = 64, reindex = block, reindex_size = 64>) : !t, !t, !t -> !t
  return %o : !t
}

// Captured tensors become operands of the kernel, in the order of first use; the mask's get a table for the planner.
// A score region makes the unit natural, and log2 e stays out of the scale.
// CHECK-LABEL: func.func private @captured.k0.task(
// CHECK:         %[[SCALE:.+]] = arith.constant 1.250000e-01 : f32
// CHECK:         attn_tile.begin {{.*}} scale(%[[SCALE]]) : <48, 64, 64, natural>
// CHECK:         attn_tile.modify {{.*}} captured(%{{.*}} : memref<?xf32,
// CHECK:           memref.load
// CHECK:         attn_tile.mask {{.*}} captured(%{{.*}} : memref<?x?xi32,
// CHECK:           memref.load
// CHECK:           memref.load
// CHECK:       attn_tile.kernel @captured.k0 {{.*}} tables([0, 0, 1])
// CHECK-SAME:    depends_batch = 1
// CHECK-SAME:    natural_partials = 1
// CHECK-LABEL: func.func @captured(
// CHECK:         attn_tile.launch @captured.k0(%arg0, %arg1, %arg2, %arg3, %arg4)
func.func @captured(%q: !t, %k: !t, %v: !t, %doc: tensor<?x?xi32>, %slope: tensor<?xf32>) -> !t {
  %o = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %slope[%h] : tensor<?xf32>
    %x = arith.mulf %s, %m : f32
    attn.yield %x : f32
  } mask(same_document(%doc : tensor<?x?xi32>)) schedule(#s) : !t, !t, !t -> !t
  return %o : !t
}
