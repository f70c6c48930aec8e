//===- State.h - What compiled kernels and the host say to each other -------===//
//
// Plain data, shared by the host's C++ and the run-time functions, which are compiled to bitcode and know no library.
#ifndef ATTN_LIB_EMULATOR_RUNTIME_STATE_H
#define ATTN_LIB_EMULATOR_RUNTIME_STATE_H

#include "attn/Emulator/FaultKind.h"

namespace attn::emulator {

constexpr uint32_t kLanes = 32;
constexpr uint32_t kMaxWarps = 32;
/// The race checker knows shared memory in pieces of so many bytes.
constexpr uint32_t kGranule = 2;
constexpr uint32_t kFullMask = 0xffffffffu;
constexpr uint32_t kReader = 1u << 16, kSameWarp = 1u << 17, kSeveral = 63;

/// Accesses of two blocks with the lowest numbers, as (block + 1) << 32 | site << 10 | thread; 0: none.
struct Accesses {
  uint64_t first, other;
};

/// Who touched pieces of global memory.
struct GlobalPage {
  static constexpr uint32_t kPieces = 1024;
  uint32_t lock;
  struct {
    Accesses writes, reads;
  } pieces[kPieces];
};

/// A range of global memory.
struct Buffer {
  uint64_t begin, end;
  uint32_t writable;
  /// Of a writable buffer where races are looked for: made when they are touched, shared by all blocks.
  GlobalPage **pages;
};

/// What one memory instruction did, summed over the blocks that a worker ran.
struct SiteCounts {
  uint64_t requests, bytes, passes, idealPasses, sectors, idealSectors;
};

/// One cp.async of a warp, not yet performed.
struct AsyncCopy {
  uint64_t source[kLanes];
  uint32_t target[kLanes], sourceBytes[kLanes];
  uint32_t mask, bytes, site;
  uint64_t group;
};

struct Warp;

/// What the run-time functions ask of the host.
struct Services {
  /// `detail` is an address, or what the kind of fault needs; `other` is another warp, or kSameWarp + another lane
  /// (kReader added: as a reader).
  void (*report)(Warp *, FaultKind, uint32_t site, uint32_t lane, uint64_t detail, uint32_t other);
  /// Returns when `threads` threads (0: all) have arrived at barrier `id`.
  void (*barrier)(Warp *, uint32_t site, uint32_t id, uint32_t threads, uint32_t waits);
  /// Makes room for one more entry of Warp::copies.
  void (*growCopies)(Warp *);
  /// Makes a page, if nobody has made it meanwhile.
  void (*makePage)(GlobalPage **);
};

/// A block of threads while it runs.
struct ThreadBlock {
  const Services *services;
  uint64_t number;
  char *shared;
  uint64_t sharedBytes;
  const Buffer *buffers;
  uint32_t numBuffers, numWarps;
  uint32_t checks, counts;
  SiteCounts *siteCounts;
  /// Per granule: who wrote last, as clock * 256 + warp * 2 + 1 while the write is a copy in flight; 0: never.
  uint32_t *written;
  /// And by which op and lane: site * 32 + lane.
  uint32_t *writtenAt;
  /// Per warp and granule: the clock of its last read * 64 + the lane + 1; kSeveral: lanes, 0: all lanes in step.
  uint32_t *reads[kMaxWarps];
};

/// A warp while it runs. Generated code reads the first fields by their offset.
struct Warp {
  ThreadBlock *block;
  uint64_t *regionCounts;
  int32_t threadId[3][kLanes];
  int32_t blockDim[3], blockId[3], gridDim[3];
  uint32_t id;
  /// clocks[w]: everything that warp w did up to this clock happened before what this warp does now. The warp's own
  /// clock advances at barriers, of the warp as well.
  uint32_t clocks[kMaxWarps];
  /// At a reducing barrier: lanes whose predicate holds, of this warp and of the block.
  uint32_t held, heldByBlock;
  AsyncCopy *copies;
  uint32_t copiesBegin, copiesEnd, copiesCapacity;
  /// The group that cp.async adds to now.
  uint64_t currentGroup;
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RUNTIME_STATE_H
