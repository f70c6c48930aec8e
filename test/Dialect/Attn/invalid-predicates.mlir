// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Every numbered constraint of AttnPredicates.td (P).

// P1: a bound.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{needs left, right or both; without a bound it keeps everything (P1)}}
  %o = attn.attention %t, %t, %t mask(window) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P1: range of left.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{left must be at least 0, not -1 (P1)}}
  %o = attn.attention %t, %t, %t mask(window(left = -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P1: range of right.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{right must be at least 0, not -1 (P1)}}
  %o = attn.attention %t, %t, %t mask(window(right = -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P1: no number exceeds any extent.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{left must be below 2^31, not 2147483648 (P1)}}
  %o = attn.attention %t, %t, %t mask(window(left = 2147483648)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P2: range.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{left must be at least 0, not -3 (P2)}}
  %o = attn.attention %t, %t, %t mask(dilated_window(left = -3, dilation = 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P2: range.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{right must be at least 0, not -3 (P2)}}
  %o = attn.attention %t, %t, %t mask(dilated_window(right = -3, dilation = 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P3: dilation.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{dilation must be at least 1, not 0 (P3)}}
  %o = attn.attention %t, %t, %t mask(dilated_window(left = 3, dilation = 0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: stride.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(stride(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: same_block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(same_block(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: chunk_lookback.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(chunk_lookback(0, 1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: local_blocks.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(local_blocks(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: neighborhood.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(neighborhood(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P4: block_mask.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi1>) {
  // expected-error@+1 {{size must be at least 1, not 0 (P4)}}
  %o = attn.attention %t, %t, %t mask(block_mask(0, %m : tensor<?x?xi1>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P5: chunk_lookback.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{before must be at least 0, not -1 (P5)}}
  %o = attn.attention %t, %t, %t mask(chunk_lookback(4, -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P5: local_blocks.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{before must be at least 0, not -1 (P5)}}
  %o = attn.attention %t, %t, %t mask(local_blocks(4, before = -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P5: local_blocks.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{after must be at least 0, not -1 (P5)}}
  %o = attn.attention %t, %t, %t mask(local_blocks(4, after = -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P6: block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block must be at least 1, not 0 (P6)}}
  %o = attn.attention %t, %t, %t mask(last_columns(0, 1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P6: count.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{count must be at least 1, not 0 (P6)}}
  %o = attn.attention %t, %t, %t mask(last_columns(4, 0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P6: count in block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{count 5 must be at most block 4 (P6)}}
  %o = attn.attention %t, %t, %t mask(last_columns(4, 5)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P7: same_row.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{width must be at least 1, not 0 (P7)}}
  %o = attn.attention %t, %t, %t mask(same_row(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P7: same_column.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{width must be at least 1, not 0 (P7)}}
  %o = attn.attention %t, %t, %t mask(same_column(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P7: local_blocks_2d.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{width must be at least 1, not 0 (P7)}}
  %o = attn.attention %t, %t, %t mask(local_blocks_2d(0, [1, 1], [0, 0])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P7: neighborhood_2d.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{width must be at least 1, not 0 (P7)}}
  %o = attn.attention %t, %t, %t mask(neighborhood_2d(0, [3, 3])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P8: block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block must be [rows, columns], not 1 numbers (P8)}}
  %o = attn.attention %t, %t, %t mask(local_blocks_2d(8, [1], [0, 0])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P8: block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block columns must be at least 1, not 0 (P8)}}
  %o = attn.attention %t, %t, %t mask(local_blocks_2d(8, [1, 0], [0, 0])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P8: flange.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{flange rows must be at least 0, not -1 (P8)}}
  %o = attn.attention %t, %t, %t mask(local_blocks_2d(8, [1, 1], [-1, 0])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P9: size.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size must be [rows, columns], not 3 numbers (P9)}}
  %o = attn.attention %t, %t, %t mask(neighborhood_2d(8, [3, 3, 3])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P9: size.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{size rows must be at least 1, not 0 (P9)}}
  %o = attn.attention %t, %t, %t mask(neighborhood_2d(8, [0, 3])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P10: length.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{length must be at least 1, not 0 (P10)}}
  %o = attn.attention %t, %t, %t mask(prefix(0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P11: lengths are integers.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?xf32>) {
  // expected-error@+1 {{lengths must have integer elements, but is 'tensor<?xf32>' (P11)}}
  %o = attn.attention %t, %t, %t mask(key_length(%m : tensor<?xf32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P11: rank.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi32>) {
  // expected-error@+1 {{lengths must be [batch] or of rank 0, but 'tensor<?x?xi32>' has rank 2 (P11)}}
  %o = attn.attention %t, %t, %t mask(key_length(%m : tensor<?x?xi32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P12: one of both.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{needs either count or tokens, not both and not neither (P12)}}
  %o = attn.attention %t, %t, %t mask(global) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P12: not both.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{needs either count or tokens, not both and not neither (P12)}}
  %o = attn.attention %t, %t, %t mask(global(1, [0])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P12: count.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{count must be at least 1, not 0 (P12)}}
  %o = attn.attention %t, %t, %t mask(global(count = 0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P12: tokens.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{tokens is empty; name a token or leave the predicate out (P12)}}
  %o = attn.attention %t, %t, %t mask(global(tokens = [])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P12: tokens.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{a token must be at least 0, not -1 (P12)}}
  %o = attn.attention %t, %t, %t mask(global(tokens = [4, -1])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P13: documents are integers.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xf32>) {
  // expected-error@+1 {{documents must have integer elements, but is 'tensor<?x?xf32>' (P13)}}
  %o = attn.attention %t, %t, %t mask(same_document(%m : tensor<?x?xf32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P13: rank.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?xi32>) {
  // expected-error@+1 {{documents must be [batch, tokens], but 'tensor<?xi32>' has rank 1 (P13)}}
  %o = attn.attention %t, %t, %t mask(same_document(%m : tensor<?xi32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P14: the table is of integers.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xf32>) {
  // expected-error@+1 {{table must have integer elements, but is 'tensor<?x?xf32>' (P14)}}
  %o = attn.attention %t, %t, %t mask(block_mask(64, %m : tensor<?x?xf32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P14: rank.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?xi8>) {
  // expected-error@+1 {{table must be [query blocks, key blocks], [heads, ...] or [batch, heads, ...], but 'tensor<?xi8>' has rank 1 (P14)}}
  %o = attn.attention %t, %t, %t mask(block_mask(64, %m : tensor<?xi8>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P15: a set is of integers.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?xf32>) {
  // expected-error@+1 {{set must have integer elements, but is 'tensor<?xf32>' (P15)}}
  %o = attn.attention %t, %t, %t mask(column_in(%m : tensor<?xf32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P15: as many indices as the set has rows of rows.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi32>) {
  %o = attn.attention %t, %t, %t mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    // expected-error@+1 {{set must be of rank 1, one more than there are indices, but 'tensor<?x?xi32>' has rank 2 (P15)}}
    %0 = attn.contains %m[], %j : tensor<?x?xi32>
    attn.yield %0 : i1
  } : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P16: period.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{period must be at least 1, not 0 (P16)}}
  %o = attn.attention %t, %t, %t mask(heads(0, 0)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P16: index.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{index must be at least 0, not -1 (P16)}}
  %o = attn.attention %t, %t, %t mask(heads(2, -1)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// P16: index in period.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{index 2 must be less than period 2 (P16)}}
  %o = attn.attention %t, %t, %t mask(heads(2, 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}
