//===- Lanes.h - One value for each lane of a warp --------------------------===//
//
// Compiler vectors of 32 lanes: the code generator of the host splits them as its registers demand.
#ifndef ATTN_LIB_EMULATOR_RUNTIME_LANES_H
#define ATTN_LIB_EMULATOR_RUNTIME_LANES_H

#include "State.h"

namespace attn::emulator {

template <typename T, int N>
using Vector = T __attribute__((ext_vector_type(N)));

using LanesI32 = Vector<int32_t, kLanes>;
using LanesU32 = Vector<uint32_t, kLanes>;
using LanesU64 = Vector<uint64_t, kLanes>;
using LanesF32 = Vector<float, kLanes>;

template <typename V, typename T>
inline V load(const T *from) {
  V value;
  __builtin_memcpy(&value, from, sizeof(V));
  return value;
}

template <typename V, typename T>
inline void store(T *to, V value) {
  __builtin_memcpy(to, &value, sizeof(V));
}

/// All bits of a lane where `mask` has its bit.
inline LanesU64 expandMask(uint32_t mask) {
  constexpr LanesU32 numbers = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  return -__builtin_convertvector(LanesU32(mask) >> numbers & 1, LanesU64);
}

/// Calls `visit(lane)` for each lane of `mask`.
template <typename F>
inline void forLanes(uint32_t mask, F visit) {
  for (; mask; mask &= mask - 1)
    visit(uint32_t(__builtin_ctz(mask)));
}

inline void report(Warp *warp, FaultKind kind, uint32_t site, uint32_t lane, uint64_t detail = 0, uint32_t other = 0) {
  warp->block->services->report(warp, kind, site, lane, detail, other);
}

/// An instruction that all lanes must execute together. False: it reported a fault.
inline bool checkConvergent(Warp *warp, uint32_t site, uint32_t mask) {
  if (mask == kFullMask)
    return true;
  report(warp, FaultKind::DivergentInstruction, site, __builtin_ctz(mask), mask);
  return false;
}

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RUNTIME_LANES_H
