// Sparse Transformer, strided: the last 128 tokens, and every 128th before them.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @strided(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and (window(left = 127) or stride(size = 128))) : !t, !t, !t -> !t
  return %out : !t
}
