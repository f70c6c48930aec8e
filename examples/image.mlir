// Image Transformer: blocks of queries with a flange of keys around them, along the line and on a grid 64 tokens wide.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @image_1d(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and local_blocks(size = 256, before = 256)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @image_2d(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v
    mask(causal and local_blocks_2d(width = 64, block = [8, 16], flange = [4, 8])) : !t, !t, !t -> !t
  return %out : !t
}
