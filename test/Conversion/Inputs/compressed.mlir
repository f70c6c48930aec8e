!t = tensor<?x?x?x8xf32>
!w = tensor<3x8x8xf32>

// Keys convolved along the tokens, three at a time; values pooled.
func.func @compressed(%q: !t, %k: !t, %v: !t, %w: !w) -> !t {
  %zero = arith.constant 0.0 : f32
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %three = arith.constant 3 : index
  %b = tensor.dim %k, %i0 : !t
  %h = tensor.dim %k, %i1 : !t
  %n = tensor.dim %k, %i2 : !t
  %m = arith.divui %n, %three : index
  %empty = tensor.empty(%b, %h, %m) : !t
  %start = linalg.fill ins(%zero : f32) outs(%empty : !t) -> !t
  %kc = linalg.generic {indexing_maps = [affine_map<(b, h, m, d, c, e) -> (b, h, m * 3 + c, e)>, affine_map<(b, h, m, d, c, e) -> (c, e, d)>,
                                         affine_map<(b, h, m, d, c, e) -> (b, h, m, d)>],
                        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]}
    ins(%k, %w : !t, !w) outs(%start : !t) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %xy = arith.mulf %x, %y : f32
    %sum = arith.addf %total, %xy : f32
    linalg.yield %sum : f32
  } -> !t
  %window = tensor.empty() : tensor<3xf32>
  %vc = linalg.generic {indexing_maps = [affine_map<(b, h, m, d, c) -> (b, h, m * 3 + c, d)>, affine_map<(b, h, m, d, c) -> (c)>,
                                         affine_map<(b, h, m, d, c) -> (b, h, m, d)>],
                        iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
    ins(%v, %window : !t, tensor<3xf32>) outs(%start : !t) {
  ^bb0(%x: f32, %y: f32, %total: f32):
    %sum = arith.addf %total, %x : f32
    linalg.yield %sum : f32
  } -> !t
  %out = attn.attention %q, %kc, %vc : !t, !t, !t -> !t
  return %out : !t
}
