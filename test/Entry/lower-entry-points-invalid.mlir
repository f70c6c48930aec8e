// RUN: attn-opt %s --attn-tile-attention --attn-lower-entry-points --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @no_scratch(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{says nothing of the memory its tasks need: run convert-attn-tile-to-cpu first, or write scratch([base, per_dim, per_value_dim])}}
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<>) : !t, !t, !t -> !t
  return %o : !t
}
