// Causal attention of grouped queries in bf16: 4 query heads share a key/value head.
!q = tensor<?x8x?x64xbf16> // [batch, heads, tokens, head_dim]
!kv = tensor<?x2x?x64xbf16>

func.func @attention(%q: !q, %k: !kv, %v: !kv) -> !q {
  %out = attn.attention %q, %k, %v mask(causal) : !q, !kv, !kv -> !q
  return %out : !q
}
