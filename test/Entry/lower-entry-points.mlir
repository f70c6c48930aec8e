// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu --attn-lower-entry-points | FileCheck %s \
// RUN:   --implicit-check-not='= attn' --implicit-check-not=attn_tile
// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu --attn-lower-entry-points="x86=false" | FileCheck %s --check-prefix=OTHER

!t = tensor<?x?x?x64xf32>

// The task's entry flushes denormals and puts the caller's mode back.
// CHECK-LABEL: func.func @twice.k0.task.entry(
// CHECK:         "llvm.x86.sse.stmxcsr"
// CHECK:         "llvm.x86.sse.ldmxcsr"
// CHECK:         call @twice.k0.task(
// CHECK:         "llvm.x86.sse.ldmxcsr"
// OTHER-NOT:     llvm.x86.sse

// An intermediate is a tensor of the table, not an argument; a constant is data of the object.
// CHECK:       llvm.mlir.global internal constant @twice.table(
// CHECK:       llvm.mlir.global internal constant @twice.strings("twice\00q\00k\00v\00out\00intermediate4\00
// CHECK-SAME:    batch\00

// CHECK-LABEL: func.func @twice(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) -> i32
// CHECK:         call @attn_call
// CHECK-LABEL: func.func @twice_plan(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr) -> i32
// CHECK-LABEL: func.func @twice_run(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: !llvm.ptr, %arg4: !llvm.ptr) -> i32
// CHECK-NOT:   attn_tile.kernel
func.func @twice(%q: !t {attn.name = "q"}, %k: !t {attn.name = "k"}, %v: !t {attn.name = "v"}) -> !t {
  %a = attn.attention %q, %k, %v schedule(#attn.schedule<>) : !t, !t, !t -> !t
  %b = attn.attention %a, %k, %v mask(causal) schedule(#attn.schedule<>) : !t, !t, !t -> !t
  return %b : !t
}
