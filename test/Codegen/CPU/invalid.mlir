// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @odd_tile(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{a query tile of 50 rows is not a whole number of vectors of 16; change query_tile and tail_tile of its schedule}}
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 50>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Tiles are cut for every element type; the CPU has code for one.
!h = tensor<?x?x?x64xf16>
func.func @half(%q: !h, %k: !h, %v: !h) -> !h {
  // expected-error @below {{element type 'f16' has no CPU code yet; use f32 tensors}}
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<>) : !h, !h, !h -> !h
  return %o : !h
}

// -----

!b = tensor<?x?x?x64xbf16>
func.func @brain(%q: !b, %k: !b, %v: !b) -> (!b, tensor<?x?x?xf32>) {
  // expected-error @below {{element type 'bf16' has no CPU code yet; use f32 tensors}}
  %o, %lse = attn.attention %q, %k, %v schedule(#attn.schedule<>) : !b, !b, !b -> !b, tensor<?x?x?xf32>
  return %o, %lse : !b, tensor<?x?x?xf32>
}
