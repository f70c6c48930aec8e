// RUN: attn-opt %s --attn-cpu-lower-math --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @inline(
// CHECK-NOT:     math.tanh
// CHECK-NOT:     math.exp
// CHECK-NOT:     floordivsi
// CHECK:         math.sqrt
func.func @inline(%x: vector<16xf32>, %i: index) -> (vector<16xf32>, vector<16xf32>, index) {
  %t = math.tanh %x : vector<16xf32>
  %e = math.exp %t : vector<16xf32>
  %s = math.sqrt %x : vector<16xf32>
  %c = arith.constant 3 : index
  %d = arith.floordivsi %i, %c : index
  return %e, %s, %d : vector<16xf32>, vector<16xf32>, index
}

// -----

func.func @no_form(%x: f32, %y: f32) -> f32 {
  // expected-error @below {{'math.powf' has no inline form on a CPU; a score region may use math.exp, exp2,}}
  %p = math.powf %x, %y : f32
  return %p : f32
}
