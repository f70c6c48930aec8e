//===- MicroKernelsDetail.h - Shared by the files of MicroKernels -*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H
#define ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H

#include "MicroKernels.h"
#include "attn/Schedule/TargetModel.h"

namespace attn::cpu {

struct MicroKernels::Body {
  Emit e;
  ValueRange args;
  Values results;
};

/// Columns of a value block stand side by side, so a tile of one vector can have 16 of them to hide the latency of an
/// FMA. Numbers between would leave a rest of most head dims, and LLVM spills accumulators of blocks of 12.
inline int64_t accumulateRows(const RegisterBlock &block, int64_t vectors) {
  return vectors == 1 && block.rows * 3 >= 16 && !block.compact ? 16 : getBlockRows(block.rows, vectors);
}

/// The dimensions of a state are static or arguments (head_dim, value_dim) that follow the slot.
inline Value dimArgument(Emit &e, int64_t known, Value argument) { return known >= 0 ? e.index(known) : argument; }

/// f32 rounded to bf16, ties away from 0, in the upper halves; weights are neither negative nor near the end of the
/// range.
Value roundWeights(Emit &e, Value x);

/// sum + a b, of pairs of bf16
Value multiplyPairs(Emit &e, Value sum, Value a, Value b);

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H
