// RUN: attn-opt %s --attn-tile-attention | FileCheck %s --implicit-check-not=attn.attention

// With warps in the schedule a task has one query tile, and fetches tiles of keys ahead of their use.
!t = tensor<?x?x?x64xbf16>
#s = #attn.schedule<query_tile = 64, key_tile = 32, tail_tile = 64, split = 256, warps = 4, stages = 3>

// CHECK-LABEL: func.func private @dense.k0.task(
// CHECK-DAG:     %[[Q:.+]] = attn_tile.buffer : <1 of 64 by 64, bf16>
// CHECK-DAG:     %[[K:.+]] = attn_tile.buffer : <3 of 32 by 64, bf16>
// CHECK-DAG:     %[[V:.+]] = attn_tile.buffer : <3 of 32 by 64, bf16>
// CHECK:         attn_tile.fetch {{.*}} into %[[Q]]
// CHECK:         attn_tile.commit
// Two tiles are under way before the first is awaited.
// CHECK-COUNT-2: attn_tile.commit
// CHECK:         attn_tile.await pending(2)
// CHECK:         attn_tile.start queries(%[[Q]] : !attn_tile.buffer<1 of 64 by 64, bf16>) scale(%{{.+}}) -> <64, 64, 64, log2>
// CHECK:         scf.while
// CHECK:           attn_tile.await pending(1)
// CHECK:           attn_tile.fetch {{.*}} into %[[K]]
// CHECK:           attn_tile.fetch {{.*}} into %[[V]]
// CHECK:           attn_tile.commit
// CHECK:           attn_tile.score %{{.+}}, %[[K]]
// Keys past the last are cut off in the tile that has some; nothing else is masked.
// CHECK:           scf.if
// CHECK-NOT:         attn_tile.mask
// CHECK:             attn_tile.clip
// CHECK:           attn_tile.softmax
// CHECK:           attn_tile.accumulate
// CHECK-NOT:       skip_zero
// What was lost is computed once more, exactly.
// CHECK:         attn_tile.check
// CHECK:         scf.if
// CHECK:           attn_tile.restart
// CHECK:           attn_tile.softmax exact
// CHECK:           attn_tile.accumulate {{.*}} skip_zero
// CHECK:         attn_tile.finish_partial
// CHECK:         attn_tile.finish
// CHECK:       attn_tile.kernel @dense.k0 task(@dense.k0.task) tail(@dense.k0.task) tables([])
// CHECK-SAME:    group_tiles = 1
// CHECK-SAME:    has_mask = 0
// CHECK-SAME:    tail_limit = 0
// CHECK-SAME:    warps = 4
func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v schedule(#s) : !t, !t, !t -> !t
  return %o : !t
}

// One branch jumps over the mask in full tiles.
// CHECK-LABEL: func.func private @causal.k0.task(
// CHECK:           attn_tile.score
// CHECK:           scf.if
// CHECK:             attn_tile.mask
// CHECK:             attn_tile.clip
// CHECK:           } else {
// CHECK-NEXT:        scf.yield
// CHECK:           attn_tile.softmax
// CHECK:       attn_tile.kernel @causal.k0 {{.*}}classify(@causal.k0.classify)
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal) schedule(#s) : !t, !t, !t -> !t
  return %o : !t
}
