//===- Memory.cpp - Loads and stores ----------------------------------------===//
//
// A value of `count` elements of `width` bytes is passed as `count` arrays of 32 lanes, one after the other.
#include "Access.h"

using namespace attn::emulator;

namespace {

template <typename T>
void loadElements(const Warp *warp, uint32_t mask, bool shared, const uint64_t *addresses, uint32_t count, void *out) {
  T *values = static_cast<T *>(out);
  __builtin_memset(out, 0xff, sizeof(T) * kLanes * count);
  uint64_t base = shared ? reinterpret_cast<uint64_t>(warp->block->shared) : 0;
  forLanes(mask, [&](uint32_t lane) {
    const T *from = reinterpret_cast<const T *>(base + addresses[lane]);
    for (uint32_t i = 0; i < count; ++i)
      values[i * kLanes + lane] = from[i];
  });
}

template <typename T>
void storeElements(const Warp *warp, uint32_t mask, bool shared, const uint64_t *addresses, uint32_t count,
                   const void *in) {
  const T *values = static_cast<const T *>(in);
  uint64_t base = shared ? reinterpret_cast<uint64_t>(warp->block->shared) : 0;
  forLanes(mask, [&](uint32_t lane) {
    T *to = reinterpret_cast<T *>(base + addresses[lane]);
    for (uint32_t i = 0; i < count; ++i)
      to[i] = values[i * kLanes + lane];
  });
}

uint32_t checkAccess(Warp *warp, uint32_t site, uint32_t mask, bool shared, const uint64_t *addresses, uint32_t bytes,
                     bool write) {
  const ThreadBlock &block = *warp->block;
  mask = shared ? checkSharedBounds(warp, site, mask, addresses, bytes)
                : checkGlobalBounds(warp, site, mask, addresses, bytes, write);
  if (block.counts && shared)
    countShared(warp, site, mask, addresses, bytes);
  else if (block.counts)
    countGlobal(warp, site, mask, addresses, bytes);
  if (block.checks && shared)
    forLanes(mask, [&](uint32_t lane) {
      if (write)
        noteWrite(warp, site, lane, addresses[lane], bytes);
      else
        noteRead(warp, site, lane, addresses[lane], bytes);
    });
  return mask;
}

} // namespace

extern "C" {

void attn_emu_load(Warp *warp, uint32_t site, uint32_t mask, uint32_t shared, const uint64_t *addresses, uint32_t width,
                   uint32_t count, void *out) {
  mask = checkAccess(warp, site, mask, shared, addresses, width * count, /*write=*/false);
  switch (width) {
  case 1:
    return loadElements<uint8_t>(warp, mask, shared, addresses, count, out);
  case 2:
    return loadElements<uint16_t>(warp, mask, shared, addresses, count, out);
  case 4:
    return loadElements<uint32_t>(warp, mask, shared, addresses, count, out);
  default:
    return loadElements<uint64_t>(warp, mask, shared, addresses, count, out);
  }
}

void attn_emu_store(Warp *warp, uint32_t site, uint32_t mask, uint32_t shared, const uint64_t *addresses,
                    uint32_t width, uint32_t count, const void *in) {
  mask = checkAccess(warp, site, mask, shared, addresses, width * count, /*write=*/true);
  switch (width) {
  case 1:
    return storeElements<uint8_t>(warp, mask, shared, addresses, count, in);
  case 2:
    return storeElements<uint16_t>(warp, mask, shared, addresses, count, in);
  case 4:
    return storeElements<uint32_t>(warp, mask, shared, addresses, count, in);
  default:
    return storeElements<uint64_t>(warp, mask, shared, addresses, count, in);
  }
}

} // extern "C"
