// A padded batch: each sequence has a length of its own, given at run time.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!n = tensor<?xi32>        // [batch]

func.func @lengths(%q: !t, %k: !t, %v: !t, %length: !n) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and key_length(%length : !n)) : !t, !t, !t -> !t
  return %out : !t
}
