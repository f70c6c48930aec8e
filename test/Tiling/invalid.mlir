// RUN: attn-opt %s --attn-tile-attention --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @no_schedule(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{has no schedule: run attn-select-schedule first, or write schedule(#attn.schedule<...>)}}
  %o = attn.attention %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @wrong_reindexing(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{its schedule has reindex = residue, reindex_size = 5, but the mask is not known to keep to one class of that; use reindex = dense, or leave it to attn-select-schedule}}
  %o = attn.attention %q, %k, %v mask(causal) schedule(#attn.schedule<reindex = residue, reindex_size = 5>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

// A divisor of the stride will do; a multiple will not.
!t = tensor<?x?x?x64xf32>
func.func @strides(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  %a = attn.attention %q, %k, %v mask(stride(12)) schedule(#attn.schedule<reindex = residue, reindex_size = 4>) : !t, !t, !t -> !t
  // expected-error @below {{reindex_size = 24, but the mask}}
  %b = attn.attention %q, %k, %v mask(stride(12)) schedule(#attn.schedule<reindex = residue, reindex_size = 24>) : !t, !t, !t -> !t
  return %a, %b : !t, !t
}

// -----

// So will several blocks together, but no part of one.
!t = tensor<?x?x?x64xf32>
func.func @blocks(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  %a = attn.attention %q, %k, %v mask(same_block(12)) schedule(#attn.schedule<reindex = block, reindex_size = 24>) : !t, !t, !t -> !t
  // expected-error @below {{reindex_size = 4, but the mask}}
  %b = attn.attention %q, %k, %v mask(same_block(12)) schedule(#attn.schedule<reindex = block, reindex_size = 4>) : !t, !t, !t -> !t
  return %a, %b : !t, !t
}
