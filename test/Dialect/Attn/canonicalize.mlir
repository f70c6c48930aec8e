// RUN: attn-opt %s --canonicalize | FileCheck %s
// RUN: attn-opt %s --canonicalize --cse | attn-opt | FileCheck %s --check-prefix=CSE

!t = tensor<?x?x?x64xf32>

// Windows that must both hold are one window, also with another condition between them.
// CHECK-LABEL: func @intersect
func.func @intersect(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  // CHECK-NEXT: mask(window(left = 255, right = 0)) :
  %0 = attn.attention %q, %k, %v mask(causal and window(left = 255)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(window(left = 3, right = 5)) :
  %1 = attn.attention %q, %k, %v mask(window(3, 9) and window(7, 5)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(stride(size = 8) and window(left = 64, right = 0)) :
  %2 = attn.attention %q, %k, %v mask(causal and stride(8) and window(left = 64)) : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}

// Of two nested windows either of which may hold the wider stays; others keep both.
// CHECK-LABEL: func @nested
func.func @nested(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  // CHECK-NEXT: mask(window(left = 9, right = 3)) :
  %0 = attn.attention %q, %k, %v mask(window(3, 3) or window(9, 3)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal) :
  %1 = attn.attention %q, %k, %v mask(causal or window(3, 0)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(window(left = 3, right = 3) or window(left = 9, right = 0)) :
  %2 = attn.attention %q, %k, %v mask(window(3, 3) or window(9, 0)) : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}

// Windows of positions and windows of block numbers have nothing to do with each other.
// CHECK-LABEL: func @scopes
func.func @scopes(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-NEXT: mask(causal and blocked(8, window(left = 1))) :
  %0 = attn.attention %q, %k, %v mask(causal and blocked(8, window(left = 1))) : !t, !t, !t -> !t
  return %0 : !t
}

// Named predicates become simpler ones.
// CHECK-LABEL: func @simpler
func.func @simpler(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  // CHECK-NEXT: mask(same_block(size = 64) or stride(size = 32)) :
  %0 = attn.attention %q, %k, %v mask(same_row(64) or same_column(32)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(same_block(size = 16) and not same_block(size = 8)) :
  %1 = attn.attention %q, %k, %v mask(chunk_lookback(16, 0) and not local_blocks(8)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(window(left = 3, right = 1) and not window(left = 0, right = 0)) :
  %2 = attn.attention %q, %k, %v mask(dilated_window(3, 1, 1) and not same_block(1)) : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}

// Double negation, repeated conditions, conditions that always hold.
// CHECK-LABEL: func @booleans
func.func @booleans(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  // CHECK-NEXT: mask(causal) :
  %0 = attn.attention %q, %k, %v mask(not not causal) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(causal) :
  %1 = attn.attention %q, %k, %v mask(stride(1) and causal and last_columns(4, 4)) : !t, !t, !t -> !t
  // CHECK-NEXT: mask(prefix(length = 5) and causal) :
  %2 = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %self = attn.causal %i, %i
    %prefix = attn.prefix %j {length = 5}
    %causal = attn.causal %i, %j
    %first = arith.andi %self, %prefix : i1
    %both = arith.andi %first, %causal : i1
    attn.yield %both : i1
  } : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}

// A mask that keeps everything and a score region that changes nothing are left out.
// CHECK-LABEL: func @regions
func.func @regions(%q: !t, %k: !t, %v: !t) -> (!t, !t, !t) {
  // CHECK-NEXT: attn.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} : tensor
  %0 = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    attn.yield %s : f32
  } mask(stride(1) or causal) : !t, !t, !t -> !t
  // CHECK-NEXT: attn.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} mask(causal) : tensor
  %1 = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %zero = arith.constant -0.0 : f32
    %same = arith.addf %s, %zero : f32
    attn.yield %same : f32
  } mask(causal) : !t, !t, !t -> !t
  // CHECK-NEXT: attn.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} score {
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: math.tanh
  // CHECK-NEXT: attn.yield
  // CHECK-NEXT: } : tensor
  %2 = attn.attention %q, %k, %v score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %tanh = math.tanh %s : f32
    attn.yield %tanh : f32
  } : !t, !t, !t -> !t
  return %0, %1, %2 : !t, !t, !t
}

// Constants stay inside the regions, where the readings of a mask look for them.
// CHECK-LABEL: func @constants
func.func @constants(%q: !t, %k: !t, %v: !t) -> !t {
  // CHECK-NEXT: attn.attention {{.*}} mask {
  // CHECK-NEXT: ^bb0
  // CHECK-NEXT: arith.constant 7 : index
  %0 = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %three = arith.constant 3 : index
    %four = arith.constant 4 : index
    %seven = arith.addi %three, %four : index
    %keep = arith.cmpi slt, %j, %seven : index
    attn.yield %keep : i1
  } : !t, !t, !t -> !t
  return %0 : !t
}

// An attention that nobody reads is dropped: it has no effect.
// CHECK-LABEL: func @unused
func.func @unused(%q: !t, %k: !t, %v: !t) {
  // CHECK-NEXT: return
  %0 = attn.attention %q, %k, %v mask(causal) : !t, !t, !t -> !t
  return
}

// Common subexpressions do not stand in the way of the short form.
// CHECK-LABEL: func @common
// CSE-LABEL: func @common
func.func @common(%q: !t, %k: !t, %v: !t) -> (!t, !t) {
  // CSE-NEXT: mask(blocked(64, stride(size = 2) or not prefix(length = 3))) :
  %0 = attn.attention %q, %k, %v mask(blocked(64, stride(2)) or not blocked(64, prefix(3))) : !t, !t, !t -> !t
  // CSE-NEXT: mask {
  %1 = attn.attention %q, %k, %v mask(causal and stride(2) or causal and stride(3)) : !t, !t, !t -> !t
  return %0, %1 : !t, !t
}
