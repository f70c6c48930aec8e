// Schedules written by hand that there is no code for on a CPU.
// RUN: attn-opt %s --attn-select-schedule --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xf32>
func.func @warps(%t: !t) -> !t {
  // expected-error @below {{its schedule has warps = 4, which cut it for a GPU, but the target is a CPU; leave warps out}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 64, warps = 4>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @odd(%t: !t) -> !t {
  // expected-error @below {{its schedule has query_tile = 50, which is no multiple of 16, the floats of a vector of the target}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 50>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @odd_tail(%t: !t) -> !t {
  // expected-error @below {{its schedule has tail_tile = 8, which is no multiple of 16, the floats of a vector of the target}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<tail_tile = 8>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xf32>
func.func @wide(%t: !t) -> !t {
  // expected-error @below {{its schedule has query_tile = 4096, but a tile has at most 16 vectors, here 256 rows}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 4096>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

// Every op is asked, not the first alone.
!t = tensor<?x?x?x64xf32>
func.func @second(%t: !t) -> !t {
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<>) : !t, !t, !t -> !t
  // expected-error @below {{its schedule has warps = 1}}
  %p = attn.attention %o, %t, %t schedule(#attn.schedule<warps = 1>) : !t, !t, !t -> !t
  return %p : !t
}
