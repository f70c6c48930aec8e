//===- BlockRunner.cpp - One block of threads at a time ---------------------===//
#include "BlockRunner.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace attn::emulator {

constexpr size_t kSharedAlignment = 1024;

struct BlockRunner::WarpRun : Warp {
  BlockRunner *runner;
  Fiber fiber;
  /// Where it waits.
  std::optional<uint32_t> waitingAt;
  uint32_t waitingSite = 0;
  std::vector<AsyncCopy> copyStorage;
};

const Services BlockRunner::services = {
    [](Warp *warp, FaultKind kind, uint32_t site, uint32_t lane, uint64_t detail, uint32_t other) {
      BlockRunner &runner = *static_cast<WarpRun *>(warp)->runner;
      runner.report(*warp, kind, site, lane, runner.describe(*warp, kind, lane, detail, other));
    },
    [](Warp *warp, uint32_t site, uint32_t id, uint32_t threads, uint32_t waits) {
      auto &run = *static_cast<WarpRun *>(warp);
      run.runner->arrive(run, site, id, threads, waits);
    },
    [](Warp *warp) {
      auto &run = *static_cast<WarpRun *>(warp);
      run.runner->growCopies(run);
    },
    GlobalShadow::makePage};

BlockRunner::BlockRunner(const Launch &launch, GlobalShadow &global)
    : siteCounts(launch.program.sites.size()), regionCounts(launch.program.regions.size()), launch(launch) {
  const Dim3 &threads = launch.dims.block;
  block.services = &services;
  block.numWarps = threads[0] * threads[1] * threads[2] / kLanes;
  block.checks = launch.options.checks;
  block.counts = launch.options.counts;
  block.sharedBytes = launch.sharedBytes;
  block.siteCounts = siteCounts.data();
  for (auto [index, buffer] : llvm::enumerate(launch.buffers)) {
    auto begin = reinterpret_cast<uint64_t>(buffer.data);
    buffers.push_back({begin, begin + buffer.bytes, buffer.writable, global.pagesOf(index)});
  }
  block.buffers = buffers.data();
  block.numBuffers = buffers.size();
  size_t bytes = alignTo(launch.sharedBytes + 1, Align(kSharedAlignment));
  sharedMemory = static_cast<char *>(allocate_buffer(bytes, kSharedAlignment));
  block.shared = sharedMemory;
  uint64_t granules = launch.sharedBytes / kGranule + 1;
  shadow.resize(block.checks ? granules * (2 + block.numWarps) : 0);
  block.written = shadow.data();
  block.writtenAt = block.checks ? shadow.data() + granules : nullptr;
  for (uint32_t i = 0; i < block.numWarps; ++i) {
    block.reads[i] = block.checks ? shadow.data() + granules * (2 + i) : nullptr;
    warps.push_back(std::make_unique<WarpRun>());
  }
}

BlockRunner::~BlockRunner() {
  deallocate_buffer(sharedMemory, alignTo(launch.sharedBytes + 1, Align(kSharedAlignment)), kSharedAlignment);
}

void BlockRunner::resetWarp(uint32_t index, const Dim3 &blockId) {
  WarpRun &warp = *warps[index];
  const Dim3 &size = launch.dims.block, &grid = launch.dims.grid;
  warp.runner = this;
  warp.block = &block;
  warp.regionCounts = regionCounts.data();
  warp.id = index;
  warp.held = 0;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    uint32_t thread = index * kLanes + lane;
    warp.threadId[0][lane] = thread % size[0];
    warp.threadId[1][lane] = thread / size[0] % size[1];
    warp.threadId[2][lane] = thread / size[0] / size[1];
  }
  for (int axis = 0; axis < 3; ++axis) {
    warp.blockDim[axis] = size[axis];
    warp.blockId[axis] = blockId[axis];
    warp.gridDim[axis] = grid[axis];
  }
  std::fill(std::begin(warp.clocks), std::end(warp.clocks), 0);
  warp.clocks[index] = 1;
  warp.copies = warp.copyStorage.data();
  warp.copiesCapacity = warp.copyStorage.size();
  warp.copiesBegin = warp.copiesEnd = 0;
  warp.currentGroup = 0;
  warp.waitingAt.reset();
  warp.fiber.reset(
      [](void *argument) {
        auto &run = *static_cast<WarpRun *>(argument);
        const Launch &launch = run.runner->launch;
        launch.kernel.function(&run, launch.arguments.data());
      },
      &warp);
}

