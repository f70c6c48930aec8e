// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnOps.td (A) and AttnAttrs.td (S).

// A1: rank.
func.func @f(%q: tensor<8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{query must have rank 4, [batch, heads, tokens, head_dim], but 'tensor<8x100x64xf32>' has rank 3; reshape it (A1)}}
  %o = attn.attention %q, %k, %v : tensor<8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A1: more leading dimensions than batch and heads.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<1x2x8x100x64xf32>) {
  // expected-error@+1 {{value must have rank 4, [batch, heads, tokens, head_dim], but 'tensor<1x2x8x100x64xf32>' has rank 5; reshape it (A1)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<1x2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A2: element type.
func.func @f(%q: tensor<2x8x100x64xf64>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{query has elements of type 'f64'; convert it to f32, f16 or bf16 (A2)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf64>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A2: one element type.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf16>) {
  // expected-error@+1 {{value has elements of type 'f16' where query has 'f32'; convert one of them (A2)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf16> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A2: the output as well.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{output has elements of type 'f16' where query has 'f32'; convert one of them (A2)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf16>
  return
}

// -----

// A3: batch.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<1x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{query and key differ in batch: 2 (dimension 0 of 'tensor<2x8x100x64xf32>') and 1 (dimension 0 of 'tensor<1x8x100x64xf32>'); make them equal (A3)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<1x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A3: batch of value.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<3x8x100x64xf32>) {
  // expected-error@+1 {{query and value differ in batch: 2}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<3x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A3: heads of key and value.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x4x100x64xf32>) {
  // expected-error@+1 {{key and value differ in heads: 8}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x4x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A3: number of keys.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x99x64xf32>) {
  // expected-error@+1 {{key and value differ in number of keys: 100 (dimension 2}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x99x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A3: head_dim.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x32xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{query and key differ in head_dim: 64 (dimension 3}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x32xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A4: grouped heads.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x3x100x64xf32>, %v: tensor<2x3x100x64xf32>) {
  // expected-error@+1 {{8 query heads cannot share 3 key/value heads evenly; make the number of query heads a multiple of it (A4)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x3x100x64xf32>, tensor<2x3x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A5: rank of the output.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{output must have rank 4, [batch, heads, tokens, value_dim], but 'tensor<2x100x64xf32>' has rank 3 (A5)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x100x64xf32>
  return
}

// -----

// A5: the output has the tokens of query.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{output and query differ in tokens: 99}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x99x64xf32>
  return
}

// -----

// A5: the output has the head_dim of value.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x32xf32>) {
  // expected-error@+1 {{output and value differ in value_dim: 64}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x32xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A6: lse is f32.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{lse must be a tensor [batch, heads, tokens] of f32, not 'tensor<2x8x100xf16>' (A6)}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>, tensor<2x8x100xf16>
  return
}

// -----

// A6: shape of lse.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{lse and query differ in heads: 4}}
  %o:2 = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>, tensor<2x4x100xf32>
  return
}

// -----

