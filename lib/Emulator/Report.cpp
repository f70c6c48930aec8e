//===- Report.cpp - What a launch found and counted -------------------------===//
#include "attn/Emulator/Emulator.h"

using namespace llvm;

namespace attn::emulator {

StringRef stringify(FaultKind kind) {
  switch (kind) {
  case FaultKind::Race:
    return "race";
  case FaultKind::BlockRace:
    return "race between blocks";
  case FaultKind::Uninitialized:
    return "uninitialized read";
  case FaultKind::CopyInFlight:
    return "copy in flight";
  case FaultKind::SharedOutOfBounds:
    return "shared memory out of bounds";
  case FaultKind::GlobalOutOfBounds:
    return "global memory out of bounds";
  case FaultKind::ReadOnly:
    return "write to an input";
  case FaultKind::Misaligned:
    return "misaligned access";
  case FaultKind::DivergentBarrier:
    return "divergent barrier";
  case FaultKind::DivergentInstruction:
    return "divergent instruction";
  case FaultKind::Deadlock:
    return "deadlock";
  }
  llvm_unreachable("all kinds are above");
}

uint64_t LaunchReport::count(StringRef op) const {
  auto it = instructions.find(op.str());
  return it == instructions.end() ? 0 : it->second;
}

MemoryCounts &MemoryCounts::operator+=(const MemoryCounts &other) {
  requests += other.requests;
  bytes += other.bytes;
  passes += other.passes;
  idealPasses += other.idealPasses;
  sectors += other.sectors;
  idealSectors += other.idealSectors;
  return *this;
}

MemoryCounts LaunchReport::total() const {
  MemoryCounts sum;
  for (const AccessCounts &access : accesses)
    sum += access;
  return sum;
}

void LaunchReport::print(raw_ostream &os) const {
  for (const Fault &fault : faults)
    os << fault.location << ": " << stringify(fault.kind) << ": block (" << fault.block[0] << ", " << fault.block[1]
       << ", " << fault.block[2] << "), thread " << fault.thread() << " (warp " << fault.warp << ", lane " << fault.lane
       << "): " << fault.text << " (" << fault.occurrences << " times)\n";
  os << faultCount << " faults in " << blocks << " blocks\n";
  for (const auto &[op, times] : instructions)
    os << "  " << op << ": " << times << "\n";
  for (const AccessCounts &access : accesses) {
    os << "  " << access.location << ": " << access.op << ": " << access.requests << " requests, " << access.bytes
       << " bytes";
    if (access.passes)
      os << ", " << access.passes << " passes over the banks (ideal " << access.idealPasses << ")";
    if (access.sectors)
      os << ", " << access.sectors << " sectors (ideal " << access.idealSectors << ")";
    os << "\n";
  }
}

} // namespace attn::emulator