void BlockRunner::reset(uint64_t number) {
  block.number = number;
  blockId = launch.blockId(number);
  std::memset(sharedMemory, 0xff, launch.sharedBytes);
  std::fill(shadow.begin(), shadow.end(), 0);
  for (Barrier &barrier : barriers)
    barrier = Barrier();
  for (uint32_t i = 0; i < block.numWarps; ++i)
    resetWarp(i, blockId);
}

void BlockRunner::run(uint64_t number) {
  reset(number);
  bool progress = true, alive = true;
  while (progress) {
    progress = alive = false;
    for (auto &warp : warps) {
      if (!warp->fiber.isDone() && !warp->waitingAt) {
        warp->fiber.resume();
        progress = true;
      }
      alive |= !warp->fiber.isDone();
    }
  }
  if (alive)
    reportDeadlock();
}

void BlockRunner::reportDeadlock() {
  std::string ended;
  for (auto &warp : warps)
    if (warp->fiber.isDone())
      ended += (ended.empty() ? "" : ", ") + std::to_string(warp->id);
  for (auto &warp : warps) {
    if (!warp->waitingAt)
      continue;
    const Barrier &barrier = barriers[*warp->waitingAt];
    std::string text;
    raw_string_ostream os(text);
    os << "deadlock: warp " << warp->id << " waits at barrier " << *warp->waitingAt << " for " << barrier.expected
       << " threads, of which " << barrier.arrived << " have arrived";
    if (!ended.empty())
      os << "; warps that have ended: " << ended;
    report(*warp, FaultKind::Deadlock, warp->waitingSite, 0, std::move(text));
  }
}

void BlockRunner::arrive(WarpRun &warp, uint32_t site, uint32_t id, uint32_t threads, bool waits) {
  uint32_t expected = threads ? threads : block.numWarps * kLanes;
  Barrier &barrier = barriers[id % kBarriers];
  if (id >= kBarriers || expected % kLanes || (barrier.arrived && barrier.expected != expected)) {
    std::string text;
    raw_string_ostream os(text);
    os << "warp " << warp.id << " comes to barrier " << id << " for " << expected << " threads";
    if (id >= kBarriers || expected % kLanes)
      os << ": a block has barriers 0 to 15, and whole warps arrive";
    else
      os << ", where other warps wait for " << barrier.expected;
    report(warp, FaultKind::DivergentBarrier, site, 0, std::move(text));
    return;
  }
  barrier.expected = expected;
  barrier.arrived += kLanes;
  barrier.held += warp.held;
  for (uint32_t i = 0; i < block.numWarps; ++i)
    barrier.clocks[i] = std::max(barrier.clocks[i], warp.clocks[i]);
  ++warp.clocks[warp.id];
  if (waits) {
    warp.waitingAt = id;
    warp.waitingSite = site;
    barrier.waiting.push_back(&warp);
  }
  if (barrier.arrived >= barrier.expected)
    release(barrier);
  if (warp.waitingAt)
    warp.fiber.suspend();
}

void BlockRunner::release(Barrier &barrier) {
  for (WarpRun *warp : barrier.waiting) {
    for (uint32_t i = 0; i < block.numWarps; ++i)
      warp->clocks[i] = std::max(warp->clocks[i], barrier.clocks[i]);
    warp->heldByBlock = barrier.held;
    warp->waitingAt.reset();
  }
  barrier.waiting.clear();
  barrier.arrived = barrier.held = 0;
}