// A7: head_dim.
func.func @f(%q: tensor<2x8x100x577xf32>, %k: tensor<2x8x100x577xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{query has head_dim 577; it must be from 1 to 576: split the heads (A7)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x577xf32>, tensor<2x8x100x577xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A7: head_dim of value.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x0xf32>) {
  // expected-error@+1 {{value has head_dim 0; it must be from 1 to 576: give it features (A7)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x0xf32> -> tensor<2x8x100x0xf32>
  return
}

// -----

// A7: number of tokens.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x2147483648x64xf32>, %v: tensor<2x8x2147483648x64xf32>) {
  // expected-error@+1 {{value has 2147483648 tokens; fewer than 2^31 can be numbered: split the sequence (A7)}}
  %o = attn.attention %q, %k, %v : tensor<2x8x100x64xf32>, tensor<2x8x2147483648x64xf32>, tensor<2x8x2147483648x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A8: scale.
func.func @f(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x100x64xf32>, %v: tensor<2x8x100x64xf32>) {
  // expected-error@+1 {{scale must be finite, not 0x7F800000 : f32; leave it out for 1 / sqrt(head_dim) (A8)}}
  %o = attn.attention %q, %k, %v scale(0x7F800000 : f32) : tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32>, tensor<2x8x100x64xf32> -> tensor<2x8x100x64xf32>
  return
}

// -----

// A9: arguments of the mask block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{the mask block must take ('index', 'index', 'index', 'index'), not ('index', 'index') (A9)}}
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%i: index, %j: index):
    %0 = attn.causal %i, %j
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A9: arguments of the score block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{the score block must take ('f32', 'index', 'index', 'index', 'index'), not ('f32') (A9)}}
  %o = attn.attention %t, %t, %t score {
  ^bb0(%s: f32):
    attn.yield %s : f32
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A10: what a mask yields.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{must yield 'i1' from a mask region, not 'index' (A10)}}
    attn.yield %i : index
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A10: what a score yields.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %0 = arith.constant true
    // expected-error@+1 {{must yield 'f32' from a score region, not 'i1' (A10)}}
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A10: the terminator.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %0 = attn.causal %i, %j
    // expected-error@+1 {{cannot end a mask region; end it with attn.yield (A10)}}
    llvm.unreachable
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A11: an op that a mask region cannot hold.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %0 = attn.causal %i, %j
    // expected-error@+1 {{cannot stand in a mask region; allowed are: predicates of attn; arith, index and math ops on scalars (integers of up to 64 bits, index, f16, bf16, f32, f64); tensor.extract and tensor.dim (A11)}}
    %1 = scf.if %0 -> i1 {
      scf.yield %0 : i1
    } else {
      scf.yield %0 : i1
    }
    attn.yield %1 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A11: numbers that no back end computes with.
func.func @a11_wide(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>) -> tensor<?x?x?x64xf32> {
  %o = attn.attention %q, %k, %v mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{cannot stand in a mask region; allowed are: predicates of attn; arith, index and math ops on scalars (integers of up to 64 bits}}
    %x = arith.index_cast %i : index to i128
    %y = arith.index_cast %j : index to i128
    %m = arith.cmpi sle, %y, %x : i128
    attn.yield %m : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return %o : tensor<?x?x?x64xf32>
}

// -----

// A11: arithmetic on whole tensors.
func.func @f(%t: tensor<?x?x?x64xf32>, %d: tensor<4xi32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{cannot stand in a mask region; allowed are: predicates of attn; arith, index and math ops on scalars (integers of up to 64 bits}}
    %0 = arith.addi %d, %d : tensor<4xi32>
    %1 = tensor.extract %0[%b] : tensor<4xi32>
    %2 = arith.trunci %1 : i32 to i1
    attn.yield %2 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A11: an op that a score region cannot hold.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{cannot stand in a score region; allowed are: arith, index and math ops on scalars (integers of up to 64 bits, index, f16, bf16, f32, f64); tensor.extract and tensor.dim (A11)}}
    %0 = attn.causal %i, %j
    %1 = arith.uitofp %0 : i1 to f32
    attn.yield %1 : f32
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A12: a run-time scalar.
func.func @f(%t: tensor<?x?x?x64xf32>, %n: index) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{uses a scalar of type 'index' from outside the mask region, which is known only at run time; compute it inside, or pass it in a tensor of rank 0 or [batch] and read it with tensor.extract (A12)}}
    %0 = arith.cmpi slt, %j, %n : index
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A12: a run-time scalar that is yielded.
func.func @f(%t: tensor<?x?x?x64xf32>, %n: i1) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{uses a scalar of type 'i1' from outside the mask region}}
    attn.yield %n : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A13: unranked tensors.
