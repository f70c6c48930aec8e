// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Slips in the short form of masks.

// An unknown name.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{unknown predicate 'casual'; known are causal, window, dilated_window, stride, same_block, chunk_lookback, local_blocks, last_columns, same_row, same_column, local_blocks_2d, neighborhood, neighborhood_2d, prefix, key_length, global, same_document, heads, block_mask, column_in, row_in, in_table, blocked}}
  %o = attn.attention %t, %t, %t mask(casual) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Nothing.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected a predicate; known are causal, window}}
  %o = attn.attention %t, %t, %t mask() : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A parameter that is not known.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{window has no parameter 'width'; its parameters are: left, right}}
  %o = attn.attention %t, %t, %t mask(window(width = 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No parameters.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{causal has too many arguments; it takes no parameters}}
  %o = attn.attention %t, %t, %t mask(causal(3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Too many parameters.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{window has too many arguments; its parameters are: left, right}}
  %o = attn.attention %t, %t, %t mask(window(1, 2, 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Given twice.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' is given twice}}
  %o = attn.attention %t, %t, %t mask(window(1, left = 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A required parameter.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'attn.stride' op requires attribute 'size'}}
  %o = attn.attention %t, %t, %t mask(stride) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A captured tensor.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{same_document needs a captured tensor: write same_document(%tensor : type), with a tensor from outside}}
  %o = attn.attention %t, %t, %t mask(same_document) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No captured tensor.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{causal takes no captured tensor}}
  %o = attn.attention %t, %t, %t mask(causal(%t : tensor<?x?x?x64xf32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// One captured tensor.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi32>) {
  // expected-error@+1 {{same_document takes one captured tensor}}
  %o = attn.attention %t, %t, %t mask(same_document(%m : tensor<?x?xi32>, %m : tensor<?x?xi32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// The type of a captured tensor.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: i32) {
  // expected-error@+1 {{same_document needs a ranked tensor, not 'i32'}}
  %o = attn.attention %t, %t, %t mask(same_document(%m : i32)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// The rank of a set.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?xi32>) {
  // expected-error@+1 {{in_table takes a set of rank 2 to 4, but 'tensor<?xi32>' has rank 1}}
  %o = attn.attention %t, %t, %t mask(in_table(%m : tensor<?xi32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Block size.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block size must be at least 1, not 0}}
  %o = attn.attention %t, %t, %t mask(blocked(0, causal)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Blocks of blocks.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{blocked() does not nest; write the product of the sizes}}
  %o = attn.attention %t, %t, %t mask(blocked(4, blocked(4, causal))) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Neighborhood speaks of tokens.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{neighborhood needs token positions; move it out of blocked()}}
  %o = attn.attention %t, %t, %t mask(blocked(4, neighborhood(7))) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}
