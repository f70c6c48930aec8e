//===- GlobalShadow.cpp - Which blocks touched which global memory ----------===//
#include "GlobalShadow.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <cstdlib>

using namespace llvm;

namespace attn::emulator {

constexpr uint64_t kPageBytes = GlobalPage::kPieces * kGranule;

GlobalShadow::GlobalShadow(const Launch &launch) : launch(launch) {
  for (const GlobalBuffer &buffer : launch.buffers)
    pages.emplace_back(launch.options.checks && buffer.writable ? divideCeil(buffer.bytes, kPageBytes) : 0);
}

GlobalShadow::~GlobalShadow() {
  for (const auto &list : pages)
    for (GlobalPage *page : list)
      std::free(page);
}

void GlobalShadow::makePage(GlobalPage **page) {
  auto *made = static_cast<GlobalPage *>(safe_calloc(1, sizeof(GlobalPage)));
  GlobalPage *none = nullptr;
  if (!__atomic_compare_exchange_n(page, &none, made, /*weak=*/false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    std::free(made);
}

static uint64_t blockOf(uint64_t access) { return (access >> 32) - 1; }
static uint32_t siteOf(uint64_t access) { return uint32_t(access) >> 10; }
static uint32_t threadOf(uint64_t access) { return access & 1023; }

std::optional<GlobalShadow::Race> GlobalShadow::find(const Accesses &writes, const Accesses &reads) {
  if (writes.other)
    return Race{writes.first, writes.other, /*beforeReads=*/false};
  if (!writes.first || !reads.first)
    return std::nullopt;
  uint64_t read = blockOf(reads.first) != blockOf(writes.first) ? reads.first : reads.other;
  if (!read)
    return std::nullopt;
  return read < writes.first ? Race{read, writes.first, true} : Race{writes.first, read, false};
}

void GlobalShadow::add(FaultMap &faults, const GlobalBuffer &buffer, uint64_t byte, const Race &race) const {
  uint64_t block = blockOf(race.after);
  std::string text;
  raw_string_ostream os(text);
  Dim3 before = launch.blockId(blockOf(race.before));
  os << "race at byte " << byte << " of " << buffer.name << ": block (" << before[0] << ", " << before[1] << ", "
     << before[2] << ") has " << (race.beforeReads ? "read" : "written") << " it at "
     << launch.program.sites[siteOf(race.before)].location << ", and blocks of a launch are not ordered";
  uint32_t site = siteOf(race.after), thread = threadOf(race.after);
  Fault fault{FaultKind::BlockRace, launch.program.sites[site].location,
              std::move(text),      launch.blockId(block),
              thread / kLanes,      thread % kLanes};
  auto [it, isNew] = faults.try_emplace({site, uint32_t(fault.kind)}, FaultRecord{block, fault});
  if (isNew)
    return;
  fault.occurrences = it->second.fault.occurrences + 1;
  if (block < it->second.block)
    it->second = FaultRecord{block, std::move(fault)};
  else
    it->second.fault.occurrences = fault.occurrences;
}

uint64_t GlobalShadow::collect(FaultMap &faults) const {
  uint64_t count = 0;
  for (auto [buffer, list] : zip_equal(launch.buffers, pages))
    for (auto [number, page] : enumerate(list))
      for (uint32_t piece = 0; page && piece < GlobalPage::kPieces; ++piece)
        if (auto race = find(page->pieces[piece].writes, page->pieces[piece].reads)) {
          add(faults, buffer, number * kPageBytes + piece * kGranule, *race);
          ++count;
        }
  return count;
}

} // namespace attn::emulator
