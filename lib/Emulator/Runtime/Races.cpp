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

using Eight = Vector<uint32_t, 8>; // 16 bytes of shared memory

/// Neighbours were mostly written together: where the entries like the one at `begin` end.
uint64_t endOfRun(const uint32_t *plane, uint64_t begin, uint64_t end) {
  uint32_t first = plane[begin];
  if (end - begin == 8 && __builtin_reduce_or(load<Eight>(plane + begin) ^ first) == 0)
    return end;
  while (begin < end && plane[begin] == first)
    ++begin;
  return begin;
}

void fill(uint32_t *plane, Range range, uint32_t value) {
  if (range.end - range.begin == 8)
    return store(plane + range.begin, Eight(value));
  for (uint64_t i = range.begin; i < range.end; ++i)
    plane[i] = value;
}

uint32_t latest(const uint32_t *plane, Range range) {
  if (range.end - range.begin == 8)
    return __builtin_reduce_max(load<Eight>(plane + range.begin));
  uint32_t value = 0;
  for (uint64_t i = range.begin; i < range.end; ++i)
    value = plane[i] > value ? plane[i] : value;
  return value;
}

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
  for (uint64_t i = range.begin; i < range.end; i = endOfRun(written, i, range.end))
    if (!checkReadable(warp, site, lane, i, written[i]))
      return;
  fill(warp->block->reads[warp->id], range, warp->clocks[warp->id]);
}

void noteWrite(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool inFlight) {
  Range range(address, bytes);
  ThreadBlock &block = *warp->block;
  bool good = true;
  for (uint64_t i = range.begin; i < range.end && good; i = endOfRun(block.written, i, range.end))
    good = block.written[i] == 0 || checkWriter(warp, site, lane, i, block.written[i]);
  fill(block.written, range, stamp(*warp) | (inFlight ? kInFlight : 0));
  fill(block.writtenAt, range, site);
  for (uint32_t other = 0; other < block.numWarps && good; ++other) {
    good = isOver(*warp, other, latest(block.reads[other], range));
    if (!good)
      report(warp, FaultKind::Race, site, lane, address, kReader + other);
  }
}

void noteArrival(Warp *warp, uint64_t address, uint32_t bytes) {
  fill(warp->block->written, Range(address, bytes), stamp(*warp));
}

} // namespace attn::emulator
