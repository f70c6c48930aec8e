// A window, and global tokens whose positions are given at run time; -1 pads a list that is shorter.
!t = tensor<?x?x?x64xf32> // [batch, heads, tokens, head_dim]
!g = tensor<?x?xi32>      // [batch, global tokens]

func.func @globals(%q: !t, %k: !t, %v: !t, %global: !g) -> !t {
  %out = attn.attention %q, %k, %v
    mask(window(left = 64, right = 64) or column_in(%global : !g) or row_in(%global : !g)) : !t, !t, !t -> !t
  return %out : !t
}
