//===- Explain.h - How a mask is read, in words ----------------*- C++ -*-===//
//
// For people: the parts of a mask, how each is read over rectangles of positions, and where that reading falls short.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PATTERN_EXPLAIN_H
#define ATTN_PATTERN_EXPLAIN_H

#include "attn/Pattern/Mask.h"
#include <string>
#include <vector>

namespace attn {

/// The mask as the spec says it, with the argument names of the function: "causal and same_document(%doc)". A region
/// without a short form is "a region of 5 ops"; "" without a mask.
std::string describeMask(AttentionOp op);

/// One conjunct of a mask.
struct MaskPart {
  enum class Reading {
    Positions, // from positions alone
    Tables,    // from positions and the least and greatest numbers, or members, of captured tensors
    Classes,   // true for all pairs of a class of the reindexing, so it is not read at all
    Partly,    // an operand cannot be read
    Unknown    // cannot be read
  };
  std::string text; // as in describeMask
  mlir::Location loc;
  Reading reading;
  std::string why; // Partly and Unknown: what cannot be read; Tables: which tensors
};

/// The conjuncts of the mask of `op` in the order of the spec, none without a mask.
std::vector<MaskPart> explainMask(AttentionOp op, const Reindexing &reindexing);

/// Something that costs speed and does not follow from the pattern itself.
struct Fallback {
  mlir::Location loc;
  std::string what, advice;
};

/// What of the mask runs slower than its pattern allows, and what to change.
std::vector<Fallback> findFallbacks(AttentionOp op, const Reindexing &reindexing);

} // namespace attn

#endif // ATTN_PATTERN_EXPLAIN_H
