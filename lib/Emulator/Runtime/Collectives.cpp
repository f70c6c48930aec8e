//===- Collectives.cpp - Shuffles, votes and reductions ---------------------===//
#include "Lanes.h"

using namespace attn::emulator;

namespace {

enum class Shuffle : uint32_t { Butterfly, Up, Down, Index };
enum class Reduction : uint32_t { Add, And, Max, Min, Or, UMax, UMin, Xor };

struct Source {
  uint32_t lane;
  bool valid;
};

/// As the PTX manual has it; `control` holds a segment mask in bits 8-12 and a clamp in bits 0-4.
Source findSource(Shuffle kind, uint32_t lane, uint32_t offset, uint32_t control) {
  uint32_t segment = control >> 8 & 31, clamp = control & 31;
  uint32_t last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  offset &= 31;
  int32_t source = 0;
  bool valid = false;
  switch (kind) {
  case Shuffle::Up:
    source = int32_t(lane) - int32_t(offset);
    valid = source >= int32_t(last);
    break;
  case Shuffle::Down:
    source = lane + offset;
    valid = source <= int32_t(last);
    break;
  case Shuffle::Butterfly:
    source = lane ^ offset;
    valid = source <= int32_t(last);
    break;
  case Shuffle::Index:
    source = first | (offset & ~segment & 31);
    valid = source <= int32_t(last);
    break;
  }
  return {valid ? uint32_t(source) : lane, valid};
}

/// The instruction names the lanes that take part: all that are here must, and no other can.
bool checkMembers(Warp *warp, uint32_t site, uint32_t mask, uint32_t members) {
  if (members == mask)
    return true;
  uint32_t wrong = members ^ mask;
  report(warp, FaultKind::DivergentInstruction, site, __builtin_ctz(wrong), mask);
  return false;
}

int32_t combine(Reduction kind, int32_t a, int32_t b) {
  switch (kind) {
  case Reduction::Add:
    return int32_t(uint32_t(a) + uint32_t(b));
  case Reduction::And:
    return a & b;
  case Reduction::Max:
    return a > b ? a : b;
  case Reduction::Min:
    return a < b ? a : b;
  case Reduction::Or:
    return a | b;
  case Reduction::UMax:
    return uint32_t(a) > uint32_t(b) ? a : b;
  case Reduction::UMin:
    return uint32_t(a) < uint32_t(b) ? a : b;
  case Reduction::Xor:
    return a ^ b;
  }
}

} // namespace

extern "C" {

void attn_emu_shfl(Warp *warp, uint32_t site, uint32_t mask, uint32_t members, uint32_t kind, const uint32_t *values,
                   const uint32_t *offsets, const uint32_t *controls, uint32_t *out, uint8_t *valid) {
  checkMembers(warp, site, mask, members);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    Source source = findSource(Shuffle(kind), lane, offsets[lane], controls[lane]);
    out[lane] = values[source.lane];
    valid[lane] = source.valid;
    // The value of a lane that is not here is undefined.
    if ((mask >> lane & 1) && !(mask >> source.lane & 1)) {
      report(warp, FaultKind::DivergentInstruction, site, lane, mask, source.lane);
      out[lane] = kFullMask;
    }
  }
}

/// Only reports: the generated code has votes and butterflies of its own.
void attn_emu_check_members(Warp *warp, uint32_t site, uint32_t mask, uint32_t members) {
  checkMembers(warp, site, mask, members);
}

/// Orders the memory of the warp's lanes: of all of them, whichever take part.
void attn_emu_warp_barrier(Warp *warp, uint32_t site, uint32_t mask, uint32_t members) {
  checkMembers(warp, site, mask, members);
  ++warp->clocks[warp->id];
}

uint32_t attn_emu_redux(Warp *warp, uint32_t site, uint32_t mask, uint32_t members, uint32_t kind,
                        const int32_t *values) {
  checkMembers(warp, site, mask, members);
  uint32_t lanes = mask & members;
  if (lanes == 0)
    return 0;
  int32_t result = values[__builtin_ctz(lanes)];
  forLanes(lanes & (lanes - 1), [&](uint32_t lane) { result = combine(Reduction(kind), result, values[lane]); });
  return result;
}

void attn_emu_barrier(Warp *warp, uint32_t site, uint32_t mask, uint32_t id, uint32_t threads, uint32_t waits) {
  if (mask != kFullMask)
    report(warp, FaultKind::DivergentBarrier, site, __builtin_ctz(~mask), mask);
  warp->block->services->barrier(warp, site, id, threads, waits);
}

/// The number of threads of the block whose predicate holds, or whether all or any do.
uint32_t attn_emu_barrier_reduce(Warp *warp, uint32_t site, uint32_t mask, uint32_t kind, uint32_t predicates) {
  warp->held = __builtin_popcount(predicates);
  attn_emu_barrier(warp, site, mask, /*id=*/0, /*threads=*/0, /*waits=*/1);
  uint32_t count = warp->heldByBlock;
  warp->held = 0;
  return kind == 0 ? count : kind == 1 ? count == warp->block->numWarps * kLanes : count != 0;
}

} // extern "C"
