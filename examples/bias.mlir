// A relative bias from a learnt table: entry [head, distance] is added to the score; beyond its end the last one.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!r = tensor<?x?xf32>      // [heads, distances]

func.func @bias(%q: !t, %k: !t, %v: !t, %table: !r) -> !t {
  %out = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %distance = arith.subi %i, %j : index
    %bias = tensor.extract %table[%h, %distance] : !r
    %sum = arith.addf %s, %bias : f32
    attn.yield %sum : f32
  } mask(causal) : !t, !t, !t -> !t
  return %out : !t
}
