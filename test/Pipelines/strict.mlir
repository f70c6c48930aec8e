// U5: what costs speed and does not follow from the pattern is told, each at its place; with --strict it is an error.

// RUN: attn-compile %s -o %t.o 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: rm %t.o
// RUN: not attn-compile %s --strict -o %t.o 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: not ls %t.o
// RUN: attn-compile %s --strict --function=plain -o %t.o 2>&1 | FileCheck %s --check-prefix=PLAIN --allow-empty
// RUN: ls %t.o
// RUN: attn-compile %s --emit=report | FileCheck %s --check-prefix=REPORT

// PLAIN-NOT: {{remark|error}}

!t = tensor<?x?x?x64xf32>
!g = tensor<?x?xf32>

// REMARK: strict.mlir:[[@LINE+4]]:{{.*}}: remark: 'stride(size = 128)' keeps one key in 128 but stands in an 'or' or 'not'
// ERROR: strict.mlir:[[@LINE+3]]:{{.*}}: error: 'stride(size = 128)' keeps one key in 128
// REPORT: fallbacks  line [[@LINE+2]]: 'stride(size = 128)' keeps one key in 128
func.func @scattered(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and not (window(left = 127) and stride(size = 128))) : !t, !t, !t -> !t
  return %out : !t
}

// A comparison of floats is only known pair by pair: every tile is partial.
// REMARK: strict.mlir:[[@LINE+10]]:{{.*}}: remark: 'arith.cmpf' cannot be read over tiles: 'tensor.extract' works on floating-point numbers
// REMARK-SAME: capture an integer or i1 tensor
// ERROR: strict.mlir:[[@LINE+8]]:{{.*}}: error: 'arith.cmpf' cannot be read over tiles
// REPORT: fallbacks  line [[@LINE+7]]: 'arith.cmpf' cannot be read over tiles
func.func @floats(%q: !t, %k: !t, %v: !t, %gate: !g) -> !t {
  %zero = arith.constant 0.0 : f32
  %out = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %past = attn.causal %i, %j
    %x = tensor.extract %gate[%b, %j] : !g
    %open = arith.cmpf ogt, %x, %zero : f32
    %keep = arith.andi %past, %open : i1
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %out : !t
}

// A stride that makes smaller problems is none.
func.func @plain(%q: !t, %k: !t, %v: !t) -> !t {
  %out = attn.attention %q, %k, %v mask(causal and stride(size = 128)) : !t, !t, !t -> !t
  return %out : !t
}
