//===- LargestScore.h - The largest score in a partial result ---*- C++ -*-===//
#ifndef ATTN_DIALECT_ATTNTILE_IR_LARGESTSCORE_H
#define ATTN_DIALECT_ATTNTILE_IR_LARGESTSCORE_H

namespace attn::tile {

/// FLT_MAX in the unit of partial results, quarters of a power of two; a little less, so that its log-sum-exp is
/// finite.
constexpr float kLargestScore = 0x1.715474p126f;

} // namespace attn::tile

#endif // ATTN_DIALECT_ATTNTILE_IR_LARGESTSCORE_H
