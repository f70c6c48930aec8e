// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu | FileCheck %s \
// RUN:   --implicit-check-not='attn_tile.{{begin|slot|score|modify|mask|softmax|accumulate|check|finish|restart|yield}}'

// The register block of the scores: 8 key rows by 3 vectors, in row-major order (one broadcast feeds three FMAs);
// the exponential in registers; only weights are stored.
!t = tensor<?x?x?x64xf32>

// CHECK-LABEL: func.func private @dense.k0.task(
// CHECK-NOT:     attn_tile
// CHECK:         call @dense.k0.task.begin.48
// CHECK:         %[[HIGH:.+]] = func.call @dense.k0.task.softmax.48
// CHECK:         scf.if %[[HIGH]]
// CHECK-NEXT:      func.call @dense.k0.task.online_softmax.48
// CHECK:         func.call @dense.k0.task.accumulate.48
// CHECK:         %[[LOST:.+]] = func.call @dense.k0.task.check.48
// CHECK:         scf.if %[[LOST]]
// CHECK:           func.call @dense.k0.task.restart.48
// CHECK:           func.call @dense.k0.task.online_softmax.48
// CHECK:           func.call @dense.k0.task.accumulate_careful.48
// CHECK:         func.call @dense.k0.task.finish.48

// Weights of 128 x 48, then 8 slots of 48 queries: 3 rows, the queries and the output each.
// CHECK:       attn_tile.kernel @dense.k0 {{.*}} scratch([7296, 384, 384])

// CHECK-LABEL: func.func private @dense.k0.task.softmax.48(
// CHECK-SAME:    attributes {llvm.linkage = #llvm.linkage<internal>, passthrough = ["noinline"]}
// CHECK:         scf.for
// CHECK:           scf.for
// CHECK-COUNT-24:    vector.fma {{.*}} : vector<16xf32>
// CHECK-NOT:         vector.fma
// CHECK:             scf.yield
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.mask.reduce.ps.512"
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.vfmadd.ps.512"
// CHECK-COUNT-5:   vector.fma
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK-NOT:       arith.select
// CHECK:           vector.store

func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 48, tail_tile = 16>) : !t, !t, !t -> !t
  return %o : !t
}

// `j <= i` costs one comparison of a constant vector with a broadcast in 32 bits per vector; the mask comes behind the
// exponential, and a weight of 0 adds nothing to the output. Full tiles share that product with the masked ones. Full tiles have no copy of that product of their own.
// CHECK-LABEL: func.func private @causal.k0.task.accumulate_partial.48(
// CHECK:         %[[USED:.+]] = arith.cmpf une
// CHECK:         %[[NEXT:.+]] = vector.fma
// CHECK-NEXT:    arith.select %[[USED]], %[[NEXT]],
// CHECK-LABEL: func.func private @causal.k0.task.softmax_partial.48(
// CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK:         llvm.call_intrinsic "llvm.x86.avx512.mask.scalef.ps.512"
// CHECK:         arith.select %{{.*}} : vector<16xi1>, vector<16xf32>
// CHECK:         vector.store
// CHECK-NOT:     @causal.k0.task.accumulate.48(
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<query_tile = 48, tail_tile = 16>) : !t, !t, !t -> !t
  return %o : !t
}
