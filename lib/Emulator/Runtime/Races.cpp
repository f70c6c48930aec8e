//===- Races.cpp - Who touched which byte of shared memory, and when --------===//
//
// Happens-before by vector clocks: an access by warp w at its clock c is over for this warp once clocks[w] >= c, which
// a barrier that both took part in brings about. The lanes of one warp are taken to run in step.
#include "Access.h"

namespace attn::emulator {
namespace {

constexpr uint32_t kInFlight = 1;

uint32_t writerOf(uint32_t written) { return written >> 1 & 127; }
uint32_t clockOf(uint32_t written) { return written >> 8; }
uint32_t stamp(const Warp &warp) { return warp.clocks[warp.id] << 8 | warp.id << 1; }

bool isOver(const Warp &warp, uint32_t other, uint32_t clock) {
  return other == warp.id || clock <= warp.clocks[other];
}

/// The first and last granule of an access, as pointers into a plane of the shadow.
struct Range {
  Range(uint64_t address, uint32_t bytes)
      : begin(address / kGranule), end((address + bytes + kGranule - 1) / kGranule) {}
  uint64_t begin, end;
};

bool checkWriter(Warp *warp, uint32_t site, uint32_t lane, uint64_t granule, uint32_t written) {
  uint32_t writer = writerOf(written);
  if (written & kInFlight)
    report(warp, FaultKind::CopyInFlight, site, lane, granule * kGranule, writer);
  else if (!isOver(*warp, writer, clockOf(written)))
    report(warp, FaultKind::Race, site, lane, granule * kGranule, writer);
  else
    return true;
  return false;
}

bool checkReadable(Warp *warp, uint32_t site, uint32_t lane, uint64_t granule, uint32_t written) {
  if (written != 0)
    return checkWriter(warp, site, lane, granule, written);
  report(warp, FaultKind::Uninitialized, site, lane, granule * kGranule);
  return false;
}

} // namespace

void noteRead(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes) {
  Range range(address, bytes);
  const uint32_t *written = warp->block->written;
  uint32_t *reads = warp->block->reads[warp->id];
  uint32_t clock = warp->clocks[warp->id], known = 0;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    // Neighbours were mostly written together.
    if ((written[i] == 0 || written[i] != known) && !checkReadable(warp, site, lane, i, written[i]))
      return;
    known = written[i];
    reads[i] = clock;
  }
}

void noteWrite(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool inFlight) {
  Range range(address, bytes);
  ThreadBlock &block = *warp->block;
  uint32_t mark = stamp(*warp) | (inFlight ? kInFlight : 0), known = 0;
  bool good = true;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    if (good && block.written[i] != known)
      good = checkWriter(warp, site, lane, i, block.written[i]);
    known = block.written[i];
    block.written[i] = mark;
  }
  for (uint32_t other = 0; other < block.numWarps && good; ++other) {
    uint32_t last = 0;
    for (uint64_t i = range.begin; i < range.end; ++i)
      last = block.reads[other][i] > last ? block.reads[other][i] : last;
    good = isOver(*warp, other, last);
    if (!good)
      report(warp, FaultKind::Race, site, lane, address, other);
  }
}

void noteArrival(Warp *warp, uint64_t address, uint32_t bytes) {
  Range range(address, bytes);
  for (uint64_t i = range.begin; i < range.end; ++i)
    warp->block->written[i] = stamp(*warp);
}

} // namespace attn::emulator
