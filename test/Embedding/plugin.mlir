// A stock mlir-opt that loads the plugin knows the dialect, runs its own passes over it, and ours.
// REQUIRES: plugin
// RUN: mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(func.func(cse,canonicalize))' | FileCheck %s
// RUN: mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(attn-select-schedule{query-tile=32 key-tile=64})' \
// RUN:   | FileCheck %s --check-prefix=SCHEDULE
// RUN: mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(attn-select-schedule,attn-tile-attention)' \
// RUN:   | FileCheck %s --check-prefix=TILE
// RUN: mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(attn-to-llvm)' \
// RUN:   | FileCheck %s --check-prefix=LLVM --implicit-check-not=attn.attention --implicit-check-not=attn_tile
// RUN: not mlir-opt %s --load-dialect-plugin=%plugin --pass-pipeline='builtin.module(convert-attn-tile-to-cpu{lanes=x})' 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OPTION
// RUN: llvm-nm -D --defined-only %plugin | FileCheck %s --check-prefix=SYMBOLS --implicit-check-not='{{ T _ZNK?4mlir}}'
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// No strong symbol of MLIR itself: the host brings it, and there must be one.
// SYMBOLS: mlirGetDialectPluginInfo

// Our passes with their options, one stage after the other, down to code.
// SCHEDULE-COUNT-2: attn.attention {{.*}} schedule(#attn.schedule<query_tile = 32, key_tile = 64,
// TILE: attn_tile.kernel
// TILE: attn_tile.softmax
// LLVM: llvm.func @twice(
// OPTION: --lanes option: 'x' value invalid

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
