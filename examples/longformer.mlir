// Longformer: 256 neighbours on either side; the first token sees all and is seen by all.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]

func.func @longformer(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(window(left = 256, right = 256) or global(count = 1)) : !t, !t, !t -> !t
  return %out : !t
}
