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

/// Passes over the banks that the lanes of `mask` need together: the most words of one bank.
uint32_t countPasses(uint32_t mask, const uint64_t *addresses, uint32_t bytes) {
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
  SiteCounts &counts = warp->block->siteCounts[site];
  Distinct sectors, elements;
  forLanes(mask, [&](uint32_t lane) {
    sectors.insert(addresses[lane] / kSectorBytes);
    elements.insert(addresses[lane]);
  });
  counts.requests += 1;
  counts.bytes += uint64_t(bytes) * __builtin_popcount(mask);
  counts.sectors += sectors.count;
  counts.idealSectors += (elements.count * bytes + kSectorBytes - 1) / kSectorBytes;
}

} // namespace attn::emulator
