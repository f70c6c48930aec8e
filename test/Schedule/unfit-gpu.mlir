// Schedules written by hand that there is no code for on a GPU.
// RUN: attn-opt %s --attn-select-schedule=chip=sm_80 --split-input-file --verify-diagnostics

!t = tensor<?x?x?x64xbf16>
func.func @no_warps(%t: !t) -> !t {
  // expected-error @below {{its schedule has warps = 0, but a block of GPU threads has 1 to 32; give it one for every 16 or 32 rows of query_tile}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
func.func @many_warps(%t: !t) -> !t {
  // expected-error @below {{its schedule has warps = 64, but a block of GPU threads has 1 to 32}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 1024, warps = 64>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
func.func @keys(%t: !t) -> !t {
  // expected-error @below {{the tiles of its schedule take 2105344 bytes of shared memory, but a block of sm_80 has 166912; use a smaller query_tile or key_tile, or fewer stages}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 64, key_tile = 4096, warps = 4>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
func.func @stages(%t: !t) -> !t {
  // expected-error @below {{bytes of shared memory, but a block of sm_80 has 166912}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 64, key_tile = 64, warps = 4, stages = 20>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x64xbf16>
func.func @registers(%t: !t) -> !t {
  // expected-error @below {{the tiles of its schedule take 576 registers of a thread for queries, scores and outputs, but there are 255; use a smaller query_tile or key_tile, or more warps}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 128, key_tile = 64, warps = 1>) : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<?x?x?x?xbf16>
func.func @dims(%t: !t) -> !t {
  // expected-error @below {{GPU kernels need head_dim and value dimension in the types; write them in place of '?'}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 16, key_tile = 16, warps = 1>) : !t, !t, !t -> !t
  return %o : !t
}
