// A block table per head: key blocks of 64 that hold a nonzero entry are read, the others are not.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!m = tensor<?x?x?xi8>     // [heads, query blocks, key blocks]

func.func @table(%q: !t, %k: !t, %v: !t, %keep: !m) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and block_mask(%keep : !m, size = 64)) : !t, !t, !t -> !t
  return %out : !t
}
