!t = tensor<?x?x?x64xbf16>
!w = tensor<?x?x?x512xbf16>

func.func @dense(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %out : !t
}

func.func @causal(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return %out : !t
}

func.func @narrow(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and window(left = 31)) : !t, !t, !t -> !t
  return %out : !t
}

func.func @blocks(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(same_block(size = 32)) : !t, !t, !t -> !t
  return %out : !t
}

!q8 = tensor<?x16x1x64xbf16>
!k2 = tensor<?x2x?x64xbf16>
func.func @decode(%q: !q8, %k: !k2, %v: !k2) -> !q8 {
  %out = attn.attention %q, %k, %v : !q8, !k2, !k2 -> !q8
  return %out : !q8
}

!q5 = tensor<?x10x7x64xbf16>
func.func @seven(%q: !q5, %k: !k2, %v: !k2) -> !q5 {
  %out = attn.attention %q, %k, %v : !q5, !k2, !k2 -> !q5
  return %out : !q5
}

!q71 = tensor<?x71x2x64xbf16>
!k1 = tensor<?x1x?x64xbf16>
func.func @many(%q: !q71, %k: !k1, %v: !k1) -> !q71 {
  %out = attn.attention %q, %k, %v : !q71, !k1, !k1 -> !q71
  return %out : !q71
}

func.func @wide(%q: !w, %k: !w, %v: !w) -> !w {
  %out = attn.attention %q, %k, %v : !w, !w, !w -> !w
  return %out : !w
}