void BlockRunner::growCopies(WarpRun &warp) {
  auto first = warp.copyStorage.begin();
  // What is done at the front makes room; if that is little, there is more to be had.
  if (warp.copiesBegin > warp.copyStorage.size() / 2)
    std::copy(first + warp.copiesBegin, first + warp.copiesEnd, first);
  else {
    warp.copyStorage.erase(first, first + warp.copiesBegin);
    warp.copyStorage.resize(std::max<size_t>(64, 2 * warp.copyStorage.size()));
  }
  warp.copiesEnd -= warp.copiesBegin;
  warp.copiesBegin = 0;
  warp.copies = warp.copyStorage.data();
  warp.copiesCapacity = warp.copyStorage.size();
}

void BlockRunner::report(const Warp &warp, FaultKind kind, uint32_t site, uint32_t lane, std::string text) {
  ++faultCount;
  auto [it, isNew] = faults.try_emplace({site, uint32_t(kind)},
                                        FaultRecord{block.number, Fault{kind, launch.program.sites[site].location,
                                                                        std::move(text), blockId, warp.id, lane}});
  if (!isNew)
    ++it->second.fault.occurrences;
}

std::string BlockRunner::describeAddress(uint64_t address) const {
  std::string text;
  raw_string_ostream os(text);
  const GlobalBuffer *nearest = nullptr;
  uint64_t distance = ~uint64_t(0);
  for (const GlobalBuffer &buffer : launch.buffers) {
    auto begin = reinterpret_cast<uint64_t>(buffer.data);
    uint64_t away = address < begin ? begin - address : address - std::min(address, begin + buffer.bytes);
    if (away >= distance)
      continue;
    distance = away;
    nearest = &buffer;
  }
  if (!nearest)
    os << "no buffer was given";
  else
    os << "byte " << int64_t(address - reinterpret_cast<uint64_t>(nearest->data)) << " of " << nearest->name << ", of "
       << nearest->bytes << " bytes";
  return text;
}

mlir::Location BlockRunner::writerLocation(uint64_t address) const {
  return launch.program.sites[block.writtenAt[address / kGranule] / kLanes].location;
}

static void describeParty(raw_ostream &os, uint32_t party) {
  if (party == kSameWarp + kSeveral)
    os << "another lane of this warp";
  else if (party & kSameWarp)
    os << "lane " << party - kSameWarp << " of this warp";
  else
    os << "warp " << party;
}

std::string BlockRunner::describe(const Warp &warp, FaultKind kind, uint32_t lane, uint64_t detail,
                                  uint32_t other) const {
  std::string text;
  raw_string_ostream os(text);
  switch (kind) {
  case FaultKind::Race:
    os << "race at byte " << detail << " of shared memory: ";
    describeParty(os, other & ~kReader);
    if (other & kReader)
      os << " has read it";
    else
      os << " has written it at " << writerLocation(detail);
    os << ", and no barrier lies between";
    break;
  case FaultKind::BlockRace: // GlobalShadow finds them
    break;
  case FaultKind::Uninitialized:
    os << "reads byte " << detail << " of shared memory, which nobody has written";
    break;
  case FaultKind::CopyInFlight:
    os << "touches byte " << detail << " of shared memory while a copy to it is in flight, by warp " << other << " at "
       << writerLocation(detail) << ": no wait lies between";
    break;
  case FaultKind::SharedOutOfBounds:
    os << "accesses " << other << " bytes at byte " << int64_t(detail) << " of shared memory, which has "
       << block.sharedBytes;
    break;
  case FaultKind::GlobalOutOfBounds:
    os << "accesses " << other << " bytes out of bounds: " << describeAddress(detail);
    break;
  case FaultKind::ReadOnly:
    os << "writes to an input: " << describeAddress(detail);
    break;
  case FaultKind::Misaligned:
    os << "accesses " << other << " bytes at an address " << detail % other << " behind a multiple of " << other;
    break;
  case FaultKind::DivergentBarrier:
    os << "not all lanes of the warp come to this barrier";
    break;
  case FaultKind::DivergentInstruction:
    os << "needs a lane that is not here: active are 0x";
    os.write_hex(detail);
    break;
  case FaultKind::Deadlock:
    os << "deadlock";
    break;
  }
  return text;
}

} // namespace attn::emulator
