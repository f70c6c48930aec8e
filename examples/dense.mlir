// Every query sees every key.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %out : !t
}
