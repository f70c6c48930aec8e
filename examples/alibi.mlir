// ALiBi: a penalty on the score that grows with the distance, its slope given per head.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!s = tensor<?xf32>        // [heads]

func.func @alibi(%q: !t, %k: !t, %v: !t, %slope: !s) -> !t {
  %out = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %m = tensor.extract %slope[%h] : !s
    %distance = arith.subi %j, %i : index
    %d = arith.index_cast %distance : index to i64
    %f = arith.sitofp %d : i64 to f32
    %bias = arith.mulf %m, %f : f32
    %sum = arith.addf %s, %bias : f32
    attn.yield %sum : f32
  } mask(causal) : !t, !t, !t -> !t
  return %out : !t
}
