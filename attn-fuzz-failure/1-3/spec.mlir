!q0 = tensor<?x?x?x32xbf16>
!k1 = tensor<?x?x?x32xbf16>
!v2 = tensor<?x?x?x32xbf16>
!out0 = tensor<?x?x?x32xbf16>
!lse_out0 = tensor<?x?x?xf32>
func.func @f(%q0: !q0, %k1: !k1, %v2: !v2) -> (!out0, !lse_out0) {
  %out0, %lse_out0 = attn.attention %q0, %k1, %v2 : !q0, !k1, !v2 -> !out0, !lse_out0
  return %out0, %lse_out0 : !out0, !lse_out0
}
