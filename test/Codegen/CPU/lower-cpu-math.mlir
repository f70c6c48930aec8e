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

// -----

// Few CPUs round to bf16 by an instruction, the others would call a function.
// CHECK-LABEL: func.func @bfloat(
// CHECK-NOT:     arith.truncf
// CHECK:         arith.trunci
func.func @bfloat(%x: vector<8xf32>) -> vector<8xbf16> {
  %y = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  return %y : vector<8xbf16>
}
