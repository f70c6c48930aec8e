// A dilated window: itself and 63 keys on either side, every fourth token.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @dilated(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(dilated_window(left = 63, right = 63, dilation = 4)) : !t, !t, !t -> !t
  return %out : !t
}
