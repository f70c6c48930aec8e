!t = tensor<?x?x?x64xf32>
!i = tensor<?x?xi32>
!s = tensor<?xf32>

func.func @mixed(%q: !t, %k: !t, %v: !t, %doc: !i, %slope: !s) -> (!t, tensor<?x?x?xf32>) {
  %blocks = arith.constant dense<[[1, 0], [1, 1]]> : tensor<2x2xi8>
  %near = attn.attention %q, %k, %v score {
  ^bb0(%score: f32, %b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %slope[%h] : !s
    %sum = arith.addf %score, %m : f32
    attn.yield %sum : f32
  } mask(causal and same_document(%doc : !i)) : !t, !t, !t -> !t
  %out, %lse = attn.attention %near, %k, %v mask(block_mask(%blocks : tensor<2x2xi8>, size = 2048) or window(left = 3))
    : !t, !t, !t -> !t, tensor<?x?x?xf32>
  return %out, %lse : !t, tensor<?x?x?xf32>
}
