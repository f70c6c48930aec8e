// RUN: attn-opt %s -convert-linalg-to-attn -mlir-print-local-scope | FileCheck %s

!t = tensor<?x?x?x64xf32>

// What sums start from goes with them.
// CHECK-LABEL: func.func @projected
// CHECK-NOT: linalg
// CHECK-NOT: tensor.empty
// CHECK: attn.compute(%{{.*}}, %{{.*}}) maps([affine_map<(d0, d1, d2, d3, d4) -> (d2, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d4, d3)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>]) initial(0.000000e+00)
// CHECK: ^bb0(%[[X:.*]]: f32, %[[Y:.*]]: f32, %[[TOTAL:.*]]: f32):
// CHECK: %[[XY:.*]] = arith.mulf %[[X]], %[[Y]] : f32
// CHECK: %[[SUM:.*]] = arith.addf %[[TOTAL]], %[[XY]] : f32
// CHECK: attn.result %[[SUM]]
// CHECK: attn.attention
func.func @projected(%q: !t, %k: !t, %v: !t, %e: tensor<8x?xf32>) -> !t {
  %zero = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %b = tensor.dim %k, %i0 : !t
  %h = tensor.dim %k, %i1 : !t
  %empty = tensor.empty(%b, %h) : tensor<?x?x8x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x?x8x64xf32>) -> tensor<?x?x8x64xf32>
  // The sum runs in the middle of its loops.
  %kp = linalg.generic {indexing_maps = [affine_map<(b, h, p, n, d) -> (p, n)>, affine_map<(b, h, p, n, d) -> (b, h, n, d)>,
                                         affine_map<(b, h, p, n, d) -> (b, h, p, d)>],
                        iterator_types = ["parallel", "parallel", "parallel", "reduction", "parallel"]}
    ins(%e, %k : tensor<8x?xf32>, !t) outs(%start : tensor<?x?x8x64xf32>) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %xy = arith.mulf %x, %y : f32
    %sum = arith.addf %total, %xy : f32
    linalg.yield %sum : f32
  } -> tensor<?x?x8x64xf32>
  %out = attn.attention %q, %kp, %kp : !t, tensor<?x?x8x64xf32>, tensor<?x?x8x64xf32> -> !t
  return %out : !t
}

// CHECK-LABEL: func.func @named
// CHECK: attn.compute(%{{.*}}, %{{.*}}) maps([affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>]) initial(1.500000e+00)
// CHECK: arith.mulf %{{.*}} : f32
// CHECK: attn.compute(%{{.*}}, %{{.*}}) maps([affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 * 3 + d3, d4)>, affine_map<(d0, d1, d2, d3, d4) -> (d3, d4, d2)>, affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2)>])
// CHECK: attn.compute(%{{.*}}) maps([affine_map<(d0, d1, d2, d3) -> (d0, d1 * 2 + d3, d2)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>]) initial(0xFF800000) extents([-1, -1, -1, 2])
// CHECK: arith.maximumf
func.func @named(%a: tensor<4x6xf16>, %b: tensor<6x5xf16>, %x: tensor<?x12x6xf32>, %w: tensor<3x6x5xf32>, %n: index)
    -> (tensor<4x5xf16>, tensor<?x4x5xf32>, tensor<?x6x6xf32>) {
  %one = arith.constant dense<1.5> : tensor<4x5xf16>
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %m = linalg.matmul ins(%a, %b : tensor<4x6xf16>, tensor<6x5xf16>) outs(%one : tensor<4x5xf16>) -> tensor<4x5xf16>
  %e0 = tensor.empty(%n) : tensor<?x4x5xf32>
  %s0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<?x4x5xf32>) -> tensor<?x4x5xf32>
  %c = linalg.conv_1d_nwc_wcf {strides = dense<3> : tensor<1xi64>, dilations = dense<1> : tensor<1xi64>}
    ins(%x, %w : tensor<?x12x6xf32>, tensor<3x6x5xf32>) outs(%s0 : tensor<?x4x5xf32>) -> tensor<?x4x5xf32>
  %e1 = tensor.empty(%n) : tensor<?x6x6xf32>
  %s1 = linalg.fill ins(%least : f32) outs(%e1 : tensor<?x6x6xf32>) -> tensor<?x6x6xf32>
  %window = tensor.empty() : tensor<2xf32>
  %p = linalg.pooling_nwc_max {strides = dense<2> : tensor<1xi64>, dilations = dense<1> : tensor<1xi64>}
    ins(%x, %window : tensor<?x12x6xf32>, tensor<2xf32>) outs(%s1 : tensor<?x6x6xf32>) -> tensor<?x6x6xf32>
  return %m, %c, %p : tensor<4x5xf16>, tensor<?x4x5xf32>, tensor<?x6x6xf32>
}
