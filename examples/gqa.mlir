// Grouped queries: 8 query heads share 2 key/value heads; Dv differs from D; the log-sum-exp comes out as well.
!q = tensor<?x8x?x128xf32>
!k = tensor<?x2x?x128xf32>
!v = tensor<?x2x?x64xf32>
!o = tensor<?x8x?x64xf32>
!l = tensor<?x8x?xf32>

func.func @gqa(%q: !q, %k: !k, %v: !v) -> (!o, !l) {
  %out, %lse = attn.attention %q, %k, %v mask(causal) : !q, !k, !v -> !o, !l
  return %out, %lse : !o, !l
}
