// Axial attention on a grid 64 tokens wide: one kernel over the rows, one over the columns.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @axial_row(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(same_row(width = 64)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @axial_column(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(same_column(width = 64) and causal) : !t, !t, !t -> !t
  return %out : !t
}
