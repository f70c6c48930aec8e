//===- Access.h - Checks and counts of memory accesses ----------------------===//
#ifndef ATTN_LIB_EMULATOR_RUNTIME_ACCESS_H
#define ATTN_LIB_EMULATOR_RUNTIME_ACCESS_H

#include "Lanes.h"

namespace attn::emulator {

/// The lanes of `mask` whose access of `bytes` lies in shared memory and is aligned; the others are reported.
uint32_t checkSharedBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes);
/// The same for global memory; tells the race checker as well.
uint32_t checkGlobalBounds(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes,
                           bool write);

/// Tells the race checker of an access to `bytes` of global memory.
void noteGlobal(Warp *warp, uint32_t site, uint32_t lane, const Buffer &buffer, uint64_t address, uint32_t bytes,
                bool write);

/// Tells the race checker of an access to `bytes` of shared memory and reports what is wrong with it. `together`: an
/// instruction of the whole warp, whose lanes share what is read.
void noteRead(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool together = false);
void noteWrite(Warp *warp, uint32_t site, uint32_t lane, uint64_t address, uint32_t bytes, bool inFlight = false);
/// A copy in flight arrives.
void noteArrival(Warp *warp, uint64_t address, uint32_t bytes);

void countShared(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes);
void countGlobal(Warp *warp, uint32_t site, uint32_t mask, const uint64_t *addresses, uint32_t bytes);

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RUNTIME_ACCESS_H
