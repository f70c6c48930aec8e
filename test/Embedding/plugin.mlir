// A stock mlir-opt that loads the plugin knows the dialect and runs passes over it.
// REQUIRES: plugin
// RUN: mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(func.func(cse,canonicalize))' | FileCheck %s
// RUN: llvm-nm -D --defined-only %plugin | FileCheck %s --check-prefix=SYMBOLS --implicit-check-not='{{ T _ZNK?4mlir}}'
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// No strong symbol of MLIR itself: the host brings it, and there must be one.
// SYMBOLS: mlirGetDialectPluginInfo

// WITHOUT: error: Dialect `attn' not found

!t = tensor<1x2x128x64xf32>

// The two attentions are one: cse sees that attn.attention is pure, and compares the regions.
// CHECK-LABEL: func.func @twice
// CHECK: %[[O:.+]] = attn.attention
// CHECK-NOT: attn.attention
// CHECK: return %[[O]], %[[O]]
func.func @twice(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  %a = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  %b = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return %a, %b : !t, !t
}
