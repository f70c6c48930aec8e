// A causal sliding window: each token sees itself and the 255 before it.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
  return %out : !t
}
