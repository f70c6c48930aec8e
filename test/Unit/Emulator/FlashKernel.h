//===- FlashKernel.h - A flash-attention kernel for sm_80, as text ----------===//
#ifndef ATTN_TEST_UNIT_EMULATOR_FLASHKERNEL_H
#define ATTN_TEST_UNIT_EMULATOR_FLASHKERNEL_H

#include <string>

namespace attn::emulator::test {

/// What is wrong with the kernel.
enum class Plant {
  Nothing,
  NoWait,
  NoBarrier,
  WrongOffset,
  MisalignedMatrix,
  DivergentBarrier,
  Deadlock,
  UninitializedRead,
  PastTheEnd,
  WriteToInput,
};

/// 4 warps, 64 queries and 64 keys a tile, two stages of keys and values by cp.async, swizzled shared memory.
struct FlashKernel {
  int headDim = 64;
  bool bf16 = true;
  bool causal = false;
  Plant plant = Plant::Nothing;

  static constexpr int kQueries = 64, kKeys = 64, kThreads = 128;
  /// (Q, K, V, O: [head, length, headDim], length: i32) on a grid of (query tiles, heads).
  static const char *arguments();
  std::string body() const;
  unsigned sharedBytes() const { return (kQueries + 4 * kKeys) * headDim * 2; }
};

} // namespace attn::emulator::test

#endif // ATTN_TEST_UNIT_EMULATOR_FLASHKERNEL_H
