!q0 = tensor<?x?x96x39xbf16>
!k1 = tensor<?x?x96x39xbf16>
!v2 = tensor<?x?x96x39xbf16>
!out0 = tensor<?x?x96x39xbf16>
func.func @f(%q0: !q0, %k1: !k1, %v2: !v2) -> (!out0) {
  %out0 = attn.attention %q0, %k1, %v2 : !q0, !k1, !v2 -> !out0
  return %out0 : !out0
}
