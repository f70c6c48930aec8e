!t = tensor<?x?x?x16xf32>
func.func @denormals(%q: !t {attn.name = "q"}, %k: !t {attn.name = "k"}, %v: !t {attn.name = "v"}) -> !t {
  %out = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %out : !t
}
