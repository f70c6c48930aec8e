// RUN: attn-opt %s --attn-cpu-lower-math="fma=false rounding=false f16-conversions=false" | FileCheck %s
// RUN: attn-opt %s --attn-cpu-lower-math | FileCheck %s --check-prefix=HAS

// CHECK-LABEL: func.func @rounds(
// CHECK-NOT:     math.floor
// CHECK:         arith.addf {{.*}} : vector<4xf32>
// HAS-LABEL:   func.func @rounds(
// HAS-NEXT:      math.floor
func.func @rounds(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.floor %x : vector<4xf32>
  return %y : vector<4xf32>
}

// The product is exact in f64.
// CHECK-LABEL: func.func @fused(
// CHECK-NOT:     math.fma
// CHECK:         arith.mulf {{.*}} : vector<4xf64>
// HAS-LABEL:   func.func @fused(
// HAS-NEXT:      math.fma
func.func @fused(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.fma %x, %x, %x : vector<4xf32>
  return %y : vector<4xf32>
}

// No CPU has a remainder.
// CHECK-LABEL: func.func @remainder(
// CHECK-NOT:     arith.remf
// CHECK:         scf.for
// CHECK:           arith.remui {{.*}} : i64
// HAS-LABEL:   func.func @remainder(
// HAS-NOT:       arith.remf
// HAS:           return
func.func @remainder(%x: f32, %y: f32) -> f32 {
  %z = arith.remf %x, %y : f32
  return %z : f32
}

// Narrow floats are computed in f32.
// CHECK-LABEL: func.func @half(
// CHECK-NOT:     arith.extf
// CHECK:         arith.mulf {{.*}} : f32
// CHECK-NOT:     arith.truncf
// HAS-LABEL:   func.func @half(
// HAS:           arith.extf
// HAS:           arith.mulf {{.*}} : f32
// HAS:           arith.truncf
func.func @half(%x: f16, %y: f16) -> f16 {
  %z = arith.mulf %x, %y : f16
  return %z : f16
}
