// Chunks of 64 tokens, each of which looks at itself and at the chunk before.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @chunks(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and chunk_lookback(size = 64, before = 1)) : !t, !t, !t -> !t
  return %out : !t
}
