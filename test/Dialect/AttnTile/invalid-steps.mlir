// RUN: attn-opt %s -split-input-file -verify-diagnostics

// T22: no such function.
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{@code is no function of this module; define it (T22)}}
  %o = attn_tile.step @code(%x) units([0, 0, 1]) extents([]) contiguous([]) multiples([]) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// T22: a memref of another type.
func.func private @code(memref<?xf16>, memref<?xf32>, index)
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{it must take the memrefs of inputs and outputs, then an index, and return nothing (T22)}}
  %o = attn_tile.step @code(%x) units([0, 0, 1]) extents([]) contiguous([]) multiples([]) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// T23: a dimension too many.
func.func private @code(memref<?xf32>, memref<?xf32>, index)
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{its units must be triples of a tensor, a dimension of it and a size from 1 up (T23)}}
  %o = attn_tile.step @code(%x) units([0, 1, 1]) extents([]) contiguous([]) multiples([]) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// T23: half a pair.
func.func private @code(memref<?xf32>, memref<?xf32>, index)
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{its multiples must be quadruples: a tensor and a dimension of it, twice (T23)}}
  %o = attn_tile.step @code(%x) units([0, 0, 1]) extents([]) contiguous([]) multiples([0, 0]) : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

// T23: a tie of nothing.
func.func private @code(memref<?xf32>, memref<?xf32>, index)
func.func @f(%x: tensor<?xf32>) {
  // expected-error@+1 {{its extents have ["batch"]; write a name, pairs of tensor and dimension and, if there is a rule, its five numbers (T23)}}
  %o = attn_tile.step @code(%x) units([0, 0, 1]) extents([["batch"]]) contiguous([]) multiples([]) : (tensor<?xf32>) -> tensor<?xf32>
  return
}
