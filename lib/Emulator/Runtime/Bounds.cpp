//===- Bounds.cpp - Is an access aligned and inside? ------------------------===//
#include "Access.h"

namespace attn::emulator {
namespace {

const Buffer *findBuffer(const ThreadBlock &block, uint64_t begin, uint64_t end) {
  for (uint32_t i = 0; i < block.numBuffers; ++i)
    if (begin >= block.buffers[i].begin && end <= block.buffers[i].end && begin <= end)
      return &block.buffers[i];
  return nullptr;
}

/// Reports the misaligned lanes of `mask` and returns the others.
uint32_t checkAlignment(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  LanesU64 bad = load<LanesU64>(addresses) & (bytes - 1) & expandMask(mask);
  if (__builtin_reduce_or(bad) == 0)
    return mask;
  uint32_t good = mask;
  forLanes(mask, [&](uint32_t lane) {
    if (bad[lane] == 0)
      return;
    report(warp, FaultKind::Misaligned, site, lane, addresses[lane], bytes);
    good &= ~(1u << lane);
  });
  return good;
}

} // namespace

uint32_t checkSharedBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  mask = checkAlignment(warp, site, mask, addresses, bytes);
  uint64_t size = warp->block->sharedBytes;
  LanesU64 active = load<LanesU64>(addresses) & expandMask(mask);
  if (bytes <= size && __builtin_reduce_max(active) <= size - bytes)
    return mask;
  uint32_t good = mask;
  forLanes(mask, [&](uint32_t lane) {
    if (bytes <= size && addresses[lane] <= size - bytes)
      return;
    report(warp, FaultKind::SharedOutOfBounds, site, lane, addresses[lane], bytes);
    good &= ~(1u << lane);
  });
  return good;
}

uint32_t checkGlobalBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                           bool write) {
  mask = checkAlignment(warp, site, mask, addresses, bytes);
  if (mask == 0)
    return 0;
  LanesU64 all = load<LanesU64>(addresses), active = expandMask(mask);
  uint64_t first = __builtin_reduce_min(all | ~active), last = __builtin_reduce_max(all & active);
  const Buffer *buffer = findBuffer(*warp->block, first, last + bytes);
  if (buffer && (buffer->writable || !write))
    return mask;
  uint32_t good = mask;
  forLanes(mask, [&](uint32_t lane) {
    const Buffer *own = findBuffer(*warp->block, addresses[lane], addresses[lane] + bytes);
    if (own && (own->writable || !write))
      return;
    report(warp, own ? FaultKind::ReadOnly : FaultKind::GlobalOutOfBounds, site, lane, addresses[lane], bytes);
    good &= ~(1u << lane);
  });
  return good;
}

} // namespace attn::emulator
