// Packed documents: a token sees the earlier tokens of its own document only. Ids are given at run time.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!i = tensor<?x?xi32>      // [batch, tokens]

func.func @documents(%q: !t, %k: !t, %v: !t, %doc: !i) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and same_document(%doc : !i)) : !t, !t, !t -> !t
  return %out : !t
}
