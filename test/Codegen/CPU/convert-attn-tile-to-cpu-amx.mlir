// RUN: attn-opt %s --split-input-file --attn-tile-attention --convert-attn-tile-to-cpu=amx | FileCheck %s \
// RUN:   --implicit-check-not='attn_tile.{{begin|slot|score|modify|mask|softmax|accumulate|check|finish|restart|yield}}'
// RUN: attn-opt %s --split-input-file --attn-tile-attention --convert-attn-tile-to-cpu | FileCheck %s --check-prefix=NONE
// NONE-NOT:  llvm.x86.tile

// The same packed tiles without tile registers: pairs of a key, or of a column of values, meet vectors of pairs of queries.
// RUN: attn-opt %s --split-input-file --attn-tile-attention --convert-attn-tile-to-cpu=bf16-pairs | FileCheck %s --check-prefix=PAIRS \
// RUN:   --implicit-check-not=llvm.x86.tile --implicit-check-not=llvm.x86.ldtilecfg
// PAIRS-LABEL: func.func private @dense.k0.task(
// PAIRS:         call @dense.k0.task.pack_queries.32
// PAIRS:         func.call @dense.k0.task.pair_accumulate.32
// PAIRS-LABEL: func.func private @dense.k0.task.pair_scores.32(
// PAIRS-COUNT-32: llvm.x86.avx512bf16.dpbf16ps.512
// PAIRS-LABEL: func.func private @dense.k0.task.pair_accumulate.32(
// PAIRS-COUNT-32: llvm.x86.avx512bf16.dpbf16ps.512

// Tiles are configured once, where a task starts, and nothing is packed yet. A run of full tiles is done in units that
// overlap, then one tile by itself; a reference that is far too low is raised in f32, and a tile that is not finite is
// done again in f32.
!t = tensor<?x?x?x64xbf16>

// CHECK-LABEL: func.func private @dense.k0.task(
// CHECK:         vector.store
// CHECK:         "llvm.x86.ldtilecfg"
// CHECK:         call @dense.k0.task.begin.32
// CHECK:         call @dense.k0.task.pack_queries.32
// CHECK:         scf.while
// CHECK:           func.call @dense.k0.task.pack_keys.32
// CHECK:           func.call @dense.k0.task.tile_run.32
// CHECK:           func.call @dense.k0.task.pack_keys.32
// CHECK:           %[[HIGH:.+]] = func.call @dense.k0.task.tile_softmax.32
// CHECK:           scf.if %[[HIGH]]
// CHECK:             func.call @dense.k0.task.unpack_queries.32
// CHECK:             func.call @dense.k0.task.widen.bf16x64
// CHECK:             func.call @dense.k0.task.online_softmax.32
// CHECK:             func.call @dense.k0.task.pack_weights.32
// CHECK:           func.call @dense.k0.task.tile_accumulate.32
// CHECK:         %[[LOST:.+]] = func.call @dense.k0.task.check.32
// CHECK:         scf.if %[[LOST]]
// CHECK:           func.call @dense.k0.task.restart.32
// CHECK:           func.call @dense.k0.task.unpack_queries.32
// CHECK:           func.call @dense.k0.task.online_softmax.32
// CHECK:           func.call @dense.k0.task.accumulate_careful.32
// CHECK:         "llvm.x86.tilerelease"
// CHECK-NEXT:    return

// All eight tiles: palette 1, 16 rows of 64 bytes.
// CHECK:       llvm.mlir.global internal constant @attn.tile_configuration(dense<[1, {{(0, )+(64, 0, )+(0, )+(16, )+}}0, 0, 0, 0, 0, 0, 0, 0]>

// Keys are read as they lie, once for two columns of queries, with loads that do not stay in the first-level cache.
// CHECK-LABEL: func.func private @dense.k0.task.tile_run.32(
// CHECK:         "llvm.x86.tilezero"
// CHECK:         scf.while
// CHECK:         } do {
// CHECK:           scf.for
// CHECK:             "llvm.x86.tileloaddt164"
// CHECK:             "llvm.x86.tdpbf16ps"
// CHECK:             llvm.inline_asm "vpshufb
// CHECK:             "llvm.x86.tdpbf16ps"
// CHECK:             "llvm.x86.tilestored64"

func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 32, granule = 32>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Partial tiles, and what needs copies of keys, are done tile by tile.
// CHECK-LABEL: func.func private @causal.k0.task(
// CHECK-NOT:     tile_run
// CHECK:         tile_softmax_partial.32
// CHECK-NOT:     tile_run
// CHECK-LABEL: func.func private @causal.k0.task.tile_softmax_partial.32(
// CHECK:         call @causal.k0.task.tile_scores.32
// CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : vector<16xi32>
!s = tensor<?x?x?x40xbf16>
func.func @causal(%q: !s, %k: !s, %v: !s) -> !s {
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<query_tile = 32, granule = 32>) : !s, !s, !s -> !s
  return %o : !s
}

// -----

// Runs that are no whole blocks of 32 keys, and f16, have no tiles.
// CHECK-LABEL: func.func private @odd.k0.task(
// CHECK-NOT:     "llvm.x86.tile
// CHECK-LABEL: func.func private @half.k0.task(
// CHECK-NOT:     "llvm.x86.tile
!t = tensor<?x?x?x64xbf16>
!h = tensor<?x?x?x64xf16>
func.func @odd(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<query_tile = 32, granule = 16>) : !t, !t, !t -> !t
  return %o : !t
}
func.func @half(%q: !h, %k: !h, %v: !h) -> !h {
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<query_tile = 32, granule = 32>) : !h, !h, !h -> !h
  return %o : !h
}
