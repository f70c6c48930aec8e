// RUN: attn-opt %s --attn-tile-attention --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @no_schedule(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{has no schedule: run attn-select-schedule first, or write schedule(#attn.schedule<...>)}}
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}

// -----

!h = tensor<?x?x?x64xf16>
func.func @half(%q: !h, %k: !h, %v: !h) -> !h {
  // expected-error @below {{element type 'f16' has no CPU code yet; use f32 tensors}}
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<>) : !h, !h, !h -> !h
  return %o : !h
}
