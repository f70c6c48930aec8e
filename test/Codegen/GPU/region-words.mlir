// RUN: attn-opt %s --attn-select-schedule=chip=sm_80 --attn-tile-attention --convert-attn-tile-to-gpu --canonicalize --cse | FileCheck %s
// Regions count in 32 bits where the bounds of positions allow it.
!t = tensor<?x?x?x64xbf16>

// Positions are not negative: division without regard to signs, and no question whether they are.
// CHECK-LABEL: llvm.func @fits$k0$task(
// CHECK:         nvvm.mma.sync
// CHECK:         arith.divui %{{.*}}, %{{.*}} : i32
// CHECK-NOT:     arith.floordivsi
// CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : i32
// CHECK:         nvvm.vote.sync
func.func @fits(%q: !t) -> !t {
  %out = attn.attention %q, %q, %q mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %c20 = arith.constant 20 : index
    %c0 = arith.constant 0 : index
    %x = arith.floordivsi %i, %c20 : index
    %y = arith.floordivsi %j, %c20 : index
    %z = arith.cmpi sle, %y, %x : index
    %s = arith.cmpi sge, %i, %c0 : index
    %r = arith.andi %z, %s : i1
    attn.yield %r : i1
  } : !t, !t, !t -> !t
  return %out : !t
}

// A product of two positions may leave 32 bits; what is cut to 8 bits stays cut.
// CHECK-LABEL: llvm.func @wide$k0$task(
// CHECK:         arith.muli %{{.*}}, %{{.*}} : index
// CHECK:         arith.trunci %{{.*}} : i32 to i8
// CHECK:         arith.extui %{{.*}} : i8 to i32
func.func @wide(%q: !t) -> !t {
  %out = attn.attention %q, %q, %q mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %x = arith.muli %i, %j : index
    %n = arith.index_castui %j : index to i8
    %y = arith.index_castui %n : i8 to index
    %z = arith.cmpi sle, %y, %x : index
    attn.yield %z : i1
  } : !t, !t, !t -> !t
  return %out : !t
}
