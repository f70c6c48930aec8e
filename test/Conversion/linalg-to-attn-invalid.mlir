// RUN: attn-opt %s -convert-linalg-to-attn -split-input-file -verify-diagnostics

func.func @integers(%a: tensor<4x6xi32>, %b: tensor<6x5xi32>, %c: tensor<4x5xi32>) -> tensor<4x5xi32> {
  // expected-error@+1 {{'linalg.matmul' has no form as attn.compute: an operand has type 'tensor<4x6xi32>'; use tensors of f32, f16 or bf16}}
  %m = linalg.matmul ins(%a, %b : tensor<4x6xi32>, tensor<6x5xi32>) outs(%c : tensor<4x5xi32>) -> tensor<4x5xi32>
  return %m : tensor<4x5xi32>
}

// -----

func.func @start(%a: tensor<4x6xf32>, %b: tensor<6x5xf32>, %c: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // expected-error@+1 {{what its sum starts from is no number that is known here; start from a linalg.fill of a constant}}
  %m = linalg.matmul ins(%a, %b : tensor<4x6xf32>, tensor<6x5xf32>) outs(%c : tensor<4x5xf32>) -> tensor<4x5xf32>
  return %m : tensor<4x5xf32>
}

// -----

func.func @body(%a: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{'linalg.generic' has no form as attn.compute}}
  %m = linalg.generic {indexing_maps = [affine_map<(n) -> (n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%a : tensor<4xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    // expected-note@+1 {{its body holds 'linalg.index'; use arith and math ops}}
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    linalg.yield %f : f32
  } -> tensor<4xf32>
  return %m : tensor<4xf32>
}

// -----

func.func @backwards(%a: tensor<4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{has an index that is no sum of loops times numbers from 0 up}}
  %m = linalg.generic {indexing_maps = [affine_map<(n) -> (3 - n)>, affine_map<(n) -> (n)>], iterator_types = ["parallel"]}
    ins(%a : tensor<4xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %m : tensor<4xf32>
}

// -----

func.func @filled(%q: tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32> {
  %one = arith.constant 1.0 : f32
  %empty = tensor.empty() : tensor<1x1x4x8xf32>
  // expected-error@+1 {{'linalg.fill' has no form as attn.compute: it is read, not only what a sum starts from}}
  %ones = linalg.fill ins(%one : f32) outs(%empty : tensor<1x1x4x8xf32>) -> tensor<1x1x4x8xf32>
  %out = attn.attention %q, %ones, %q : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32> -> tensor<1x1x4x8xf32>
  return %out : tensor<1x1x4x8xf32>
}
