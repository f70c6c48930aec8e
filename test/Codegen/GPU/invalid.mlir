// RUN: attn-opt %s --split-input-file --verify-diagnostics --attn-select-schedule=chip=sm_80 --attn-tile-attention --convert-attn-tile-to-gpu

func.func @unknown(%q: tensor<?x?x?x?xbf16>) -> tensor<?x?x?x?xbf16> {
  // expected-error @below {{GPU kernels need head_dim and value dimension in the types; write them in place of '?'}}
  %out = attn.attention %q, %q, %q : tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16>, tensor<?x?x?x?xbf16> -> tensor<?x?x?x?xbf16>
  return %out : tensor<?x?x?x?xbf16>
}

// -----

func.func @wide(%q: tensor<?x?x?x64xf16>, %v: tensor<?x?x?x300xf16>) -> tensor<?x?x?x300xf16> {
  // expected-error @below {{a value dimension of 300 has no GPU code; 256 is the largest. Split the values and run the op once per part}}
  %out = attn.attention %q, %q, %v : tensor<?x?x?x64xf16>, tensor<?x?x?x64xf16>, tensor<?x?x?x300xf16> -> tensor<?x?x?x300xf16>
  return %out : tensor<?x?x?x300xf16>
}
