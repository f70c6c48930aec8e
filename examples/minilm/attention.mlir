// The attention of a sentence model on a padded batch: 12 heads of 32, no key behind a sentence's end takes part.
!t = tensor<?x12x?x32xf32> // [batch, heads, tokens, head_dim]
!n = tensor<?xi32>         // [batch]

func.func @attention(%q: !t, %k: !t, %v: !t, %length: !n) -> !t {
  %out = attn.attention %q, %k, %v mask(key_length(%length : !n)) : !t, !t, !t -> !t
  return %out : !t
}
