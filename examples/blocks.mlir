// Memory-compressed attention, its local half: blocks of 256 tokens, causal inside.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @blocks(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and same_block(size = 256)) : !t, !t, !t -> !t
  return %out : !t
}
