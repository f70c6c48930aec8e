// Soft-capped scores, as in Gemma 2: 50 tanh(s / 50), with a causal window.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @softcap(%q: !t, %k: !t, %v: !t) -> !t {
  %cap = arith.constant 50.0 : f32
  %out = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %x = arith.divf %s, %cap : f32
    %y = math.tanh %x : f32
    %z = arith.mulf %y, %cap : f32
    attn.yield %z : f32
  } mask(causal and window(left = 1023)) : !t, !t, !t -> !t
  return %out : !t
}
