!t = tensor<?x?x?x64xf32>
func.func @stride(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and stride(size = 64)) : !t, !t, !t -> !t
  return %out : !t
}
