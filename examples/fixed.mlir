// Sparse Transformer, fixed: the own block of 128, and the last 32 tokens of every block before.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @fixed(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v
    mask(causal and (same_block(size = 128) or last_columns(block = 128, count = 32))) : !t, !t, !t -> !t
  return %out : !t
}
