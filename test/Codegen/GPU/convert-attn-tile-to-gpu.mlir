// RUN: attn-opt %s --attn-select-schedule=chip=sm_80 --attn-tile-attention --convert-attn-tile-to-gpu --canonicalize --cse | FileCheck %s \
// RUN:   --implicit-check-not='attn_tile.{{begin|slot|score|modify|mask|softmax|accumulate|check|finish|restart|yield}}'
// RUN: attn-opt %s --attn-select-schedule=chip=sm_75 --attn-tile-attention --convert-attn-tile-to-gpu="tensor-cores=false async-copies=false" \
// RUN:   --canonicalize --cse | FileCheck %s --check-prefix=PLAIN \
// RUN:   --implicit-check-not='attn_tile.{{begin|slot|score|modify|mask|softmax|accumulate|check|finish|restart|yield}}'
!t = tensor<?x?x?x64xbf16>

// The task is gone to the device; what is left says which tensors a launch takes.
// CHECK:       func.func private @causal.k0.task(memref
// CHECK:       attn_tile.kernel @causal.k0
// CHECK-SAME:    shared_bytes = 49152 : i64
// CHECK:       gpu.module @attn_device
// CHECK:         llvm.mlir.global external @attn_shared() {addr_space = 3 : i32, alignment = 128 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL:   llvm.func @causal$k0$task(
// CHECK-SAME:      function_entry_count = 1 : i64, {{.*}}nvvm.kernel, nvvm.maxntid = array<i32: 128>
// Queries, keys and values are under way together; queries then stay in registers.
// CHECK:           nvvm.cp.async.shared.global
// CHECK:           nvvm.cp.async.commit.group
// CHECK:           nvvm.cp.async.wait.group 1
// CHECK-NEXT:      nvvm.barrier0
// CHECK:           nvvm.ldmatrix
// The next tile is fetched behind the one barrier of a step, then the products run.
// CHECK:           scf.while
// CHECK:             nvvm.cp.async.wait.group 0
// CHECK-NEXT:        nvvm.barrier0
// CHECK:             nvvm.cp.async.shared.global
// CHECK:             nvvm.mma.sync
// The mask costs nothing in full tiles, which are expected.
// CHECK:             %[[CUT:.*]] = llvm.intr.expect %{{.*}}, %false : i1
// CHECK-NEXT:        scf.if %[[CUT]]
// CHECK:               arith.cmpi sle
// The output is rescaled only where a reference moved.
// CHECK:             nvvm.vote.sync any
// CHECK:             scf.if
// CHECK:             math.exp2
// CHECK:             nvvm.ldmatrix {{.*}} layout = #nvvm.mma_layout<col>
// CHECK:             nvvm.mma.sync
// Something that is no finite number: once more, exactly.
// CHECK:           nvvm.barrier #nvvm.reduction<or>
// CHECK:           scf.if
// CHECK-LABEL:   llvm.func @causal$k0$task$merge(
// CHECK-NOT:     attn_tile
// CHECK-NOT:     memref

// PLAIN-LABEL: llvm.func @causal$k0$task(
// PLAIN-NOT:     nvvm.cp.async
// PLAIN-NOT:     nvvm.mma.sync
// PLAIN:         math.fma
func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return %out : !t
}
