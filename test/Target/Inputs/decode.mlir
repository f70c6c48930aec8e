!t = tensor<?x?x?x64xf32>
func.func @decode(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v align(bottom_right) mask(causal) : !t, !t, !t -> !t
  return %out : !t
}
