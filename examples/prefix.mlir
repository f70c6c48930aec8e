// Prefix language model: the first 100 tokens see each other both ways, the rest is causal.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @prefix(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal or prefix(length = 100)) : !t, !t, !t -> !t
  return %out : !t
}
