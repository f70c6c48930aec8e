!q = tensor<?x8x?x64xf32>
!k = tensor<?x?x?x64xf32>
!v = tensor<?x?x?x?xf32>
!o = tensor<?x8x?x?xf32>
!t = tensor<?x?x?x?xf32>

func.func @documents(%q: !q, %k: !k, %v: !v, %doc: tensor<?x?xi32>) -> (!o, tensor<?x8x?xf32>) {
  %out, %lse = attn.attention %q, %k, %v mask(causal and same_document(%doc : tensor<?x?xi32>))
    : !q, !k, !v -> !o, tensor<?x8x?xf32>
  return %out, %lse : !o, tensor<?x8x?xf32>
}

func.func @second(%register: !t, %limit: tensor<i64>, %flags: tensor<?xi1>) -> !t {
  %out = attn.attention %register, %register, %register mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %most = tensor.extract %limit[] : tensor<i64>
    %bound = arith.index_cast %most : i64 to index
    %flag = tensor.extract %flags[%j] : tensor<?xi1>
    %near = arith.cmpi slt, %j, %bound : index
    %keep = arith.andi %flag, %near : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %out : !t
}

func.func private @hidden(%q: !t) -> !t {
  %out = attn.attention %q, %q, %q : !t, !t, !t -> !t
  return %out : !t
}
