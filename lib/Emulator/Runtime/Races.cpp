//===- Races.cpp - Who touched which byte of shared memory, and when --------===//
//
// Happens-before by vector clocks: an access by warp w at its clock c is over for this warp once clocks[w] >= c, which
// a barrier that both took part in brings about. What lanes of one warp do at one clock of it is not ordered, but an
// instruction of the whole warp has read what it reads before any lane goes on.
#include "Access.h"

namespace attn::emulator {
namespace {

constexpr uint32_t kInFlight = 1;

uint32_t writerOf(uint32_t written) { return written >> 1 & 127; }
uint32_t clockOf(uint32_t written) { return written >> 8; }
uint32_t stamp(const Warp &warp) { return warp.clocks[warp.id] << 8 | warp.id << 1; }

uint32_t laneOf(uint32_t writtenAt) { return writtenAt & (kLanes - 1); }
uint32_t readClock(uint32_t read) { return read >> 6; }

/// The first and last granule of an access, as pointers into a plane of the shadow.
struct Range {
  Range(uint64_t address, uint32_t bytes)
      : begin(address / kGranule), end((address + bytes + kGranule - 1) / kGranule) {}
  static Range of(uint64_t begin, uint64_t end) { return Range(begin * kGranule, uint32_t(end - begin) * kGranule); }
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

/// The entry of a piece that was read before, read once more at `clock` by `who`.
template <typename T>
T readAgain(T old, uint32_t clock, uint32_t who) {
  T now = T(clock << 6 | who);
  if (who == 0)
    return (old >> 6) == T(clock) ? old : now;
  auto alsoOthers = ((old >> 6) == T(clock)) & ((old & kSeveral) != T(0)) & (old != now);
  return alsoOthers ? old | kSeveral : now;
}

void fillReads(uint32_t *plane, Range range, uint32_t clock, uint32_t who) {
  if (range.end - range.begin == 8)
    return store(plane + range.begin, readAgain(load<Eight>(plane + range.begin), clock, who));
  for (uint64_t i = range.begin; i < range.end; ++i)
    plane[i] = readAgain(plane[i], clock, who);
}

/// An access to the pieces of `run`, all with the stamp `written`, by `lane`, or by all lanes together.
bool checkWriter(Warp *warp, uint32_t site, uint32_t lane, bool together, Range run, uint32_t written) {
  uint32_t writer = writerOf(written), clock = clockOf(written);
  if (written & kInFlight) {
    report(warp, FaultKind::CopyInFlight, site, lane, run.begin * kGranule, writer);
    return false;
  }
  if (writer != warp->id && clock > warp->clocks[writer]) {
    report(warp, FaultKind::Race, site, lane, run.begin * kGranule, writer);
    return false;
  }
  if (writer != warp->id || clock != warp->clocks[writer])
    return true;
  for (uint64_t i = run.begin; i < run.end; ++i)
    if (uint32_t other = laneOf(warp->block->writtenAt[i]); together || other != lane) {
      report(warp, FaultKind::Race, site, lane, i * kGranule, kSameWarp + other);
      return false;
    }
  return true;
}

/// Has a lane of another warp, or another lane of this one, perhaps not yet read what `lane` writes?
bool checkReader(Warp *warp, uint32_t site, uint32_t lane, Range range, uint32_t reader) {
  const uint32_t *plane = warp->block->reads[reader];
  if (reader != warp->id) {
    if (readClock(latest(plane, range)) <= warp->clocks[reader])
      return true;
    report(warp, FaultKind::Race, site, lane, range.begin * kGranule, kReader + reader);
    return false;
  }
  if (readClock(latest(plane, range)) < warp->clocks[reader])
    return true;
  for (uint64_t i = range.begin; i < range.end; ++i)
    if (uint32_t who = plane[i] & kSeveral; readClock(plane[i]) == warp->clocks[reader] && who && who != lane + 1) {
      report(warp, FaultKind::Race, site, lane, i * kGranule, kReader + kSameWarp + (who == kSeveral ? who : who - 1));
      return false;
    }
  return true;
}

} // namespace

void noteRead(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool together) {
  Range range(address, bytes);
  const uint32_t *written = warp->block->written;
  for (uint64_t i = range.begin, end; i < range.end; i = end) {
    end = endOfRun(written, i, range.end);
    if (written[i] == 0)
      return report(warp, FaultKind::Uninitialized, site, lane, i * kGranule);
    if (!checkWriter(warp, site, lane, together, Range::of(i, end), written[i]))
      return;
  }
  fillReads(warp->block->reads[warp->id], range, warp->clocks[warp->id], together ? 0 : lane + 1);
}

void noteWrite(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool inFlight) {
  Range range(address, bytes);
  ThreadBlock &block = *warp->block;
  bool good = true;
  for (uint64_t i = range.begin, end; i < range.end && good; i = end) {
    end = endOfRun(block.written, i, range.end);
    good =
        block.written[i] == 0 || checkWriter(warp, site, lane, /*together=*/false, Range::of(i, end), block.written[i]);
  }
  fill(block.written, range, stamp(*warp) | (inFlight ? kInFlight : 0));
  fill(block.writtenAt, range, site * kLanes + lane);
  for (uint32_t reader = 0; reader < block.numWarps && good; ++reader)
    good = checkReader(warp, site, lane, range, reader);
}

void noteArrival(Warp *warp, uint64_t address, uint32_t bytes) {
  fill(warp->block->written, Range(address, bytes), stamp(*warp));
}

} // namespace attn::emulator
