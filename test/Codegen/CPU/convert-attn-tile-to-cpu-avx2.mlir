// RUN: attn-opt %s --attn-select-schedule="lanes=8 rows=4" --attn-tile-attention \
// RUN:   --convert-attn-tile-to-cpu="lanes=8 rows=4 avx512-exp=false" | FileCheck %s \
// RUN:   --implicit-check-not='attn_tile.{{begin|slot|score|modify|mask|softmax|accumulate|check|finish|restart|yield}}'

// A vector of half the lanes and registers of half the number: 4 key rows by 3 vectors of 8, and an exponential of integer
// arithmetic.
!t = tensor<?x?x?x64xf32>

// CHECK-LABEL: func.func private @dense.k0.task.softmax.24(
// CHECK:            scf.for
// CHECK:              scf.for
// CHECK-COUNT-12:   vector.fma {{.*}} : vector<8xf32>
// CHECK-NOT:        vector.fma
// CHECK:            scf.yield
// CHECK-NOT:        llvm.x86
// CHECK:            arith.shli
func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
