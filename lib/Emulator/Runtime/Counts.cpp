//===- Counts.cpp - Bank conflicts and sectors ------------------------------===//
#include "Access.h"

namespace attn::emulator {
namespace {

constexpr uint32_t kBanks = 32, kBankBytes = 4, kSectorBytes = 32;

/// The different values among a few.
struct Distinct {
  uint64_t values[2 * kLanes];
  uint32_t count = 0;

  bool insert(uint64_t value) {
    for (uint32_t i = count; i-- > 0;)
      if (values[i] == value)
        return false;
    values[count++] = value;
    return true;
  }
};

/// Do these lanes use different banks? `unit` is the share of the banks that one lane uses.
bool useDifferentBanks(uint32_t mask, const uint64_t *addresses, uint32_t unit) {
  uint32_t units = kBanks * kBankBytes / unit, seen = 0;
  forLanes(mask, [&](uint32_t lane) { seen |= 1u << (addresses[lane] / unit % units); });
  return __builtin_popcount(seen) == __builtin_popcount(mask);
}

/// Passes over the banks that the lanes of `mask` need together: the most words of one bank.
uint32_t countPasses(uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  if (useDifferentBanks(mask, addresses, bytes < kBankBytes ? kBankBytes : bytes))
    return mask != 0;
  Distinct words;
  uint32_t perBank[kBanks] = {}, passes = 0;
  forLanes(mask, [&](uint32_t lane) {
    for (uint64_t word = addresses[lane] / kBankBytes; word * kBankBytes < addresses[lane] + bytes; ++word)
      if (words.insert(word) && ++perBank[word % kBanks] > passes)
        passes = perBank[word % kBanks];
  });
  return passes;
}

} // namespace

void countShared(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  SiteCounts &counts = warp->block->siteCounts[site];
  counts.requests += 1;
  counts.bytes += uint64_t(bytes) * __builtin_popcount(mask);
  // Accesses of 8 bytes go half a warp at a time, those of 16 bytes a quarter.
  uint32_t group = bytes <= kBankBytes ? kLanes : kLanes * kBankBytes / bytes;
  for (uint32_t first = 0; first < kLanes; first += group) {
    uint32_t part = mask & (group == kLanes ? kFullMask : ((1u << group) - 1) << first);
    counts.passes += countPasses(part, addresses, bytes);
    counts.idealPasses += part != 0;
  }
}

void countGlobal(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
  if (mask == 0)
    return;
  // A buffer on the device starts at a sector, wherever it lies on the host.
  uint64_t first = addresses[__builtin_ctz(mask)], base = 0;
  for (uint32_t i = 0; i < warp->block->numBuffers; ++i)
    if (first >= warp->block->buffers[i].begin && first < warp->block->buffers[i].end)
      base = warp->block->buffers[i].begin;
  Distinct sectors, elements;
  uint64_t last = 0;
  bool increases = true;
  forLanes(mask, [&](uint32_t lane) {
    sectors.insert((addresses[lane] - base) / kSectorBytes);
    increases &= addresses[lane] > last;
    last = addresses[lane];
  });
  if (!increases)
    forLanes(mask, [&](uint32_t lane) { elements.insert(addresses[lane]); });
  uint32_t lanes = __builtin_popcount(mask), different = increases ? lanes : elements.count;
  SiteCounts &counts = warp->block->siteCounts[site];
  counts.requests += 1;
  counts.bytes += uint64_t(bytes) * lanes;
  counts.sectors += sectors.count;
  counts.idealSectors += (different * bytes + kSectorBytes - 1) / kSectorBytes;
}

} // namespace attn::emulator
