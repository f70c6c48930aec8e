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

} // namespace

uint32_t checkSharedBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  uint64_t size = warp->block->sharedBytes;
  LanesU64 active = load<LanesU64>(addresses) & expandMask(mask);
  if (bytes <= size && __builtin_reduce_max(active) <= size - bytes && __builtin_reduce_or(active & (bytes - 1)) == 0)
    return mask;
  uint32_t good = 0;
  forLanes(mask, [&](uint32_t lane) {
    if (bytes > size || addresses[lane] > size - bytes)
      report(warp, FaultKind::SharedOutOfBounds, site, lane, addresses[lane], bytes);
    else if (addresses[lane] % bytes != 0)
      report(warp, FaultKind::Misaligned, site, lane, addresses[lane], bytes);
    else
      good |= 1u << lane;
  });
  return good;
}

uint32_t checkGlobalBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                           bool write) {
  if (mask == 0)
    return 0;
  LanesU64 all = load<LanesU64>(addresses), active = expandMask(mask);
  uint64_t first = __builtin_reduce_min(all | ~active), last = __builtin_reduce_max(all & active);
  const Buffer *buffer = findBuffer(*warp->block, first, last + bytes);
  if (buffer && (buffer->writable || !write) && __builtin_reduce_or(all & (bytes - 1) & active) == 0) {
    if (buffer->pages)
      forLanes(mask, [&](uint32_t lane) { noteGlobal(warp, site, lane, *buffer, addresses[lane], bytes, write); });
    return mask;
  }
  uint32_t good = 0;
  forLanes(mask, [&](uint32_t lane) {
    const Buffer *own = findBuffer(*warp->block, addresses[lane], addresses[lane] + bytes);
    if (!own)
      report(warp, FaultKind::GlobalOutOfBounds, site, lane, addresses[lane], bytes);
    else if (write && !own->writable)
      report(warp, FaultKind::ReadOnly, site, lane, addresses[lane], bytes);
    else if (addresses[lane] % bytes != 0)
      report(warp, FaultKind::Misaligned, site, lane, addresses[lane], bytes);
    else {
      good |= 1u << lane;
      if (own->pages)
        noteGlobal(warp, site, lane, *own, addresses[lane], bytes, write);
    }
  });
  return good;
}

} // namespace attn::emulator
