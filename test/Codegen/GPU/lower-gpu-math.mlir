// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-gpu-lower-math))' --split-input-file --verify-diagnostics | FileCheck %s

// exp is one instruction and a factor; what has no instruction becomes a polynomial.
// CHECK-LABEL: func.func @inline(
// CHECK:         %[[FACTOR:.+]] = arith.constant 1.442695{{.*}} : f32
// CHECK:         %[[SCALED:.+]] = arith.mulf %{{.+}}, %[[FACTOR]] : f32
// CHECK:         math.exp2 %[[SCALED]] : f32
// CHECK-NOT:     math.tanh
// CHECK-NOT:     math.exp %
// CHECK:         math.sqrt
gpu.module @device {
  func.func @inline(%x: f32) -> (f32, f32, f32) {
    %e = math.exp %x : f32
    %t = math.tanh %e : f32
    %s = math.sqrt %x : f32
    return %e, %t, %s : f32, f32, f32
  }
}

// -----

gpu.module @device {
  func.func @no_form(%x: f32, %y: f32) -> f32 {
    // expected-error @below {{'math.powf' has no inline form on a GPU; a score region may use math.exp, exp2,}}
    %p = math.powf %x, %y : f32
    return %p : f32
  }
}
