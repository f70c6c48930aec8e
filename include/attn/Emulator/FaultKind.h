//===- FaultKind.h - What the emulator finds wrong --------------------------===//
#ifndef ATTN_EMULATOR_FAULTKIND_H
#define ATTN_EMULATOR_FAULTKIND_H

#include <stdint.h>

namespace attn::emulator {

enum class FaultKind : uint32_t {
  /// Two warps, or lanes of one warp, access the same shared memory, one of them writes, and no barrier lies between.
  Race,
  /// Two blocks access the same global memory, and one of them writes.
  BlockRace,
  /// A read of shared memory that nobody wrote.
  Uninitialized,
  /// An access to shared memory that a copy in flight will write.
  CopyInFlight,
  SharedOutOfBounds,
  GlobalOutOfBounds,
  /// A write to a buffer that is an input.
  ReadOnly,
  Misaligned,
  /// A barrier that not all lanes of a warp reach.
  DivergentBarrier,
  /// Another instruction of the whole warp that not all lanes reach.
  DivergentInstruction,
  /// All warps wait, or have ended.
  Deadlock,
};

} // namespace attn::emulator

#endif // ATTN_EMULATOR_FAULTKIND_H
