// Decoding with a cache: a few new queries, of which the last one is aligned with the last key (`bottom_right`).
!q = tensor<?x8x?x128xf32>
!k = tensor<?x2x?x128xf32>

func.func @decode(%q: !q, %k: !k, %v: !k) -> !q {
  %out = attn.attention %q, %k, %v align(bottom_right) mask(causal and window(left = 4095)) : !q, !k, !k -> !q
  return %out : !q
}
