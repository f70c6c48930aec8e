// Documents packed into a row: the plan needs the captured ids on the host, the kernel on the GPU.
!q = tensor<?x2x?x64xbf16>

func.func @packed(%q: !q, %k: !q, %v: !q, %doc: tensor<?x?xi32>) -> !q {
  %o = attn.attention %q, %k, %v mask(causal and same_document(%doc : tensor<?x?xi32>)) : !q, !q, !q -> !q
  return %o : !q
}
