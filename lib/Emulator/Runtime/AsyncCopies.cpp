//===- AsyncCopies.cpp - cp.async, as late as the rules allow ---------------===//
//
// A copy moves its bytes when a wait demands it. Until then its target holds the bit pattern of a NaN, so that a
// missing wait shows even where races are not looked for. Groups are counted per warp, not per lane.
#include "Access.h"

using namespace attn::emulator;

namespace {

uint32_t readingLanes(const AsyncCopy &copy, uint32_t mask) {
  uint32_t reading = 0;
  forLanes(mask, [&](uint32_t lane) { reading |= uint32_t(copy.sourceBytes[lane] != 0) << lane; });
  return reading;
}

/// The lanes of `mask` whose source lies in global memory, as far as they read it.
uint32_t checkSources(Warp *warp, AsyncCopy &copy, uint32_t mask) {
  uint32_t reading = readingLanes(copy, mask);
  // A copy of fewer bytes than its size reads no more than these.
  uint32_t whole = 0;
  forLanes(reading, [&](uint32_t lane) { whole |= uint32_t(copy.sourceBytes[lane] == copy.bytes) << lane; });
  uint32_t good = mask & ~whole;
  good |= checkGlobalBounds(warp, copy.site, whole, copy.source, copy.bytes, /*write=*/false);
  forLanes(reading & ~whole, [&](uint32_t lane) {
    uint64_t addresses[kLanes] = {};
    addresses[lane] = copy.source[lane];
    uint32_t one = 1u << lane, inside = one;
    for (uint32_t byte = 0; byte < copy.sourceBytes[lane] && inside; ++byte, ++addresses[lane])
      inside = checkGlobalBounds(warp, copy.site, one, addresses, 1, /*write=*/false);
    good &= ~(one & ~inside);
  });
  return good;
}

void issue(Warp *warp, AsyncCopy &copy) {
  const ThreadBlock &block = *warp->block;
  uint64_t targets[kLanes];
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    targets[lane] = copy.target[lane];
  copy.mask = checkSharedBounds(warp, copy.site, copy.mask, targets, copy.bytes);
  copy.mask = checkSources(warp, copy, copy.mask);
  if (block.counts)
    countGlobal(warp, copy.site, readingLanes(copy, copy.mask), copy.source, copy.bytes);
  forLanes(copy.mask, [&](uint32_t lane) {
    if (block.checks)
      noteWrite(warp, copy.site, lane, targets[lane], copy.bytes, /*inFlight=*/true);
    __builtin_memset(block.shared + targets[lane], 0xff, copy.bytes);
  });
}

void complete(Warp *warp, AsyncCopy &copy, uint32_t mask) {
  const ThreadBlock &block = *warp->block;
  forLanes(copy.mask & mask, [&](uint32_t lane) {
    char *target = block.shared + copy.target[lane];
    uint32_t bytes = copy.sourceBytes[lane];
    __builtin_memset(target, 0, copy.bytes);
    __builtin_memcpy(target, reinterpret_cast<const char *>(copy.source[lane]), bytes);
    if (block.checks)
      noteArrival(warp, copy.target[lane], copy.bytes);
  });
  copy.mask &= ~mask;
}

} // namespace

extern "C" {

void attn_emu_cp_async(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *targets, const uint64_t *sources,
                       uint32_t bytes, const uint32_t *sourceBytes) {
  if (warp->copiesEnd == warp->copiesCapacity)
    warp->block->services->growCopies(warp);
  AsyncCopy &copy = warp->copies[warp->copiesEnd++];
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    copy.target[lane] = targets[lane] > 0xffffffffu ? 0xffffffffu : targets[lane];
    copy.source[lane] = sources[lane];
    copy.sourceBytes[lane] = sourceBytes[lane] < bytes ? sourceBytes[lane] : bytes;
  }
  copy.mask = mask;
  copy.bytes = bytes;
  copy.site = site;
  copy.group = warp->currentGroup;
  issue(warp, copy);
}

void attn_emu_commit_group(Warp *warp) { ++warp->currentGroup; }

/// Completes the lanes of `mask` in all groups but the `pending` newest.
void attn_emu_wait_group(Warp *warp, uint32_t mask, uint32_t pending) {
  for (uint32_t i = warp->copiesBegin; i < warp->copiesEnd; ++i) {
    AsyncCopy &copy = warp->copies[i];
    if (copy.group + pending >= warp->currentGroup)
      break;
    complete(warp, copy, mask);
  }
  while (warp->copiesBegin < warp->copiesEnd && warp->copies[warp->copiesBegin].mask == 0)
    ++warp->copiesBegin;
  if (warp->copiesBegin == warp->copiesEnd)
    warp->copiesBegin = warp->copiesEnd = 0;
}

} // extern "C"
