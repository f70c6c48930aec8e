!t = tensor<?x?x?x64xf32>
!w = tensor<?x?x?x512xf32>

func.func @window(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @blocks(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and same_block(size = 256)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @column(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(same_column(width = 64) and causal) : !t, !t, !t -> !t
  return %out : !t
}

func.func @dilated(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(dilated_window(left = 63, right = 63, dilation = 4)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @either(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(window(left = 3) or stride(size = 64)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @narrow(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and window(left = 31)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return %out : !t
}

func.func @short(%q: tensor<1x2x64x64xf32>, %k: tensor<1x2x64x64xf32>, %v: tensor<1x2x64x64xf32>) -> tensor<1x2x64x64xf32> {
  %out = attn.attention %q, %k, %v mask(causal) : tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32>, tensor<1x2x64x64xf32> -> tensor<1x2x64x64xf32>
  return %out : tensor<1x2x64x64xf32>
}

func.func @documents(%q: !t, %k: !t, %v: !t, %doc: tensor<?x?xi32>) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and same_document(%doc : tensor<?x?xi32>)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @table(%q: !t, %k: !t, %v: !t, %keep: tensor<?x?xi1>) -> !t {
  %out = attn.attention %q, %k, %v mask(block_mask(%keep : tensor<?x?xi1>, size = 64)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @wide(%q: !w, %k: !w, %v: !w) -> !w {
  %out = attn.attention %q, %k, %v mask(causal) : !w, !w, !w -> !w
  return %out : !w
}

func.func @given(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 16, key_tile = 32>) : !t, !t, !t -> !t
  return %out : !t
}
