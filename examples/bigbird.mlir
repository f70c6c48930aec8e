// BigBird on blocks of 64: neighbours, a first block that sees all and is seen by all, and random blocks from lists.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!r = tensor<?x3xi32>      // [query blocks, random key blocks]

func.func @bigbird(%q: !t, %k: !t, %v: !t, %random: !r) -> !t {
  %out = attn.attention %q, %k, %v
    mask(blocked(64, window(left = 1, right = 1) or global(count = 1) or in_table(%random : !r))) : !t, !t, !t -> !t
  return %out : !t
}
