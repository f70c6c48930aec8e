//===- GlobalRaces.cpp - Which block touched which byte of global memory ----===//
#include "Access.h"

namespace attn::emulator {
namespace {

/// Keeps the lowest access, and the lowest of another block: they do not depend on the order in which blocks run.
void note(Accesses &known, uint64_t access) {
  if (known.first == 0 || access >> 32 == known.first >> 32) {
    known.first = known.first != 0 && known.first < access ? known.first : access;
  } else if (access < known.first) {
    known.other = known.first;
    known.first = access;
  } else if (known.other == 0 || access < known.other) {
    known.other = access;
  }
}

} // namespace

void noteGlobal(Warp *warp, uint32_t site, uint32_t lane, const Buffer &buffer, uint64_t address, uint32_t bytes,
                bool write) {
  uint64_t access = (warp->block->number + 1) << 32 | site << 10 | warp->id * kLanes | lane;
  uint64_t offset = address - buffer.begin, end = (offset + bytes + kGranule - 1) / kGranule;
  for (uint64_t piece = offset / kGranule; piece < end; ++piece) {
    GlobalPage **slot = buffer.pages + piece / GlobalPage::kPieces;
    if (!__atomic_load_n(slot, __ATOMIC_ACQUIRE))
      warp->block->services->makePage(slot);
    GlobalPage &page = **slot;
    while (__atomic_exchange_n(&page.lock, 1u, __ATOMIC_ACQUIRE))
      ;
    auto &known = page.pieces[piece % GlobalPage::kPieces];
    note(write ? known.writes : known.reads, access);
    __atomic_store_n(&page.lock, 0u, __ATOMIC_RELEASE);
  }
}

} // namespace attn::emulator
