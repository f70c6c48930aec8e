!t = tensor<?x?x?x64xf32>
!r = tensor<?x?x?xi32>
func.func @rows(%q: !t, %k: !t, %v: !t, %rk: !r) -> !t {
  %o = attn.attention %q, %k, %v key_rows(%rk : !r) mask(causal) : !t, !t, !t -> !t
  return %o : !t
}
