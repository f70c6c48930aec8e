// Neighbourhood attention: the nearest keys, equally many at the borders, along a line and on a grid 32 tokens wide.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @neighborhood_1d(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(neighborhood(size = 33)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @neighborhood_2d(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(neighborhood_2d(width = 32, size = [7, 7])) : !t, !t, !t -> !t
  return %out : !t
}
