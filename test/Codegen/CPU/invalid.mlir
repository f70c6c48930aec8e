// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @odd_tile(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{a query tile of 50 rows is not a whole number of vectors of 16; change query_tile and tail_tile of its schedule}}
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 50>) : !t, !t, !t -> !t
  return %o : !t
}
