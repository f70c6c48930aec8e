// RUN: attn-opt %s --attn-tile-attention --convert-attn-tile-to-cpu --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @odd_tile(%q: !t, %k: !t, %v: !t) -> !t {
  // expected-error @below {{a query tile of 50 rows is not a whole number of vectors of 16; change query_tile and tail_tile of its schedule}}
  %o = attn.attention %q, %k, %v schedule(#attn.schedule<query_tile = 50>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

// States, scores and weights from where no rule expects them.
!s = !attn_tile.state<16, 64, 64, log2>
func.func private @foreign(%s: !s, %out: memref<?x64xf32>, %i: index) {
  // expected-error @below {{'attn_tile.finish' has a state that comes from no attn_tile.slot; states of a CPU task live in slots of its workspace, and pass through tile ops, scf.for and scf.if}}
  attn_tile.finish %s, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

!s = !attn_tile.state<16, 64, 64, log2>
func.func private @while(%w: memref<?xf32>, %out: memref<?x64xf32>, %i: index, %c: i1) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  // expected-error @below {{'scf.while' has a state that comes from no attn_tile.slot}}
  %r = scf.while (%s = %slot) : (!s) -> !s {
    scf.condition(%c) %s : !s
  } do {
  ^bb0(%s: !s):
    scf.yield %s : !s
  }
  attn_tile.finish %r, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

func.func private @two_slots(%w: memref<?xf32>, %out: memref<?x64xf32>, %i: index, %c: i1) {
  %one = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  %other = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  // expected-error @below {{'scf.if' hands on a state of one of two slots; a state stays in its slot}}
  %r = scf.if %c -> !attn_tile.state<16, 64, 64, log2> {
    scf.yield %one : !attn_tile.state<16, 64, 64, log2>
  } else {
    scf.yield %other : !attn_tile.state<16, 64, 64, log2>
  }
  attn_tile.finish %r, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

func.func private @two_types(%w: memref<?xf32>, %i: index, %out: memref<?x64xf32>) {
  // expected-note @below {{the other slot}}
  %one = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  // expected-error @below {{differs from another slot of this task in type or key_tile; make them alike: a task has one set of micro-kernels}}
  %other = attn_tile.slot %w[%i] dims(%i, %i) key_tile(32) : memref<?xf32> -> <16, 64, 64, log2>
  attn_tile.finish %one, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  attn_tile.finish %other, %out[%i] : <16, 64, 64, log2>, memref<?x64xf32>
  return
}

// -----

func.func private @scores(%w: memref<?xf32>, %i: index, %tile: !attn_tile.tile<64 by 16>) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  // expected-error @below {{its scores are not those of attn_tile.score or attn_tile.read, then attn_tile.relative, attn_tile.modify and attn_tile.mask in this order (all but the first may be missing), but a CPU computes all of these as one}}
  %weights, %summed = attn_tile.softmax %tile, %slot : <64 by 16>, <16, 64, 64, log2>
  return
}

// -----

func.func private @other_scores(%w: memref<?xf32>, %k: memref<?x64xf32>, %i: index) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  %other = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  %scores = attn_tile.score %other, %k[%i] rows(%i) : <16, 64, 64, log2>, memref<?x64xf32> -> <64 by 16>
  // expected-error @below {{its scores are those of another state; use those of its own}}
  %weights, %summed = attn_tile.softmax %scores, %slot : <64 by 16>, <16, 64, 64, log2>
  return
}

// -----

func.func private @weights(%w: memref<?xf32>, %v: memref<?x64xf32>, %i: index, %tile: !attn_tile.tile<64 by 16>) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  // expected-error @below {{its weights are not those of an attn_tile.softmax of the same state in the same block}}
  %r = attn_tile.accumulate %tile, %v[%i] rows(%i) into %slot : <64 by 16>, memref<?x64xf32>, <16, 64, 64, log2>
  return
}

// -----

func.func private @between(%w: memref<?xf32>, %k: memref<?x64xf32>, %i: index) {
  %slot = attn_tile.slot %w[%i] dims(%i, %i) key_tile(64) : memref<?xf32> -> <16, 64, 64, log2>
  %scores = attn_tile.score %slot, %k[%i] rows(%i) : <16, 64, 64, log2>, memref<?x64xf32> -> <64 by 16>
  %first, %summed = attn_tile.softmax %scores, %slot : <64 by 16>, <16, 64, 64, log2>
  %second, %twice = attn_tile.softmax %scores, %summed : <64 by 16>, <16, 64, 64, log2>
  // expected-error @below {{another tile may be computed between it and its attn_tile.softmax; put it right behind}}
  %r = attn_tile.accumulate %first, %k[%i] rows(%i) into %twice : <64 by 16>, memref<?x64xf32>, <16, 64, 64, log2>
  return
}

// -----

func.func private @for_a_gpu() {
  // expected-error @below {{'attn_tile.commit' has no CPU code: it is of a task for a GPU; leave warps out of the schedule}}
  attn_tile.commit
  return
}
