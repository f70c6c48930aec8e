!t = tensor<?x?x?x64xf32>
!z = tensor<?x?x?xf32>

func.func @three(%q: !t, %k: !t, %v: !t) -> (!t, !z) {
  %o, %z = attn.attention %q, %k, %v mask(causal and (window(left = 15) or stride(size = 64) or prefix(length = 8))) : !t, !t, !t -> !t, !z
  return %o, %z : !t, !z
}

func.func @joined(%q: !t, %k: !t, %v: !t, %m: !t, %y: !z) -> !t {
  %o = attn.attention %q, %k, %v join(%m, %y : !t, !z) mask(causal and (stride(size = 64) or window(left = 15))) : !t, !t, !t -> !t
  return %o : !t
}

func.func @blocks(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal and (same_block(size = 64) or last_columns(block = 64, count = 8))) : !t, !t, !t -> !t
  return %o : !t
}

func.func @coarse(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(causal and (window(left = 2000) or stride(size = 1024))) : !t, !t, !t -> !t
  return %o : !t
}

func.func @by_hand(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.attention %q, %k, %v mask(window(left = 3) or stride(size = 64)) schedule(#attn.schedule<query_tile = 16>) : !t, !t, !t -> !t
  return %o : !t
}
