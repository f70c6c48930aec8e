// RUN: attn-opt %s --split-input-file --verify-diagnostics --attn-select-schedule=chip=sm_86 --attn-tile-attention --convert-attn-tile-to-gpu

func.func @unknown(%q: tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16> {
  // expected-error @below {{GPU kernels need head_dim and value dimension in the types; write them in place of '?'}}
  %out = attn.attention %q, %q, %q : tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16> -> tensor<?x?x?x?xbf16>
  return %out : tensor<?x?x?x?xbf16>
}

// -----

func.func @wide(%q: tensor<?x?x?x576xf32>) -> tensor<?x?x?x576xf32> {
  // expected-error @below {{head_dim 576 and value dimension 576 need 110592 bytes of shared memory for the smallest tiles, but a block of sm_86 has 101376; use a smaller head_dim or another chip}}
  %out = attn.attention %q, %q, %q : tensor<?x?x?x576xf32>, tensor<?x?x?x576xf32>, tensor<?x?x?x576xf32> -> tensor<?x?x?x576xf32>
  return %out : tensor<?x?x?x576xf32>
}

// -----

func.func @packed(%q: tensor<?x6x?x64xf16>, %k: tensor<?x1x?x64xf16>) -> tensor<?x6x?x64xf16> {
  // expected-error @below {{its schedule packs 4 query heads, which is no divisor of the 6 that share a key head; change pack}}
  %out = attn.attention %q, %k, %k schedule(#attn.schedule<query_tile = 64, warps = 4, pack = 4>)
    : tensor<?x6x?x64xf16>, tensor<?x1x?x64xf16>, tensor<?x1x?x64xf16> -> tensor<?x6x?x64xf16>
  return %out : tensor<?x6x?x64xf16>
}
