//===- MicroKernelsDetail.h - Shared by the files of MicroKernels -*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H
#define ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H

#include "MicroKernels.h"

namespace attn::cpu {

struct MicroKernels::Body {
  Emit e;
  ValueRange args;
  Values results;
};

/// Key rows of a register block: 24 accumulators of 32 registers (12 of 16) leave room for the vectors of one step and
/// a broadcast. More than 8 rows would need more row pointers than there are registers.
inline int64_t blockRows(const RegisterBlock &block, int64_t vectors) {
  return std::clamp<int64_t>(block.rows * 3 / vectors, 1, 8);
}

/// Columns of a value block stand side by side, so a narrow tile can have more of them to hide the latency of an FMA.
inline int64_t accumulateRows(const RegisterBlock &block, int64_t vectors) {
  return std::clamp<int64_t>(block.rows * 3 / vectors, 1, 16);
}

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_MICROKERNELSDETAIL_H