func.func @f(%t: tensor<?x?x?x64xf32>, %n: tensor<*xi32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{reads 'tensor<*xi32>' from outside the mask region; only ranked tensors of integers of up to 64 bits, index, f16, bf16, f32 or f64 can be captured (A13)}}
    %d = tensor.dim %n, %j : tensor<*xi32>
    %0 = arith.cmpi slt, %j, %d : index
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A13: element types.
func.func @f(%t: tensor<?x?x?x64xf32>, %n: tensor<?xcomplex<f32>>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{reads 'tensor<?xcomplex<f32>>' from outside the mask region}}
    %d = tensor.dim %n, %j : tensor<?xcomplex<f32>>
    %0 = arith.cmpi slt, %j, %d : index
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// S1: sizes.
// expected-error@+1 {{query_tile must be at least 1, not 0 (S1)}}
#s = #attn.schedule<query_tile = 0>
func.func private @f() attributes {s = #s}

// -----

// S1: split.
// expected-error@+1 {{split must be at least 0 (0: never split), not -1 (S1)}}
#s = #attn.schedule<split = -1>
func.func private @f() attributes {s = #s}

// -----

// S1: tasks.
// expected-error@+1 {{tasks must be at least 0 (0: as many as there are), not -1 (S1)}}
#s = #attn.schedule<tasks = -1>
func.func private @f() attributes {s = #s}

// -----

// S2: key tiles are made of granules.
// expected-error@+1 {{key_tile 40 must be a multiple of granule 16 (S2)}}
#s = #attn.schedule<key_tile = 40, granule = 16>
func.func private @f() attributes {s = #s}

// -----

// S3: nothing to reindex.
// expected-error@+1 {{reindex = dense needs reindex_size = 1, not 4; leave it out or choose residue or block (S3)}}
#s = #attn.schedule<reindex_size = 4>
func.func private @f() attributes {s = #s}

// -----

// S4: no tile ahead.
// expected-error@+1 {{warps must be at least 0 and stages at least 1, not 4 and 0 (S4)}}
#one = #attn.schedule<query_tile = 64, warps = 4, stages = 0>

// -----

// S5: rows that do not go round.
// expected-error@+1 {{for 4 warps query_tile must be a multiple of 64 or divide it by a multiple of 16 rows, and key_tile be a multiple of 16, not 48 and 128 (S5)}}
#uneven = #attn.schedule<query_tile = 48, warps = 4>

// -----

// S6: more heads than rows.
// expected-error@+1 {{pack must be 1, or with warps up to query_tile, 16, not 17 (S6)}}
#many = #attn.schedule<query_tile = 16, warps = 1, pack = 17>

// -----

// S6: heads packed on a CPU.
// expected-error@+1 {{pack must be 1, or with warps up to query_tile, 48, not 2 (S6)}}
#packed = #attn.schedule<pack = 2>

// -----

// Clauses: unknown.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{unknown clause 'offset'; known are query_rows, key_rows, scale, align, normalizer, relative, join, sink, score, mask and schedule}}
  %o = attn.attention %t, %t, %t offset(3) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: given twice.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{the clause 'mask' is given twice}}
  %o = attn.attention %t, %t, %t mask(causal) mask(causal) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A8: not a number.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scale must be a finite number with a decimal point, as in scale(0.125); leave it out for 1 / sqrt(head_dim) (A8)}}
  %o = attn.attention %t, %t, %t scale(nan) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A8: infinity.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scale must be a finite number with a decimal point, as in scale(0.125); leave it out for 1 / sqrt(head_dim) (A8)}}
  %o = attn.attention %t, %t, %t scale(-inf) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A8: an integer.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scale must be a finite number with a decimal point, as in scale(0.125); leave it out for 1 / sqrt(head_dim) (A8)}}
  %o = attn.attention %t, %t, %t scale(1) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A8: nothing.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scale must be a finite number with a decimal point, as in scale(0.125); leave it out for 1 / sqrt(head_dim) (A8)}}
  %o = attn.attention %t, %t, %t scale() : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: no parenthesis after scale.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(', as in scale(0.125)}}
  %o = attn.attention %t, %t, %t scale 0.125 : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: scale is not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ')' at the end of the clause 'scale'}}
  %o = attn.attention %t, %t, %t scale(0.125, 0.25) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: no parenthesis after align.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(', as in align(bottom_right)}}
  %o = attn.attention %t, %t, %t align bottom_right : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: align is not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ')' at the end of the clause 'align'}}
  %o = attn.attention %t, %t, %t align(bottom_right : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: no parenthesis after mask.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(' and predicates, as in mask(causal), or '{' and a region after 'mask'}}
  %o = attn.attention %t, %t, %t mask causal : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: a score is a region.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '{' and a region after 'score'}}
  %o = attn.attention %t, %t, %t score(causal) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: half of what is joined.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{join takes an output and its log-sum-exp with their types, as in join(%output, %lse : type, type)}}
  %o = attn.attention %t, %t, %t join(%t : tensor<?x?x?x64xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: join without types.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{join takes an output and its log-sum-exp with their types, as in join(%output, %lse : type, type)}}
  %o = attn.attention %t, %t, %t join(%t, %t) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: no parenthesis after schedule.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(', as in schedule(#attn.schedule<query_tile = 48>)}}
  %o = attn.attention %t, %t, %t schedule : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: a schedule is an attribute.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{schedule takes an attribute, as in schedule(#attn.schedule<query_tile = 48>)}}
  %o = attn.attention %t, %t, %t schedule(48) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: schedule is not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ')' at the end of the clause 'schedule'}}
  %o = attn.attention %t, %t, %t schedule(#attn.schedule<query_tile = 48> : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: the values of align.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected one of [top_left, bottom_right]}}
  %o = attn.attention %t, %t, %t align(middle) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A15: type of the output.
func.func @f(%t: tensor<?x?x?x64xf32>, %o: tensor<?x?x?x64xf16>, %z: tensor<?x?x?xf32>) {
  // expected-error@+1 {{joins an output of type 'tensor<?x?x?x64xf16>' where its own is 'tensor<?x?x?x64xf32>'; give one of the same rank and element type (A15)}}
  %r = attn.attention %t, %t, %t join(%o, %z : tensor<?x?x?x64xf16>, tensor<?x?x?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A15: type of the log-sum-exp.
func.func @f(%t: tensor<?x?x?x64xf32>, %o: tensor<?x?x?x64xf32>, %z: tensor<?x?xf32>) {
  // expected-error@+1 {{joins a log-sum-exp of type 'tensor<?x?xf32>'; give a tensor [batch, heads, tokens] of f32 (A15)}}
  %r = attn.attention %t, %t, %t join(%o, %z : tensor<?x?x?x64xf32>, tensor<?x?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A15: value_dim.
func.func @f(%t: tensor<?x?x?x64xf32>, %o: tensor<?x?x?x32xf32>, %z: tensor<?x?x?xf32>) {
  // expected-error@+1 {{joined output and output differ in value_dim: 32 (dimension 3 of 'tensor<?x?x?x32xf32>') and 64 (dimension 3 of 'tensor<?x?x?x64xf32>'); make them equal (A15)}}
  %r = attn.attention %t, %t, %t join(%o, %z : tensor<?x?x?x32xf32>, tensor<?x?x?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A16: rank of the sink.
func.func @f(%t: tensor<?x?x?x64xf32>, %s: tensor<?x?xf32>) {
  // expected-error@+1 {{sink must be a tensor [heads] of f32, not 'tensor<?x?xf32>' (A16)}}
  %r = attn.attention %t, %t, %t sink(%s : tensor<?x?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A16: heads of the sink.
func.func @f(%t: tensor<?x8x?x64xf32>, %s: tensor<4xf32>) {
  // expected-error@+1 {{sink and query differ in heads: 4 (dimension 0 of 'tensor<4xf32>') and 8 (dimension 1 of 'tensor<?x8x?x64xf32>'); make them equal (A16)}}
  %r = attn.attention %t, %t, %t sink(%s : tensor<4xf32>) : tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32>, tensor<?x8x?x64xf32> -> tensor<?x8x?x64xf32>
  return
}

// -----

// A17: a log-sum-exp without a softmax.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{has lse with normalizer(none), but only the weights of a softmax have a sum to speak of; leave one out (A17)}}
  %r, %z = attn.attention %t, %t, %t normalizer(none) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>, tensor<?x?x?xf32>
  return
}

// -----

// A17: a sink without a softmax.
func.func @f(%t: tensor<?x?x?x64xf32>, %s: tensor<?xf32>) {
  // expected-error@+1 {{has sink with normalizer(sigmoid), but only the weights of a softmax have a sum to speak of; leave one out (A17)}}
  %r = attn.attention %t, %t, %t normalizer(sigmoid) sink(%s : tensor<?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: a sink without its type.
func.func @f(%t: tensor<?x?x?x64xf32>, %s: tensor<?xf32>) {
  // expected-error@+1 {{sink takes a tensor of logits with its type, as in sink(%logits : tensor<?xf32>)}}
  %r = attn.attention %t, %t, %t sink(%s) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A18: type of the table.
func.func @f(%t: tensor<?x?x?x64xf32>, %r: tensor<?x?x64xf16>) {
  // expected-error@+1 {{table of relative must be a tensor [heads, distances, head_dim] of 'f32', as query, not 'tensor<?x?x64xf16>' (A18)}}
  %o = attn.attention %t, %t, %t relative(%r : tensor<?x?x64xf16>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A18: width of the bias.
func.func @f(%t: tensor<?x?x?x64xf32>, %r: tensor<?x?x64xf32>, %w: tensor<?x32xf32>) {
  // expected-error@+1 {{bias and query differ in head_dim: 32 (dimension 1 of 'tensor<?x32xf32>') and 64 (dimension 3 of 'tensor<?x?x?x64xf32>'); make them equal (A18)}}
  %o = attn.attention %t, %t, %t relative(%r, %w : tensor<?x?x64xf32>, tensor<?x32xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A18: no distance.
func.func @f(%t: tensor<?x?x?x64xf32>, %r: tensor<?x0x64xf32>) {
  // expected-error@+1 {{table of relative has no distance; give it one (A18)}}
  %o = attn.attention %t, %t, %t relative(%r : tensor<?x0x64xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: three tensors of relative.
func.func @f(%t: tensor<?x?x?x64xf32>, %r: tensor<?x?x64xf32>) {
  // expected-error@+1 {{relative takes a table and perhaps a bias with their types, as in relative(%table, %bias : type, type) or relative(%table : type)}}
  %o = attn.attention %t, %t, %t relative(%r, %r, %r : tensor<?x?x64xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A10: a score region that yields twice.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  %o = attn.attention %t, %t, %t score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{must yield one value from a score region, not 2 (A10)}}
    attn.yield %s, %s : f32, f32
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A19: counted without a softmax.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{counts 2 conditions with normalizer(none), but only a softmax counts; join them by 'or' (A19)}}
  %o = attn.attention %t, %t, %t normalizer(none) mask counted(causal or global(count = 1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Clauses: a counted region.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(' and predicates, as in mask counted(causal or global(count = 1)); a region counts by what it yields}}
  %o = attn.attention %t, %t, %t mask counted {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A20: rank of scores.
func.func @f(%s: tensor<?x?xf32>, %v: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scores must have rank 4, [batch, heads, queries, keys], or 3, the same for all batches, but 'tensor<?x?xf32>' has rank 2; reshape them (A20)}}
  %o = attn.attention scores(%s), %v : tensor<?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A20: elements of scores.
func.func @f(%s: tensor<?x?x?xi32>, %v: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{scores have elements of type 'i32'; convert them to f32, f16 or bf16 (A20)}}
  %o = attn.attention scores(%s), %v : tensor<?x?x?xi32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A20: keys of scores and values.
func.func @f(%s: tensor<?x?x8x30xf32>, %v: tensor<?x?x31x64xf32>) {
  // expected-error@+1 {{scores and value differ in keys: 30 (dimension 3 of 'tensor<?x?x8x30xf32>') and 31 (dimension 2 of 'tensor<?x?x31x64xf32>'); make them equal (A20)}}
  %o = attn.attention scores(%s), %v : tensor<?x?x8x30xf32>, tensor<?x?x31x64xf32> -> tensor<?x?x8x64xf32>
  return
}

// -----

// A20: scores and products with distances.
func.func @f(%s: tensor<?x?x?xf32>, %v: tensor<?x?x?x64xf32>, %r: tensor<?x?x64xf32>) {
  // expected-error@+1 {{takes query and key, perhaps with relative, or scores in place of all these (A20)}}
  %o = attn.attention scores(%s), %v relative(%r : tensor<?x?x64xf32>) : tensor<?x?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A21: what a list is.
func.func @f(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %r: tensor<?xf32>) {
  // expected-error@+1 {{key_rows must be a tensor [batch, groups, rows], [batch, rows] or [rows] of i32 or i64, not 'tensor<?xf32>' (A21)}}
  %o = attn.attention %q, %k, %v key_rows(%r : tensor<?xf32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A21: rank of a list.
func.func @f(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %r: tensor<?x?x?x?xi32>) {
  // expected-error@+1 {{query_rows must be a tensor [batch, groups, rows], [batch, rows] or [rows] of i32 or i64, not 'tensor<?x?x?x?xi32>' (A21)}}
  %o = attn.attention %q, %k, %v query_rows(%r : tensor<?x?x?x?xi32>) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A21: batch of a list.
func.func @f(%q: tensor<3x?x?x64xf32>, %k: tensor<3x?x?x64xf32>, %v: tensor<3x?x?x64xf32>, %r: tensor<2x?xi32>) {
  // expected-error@+1 {{key_rows and key differ in batch: 2 (dimension 0 of 'tensor<2x?xi32>') and 3 (dimension 0 of 'tensor<3x?x?x64xf32>'); make them equal (A21)}}
  %o = attn.attention %q, %k, %v key_rows(%r : tensor<2x?xi32>) : tensor<3x?x?x64xf32>, tensor<3x?x?x64xf32>, tensor<3x?x?x64xf32> -> tensor<3x?x?x64xf32>
  return
}

// -----

// A21: groups of a list.
func.func @f(%q: tensor<?x2x?x64xf32>, %k: tensor<?x2x?x64xf32>, %v: tensor<?x2x?x64xf32>, %r: tensor<?x3x?xi32>) {
  // expected-error@+1 {{key_rows has 3 groups (dimension 1 of 'tensor<?x3x?xi32>'), no multiple of the 2 heads of key; change one of them (A21)}}
  %o = attn.attention %q, %k, %v key_rows(%r : tensor<?x3x?xi32>) : tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  return
}

// -----

// A21: lists and the last key.
func.func @f(%q: tensor<?x?x?x64xf32>, %k: tensor<?x?x?x64xf32>, %v: tensor<?x?x?x64xf32>, %r: tensor<?xi32>) {
  // expected-error@+1 {{has rows by number with align(bottom_right), which counts rows, not what they are numbered; leave it out, or gather the rows with attn.gather_rows (A21)}}
  %o = attn.attention %q, %k, %v query_rows(%r : tensor<?xi32>) align(bottom_right) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A5: tokens of the output are those of the list.
func.func @f(%q: tensor<?x?x9x64xf32>, %k: tensor<?x?x?x64xf32>, %r: tensor<7xi32>) {
  // expected-error@+1 {{output and query_rows differ in tokens: 9 (dimension 2 of 'tensor<?x?x9x64xf32>') and 7 (dimension 0 of 'tensor<7xi32>'); make them equal (A5)}}
  %o = attn.attention %q, %k, %k query_rows(%r : tensor<7xi32>) : tensor<?x?x9x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x9x64xf32>
  return
}

// -----

// A4: heads that are groups of lists.
func.func @f(%q: tensor<?x2x?x64xf32>, %r: tensor<?x4x?xi32>) {
  // expected-error@+1 {{2 query heads cannot share 4 key/value heads evenly; make the number of query heads a multiple of it (A4)}}
  %o = attn.attention %q, %q, %q key_rows(%r : tensor<?x4x?xi32>) : tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32>, tensor<?x2x?x64xf32> -> tensor<?x2x?x64xf32>
  return
}

// -----

// Clauses: rows.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{key_rows takes a tensor of row numbers with its type, as in key_rows(%rows : tensor<?x?xi32>)}}
  %o = attn.attention %t, %t, %t key_rows(%t) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A4: heads of scores.
func.func @f(%s: tensor<3x?x?xf32>, %v: tensor<?x2x?x64xf32>) {
  // expected-error@+1 {{3 query heads cannot share 2 key/value heads evenly; make the number of query heads a multiple of it (A4)}}
  %o = attn.attention scores(%s), %v : tensor<3x?x?xf32>, tensor<?x2x?x64xf32> -> tensor<?x3x?x64xf32>
  return
}

// -----

// Scores: the word alone.
func.func @f(%s: tensor<?x?x?xf32>, %v: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '(' and a tensor, as in scores(%scores), %value}}
  %o = attn.attention scores %s, %v : tensor<?x?x?xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}
