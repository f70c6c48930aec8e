// RUN: attn-opt %s -split-input-file -verify-diagnostics

// Slips in the short form of masks.

// An unknown name.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{unknown predicate 'casual', did you mean causal? known are causal, window, dilated_window, stride, same_block, chunk_lookback, local_blocks, last_columns, same_row, same_column, local_blocks_2d, neighborhood, neighborhood_2d, prefix, key_length, global, same_document, heads, block_mask, column_in, row_in, in_table, blocked}}
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
  // expected-error@+1 {{'left' of window is given twice; leave one out, or name each argument}}
  %o = attn.attention %t, %t, %t mask(window(1, left = 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A required parameter.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{stride needs 'size': write stride(size = 8)}}
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
  // expected-error@+1 {{block size must be at least 1 and below 2^31, not 0}}
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

// -----

// A name far from all.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{unknown predicate 'lookahead'; known are causal, window}}
  %o = attn.attention %t, %t, %t mask(lookahead) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A capital letter.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{unknown predicate 'Causal', did you mean causal?}}
  %o = attn.attention %t, %t, %t mask(Causal) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Nothing after or.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected a predicate; known are}}
  %o = attn.attention %t, %t, %t mask(causal or) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Nothing before or.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected a predicate; known are}}
  %o = attn.attention %t, %t, %t mask(or causal) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Nothing after not.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected a predicate; known are}}
  %o = attn.attention %t, %t, %t mask(not) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Another operator.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate, not 'xor'; write (a and not b) or (b and not a)}}
  %o = attn.attention %t, %t, %t mask(causal xor stride(4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No operator.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate, not 'stride'}}
  %o = attn.attention %t, %t, %t mask(causal stride(4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A comma for an operator.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate}}
  %o = attn.attention %t, %t, %t mask(causal, stride(4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// The mask is not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate}}
  %o = attn.attention %t, %t, %t mask(window(left = 3) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Parentheses are not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate}}
  %o = attn.attention %t, %t, %t mask((causal or stride(4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Arguments are not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ',' or ')' after an argument of window}}
  %o = attn.attention %t, %t, %t mask(window(left = 3 and causal) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No comma between arguments.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ',' or ')' after an argument of window}}
  %o = attn.attention %t, %t, %t mask(window(left = 3 right = 4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No parentheses around arguments.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected 'and', 'or' or ')' after a predicate}}
  %o = attn.attention %t, %t, %t mask(window 4) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// No equals sign.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected '=' after 'right', as in window(right = 8)}}
  %o = attn.attention %t, %t, %t mask(window(right 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A fraction.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(left = 1.5)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A negative fraction.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(left = -1.5)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A word.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(left = all)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A list.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(left = [3])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// More than 64 bits.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(left = 99999999999999999999)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Nothing after a comma.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window must be an integer, as in window(left = 8)}}
  %o = attn.attention %t, %t, %t mask(window(right = 3,)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Given twice by name.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'left' of window is given twice; leave one out, or name each argument}}
  %o = attn.attention %t, %t, %t mask(window(left = 1, left = 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// One of two required parameters.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{chunk_lookback needs 'before': write chunk_lookback(size = 8, before = 2)}}
  %o = attn.attention %t, %t, %t mask(chunk_lookback(4)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Required after optional ones.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{dilated_window needs 'dilation': write dilated_window(dilation = 8)}}
  %o = attn.attention %t, %t, %t mask(dilated_window(left = 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Empty parentheses say nothing.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{stride needs 'size': write stride(size = 8)}}
  %o = attn.attention %t, %t, %t mask(stride()) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A number where a list is due.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'tokens' of global must be a list of integers, as in global(tokens = [2, 3])}}
  %o = attn.attention %t, %t, %t mask(global(tokens = 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A fraction in a list.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'tokens' of global must be a list of integers, as in global(tokens = [2, 3])}}
  %o = attn.attention %t, %t, %t mask(global(tokens = [1, 2.5])) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A list is not closed.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ',' or ']' after a number of a list}}
  %o = attn.attention %t, %t, %t mask(global(tokens = [1, 2)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A pair.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{'size' of neighborhood_2d must be a list of integers, as in neighborhood_2d(width = 8, size = [2, 3])}}
  %o = attn.attention %t, %t, %t mask(neighborhood_2d(8, 3)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A captured tensor beside a parameter.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block_mask needs a captured tensor: write block_mask(size = 8, %tensor : type)}}
  %o = attn.attention %t, %t, %t mask(block_mask(64)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A parameter beside a captured tensor.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi32>) {
  // expected-error@+1 {{block_mask needs 'size': write block_mask(size = 8, %tensor : type)}}
  %o = attn.attention %t, %t, %t mask(block_mask(%m : tensor<?x?xi32>)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A captured tensor without type.
func.func @f(%t: tensor<?x?x?x64xf32>, %m: tensor<?x?xi32>) {
  // expected-error@+1 {{expected ':' and the type of the captured tensor, as in same_document(%tensor : type)}}
  %o = attn.attention %t, %t, %t mask(same_document(%m)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Blocks of nothing.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{blocked needs a block size and a mask, as in blocked(64, causal)}}
  %o = attn.attention %t, %t, %t mask(blocked) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// Blocks without a mask.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{expected ',' and a mask after the block size, as in blocked(64, causal)}}
  %o = attn.attention %t, %t, %t mask(blocked(64)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A fraction of a block.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{the block size must be an integer, as in blocked(64, causal)}}
  %o = attn.attention %t, %t, %t mask(blocked(1.5, causal)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}

// -----

// A block beyond all tokens.
func.func @f(%t: tensor<?x?x?x64xf32>) {
  // expected-error@+1 {{block size must be at least 1 and below 2^31, not 2147483648}}
  %o = attn.attention %t, %t, %t mask(blocked(2147483648, causal)) : tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32>, tensor<?x?x?x64xf32> -> tensor<?x?x?x64xf32>
  return
}
