/* Asks the CPU and Linux for AMX. A part of its own, for x86-64 alone: only objects with tile instructions hold it. */
#include "attn/Runtime/Amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include "Cpuid.h"

/* Are both states of the tiles saved when threads are switched? */
static int are_tiles_saved(void) {
  enum { OSXSAVE = 1 << 27, TILES = 3 << 17 };
  unsigned low, high;
  if (!(cpuid(1, 0).c & OSXSAVE))
    return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & TILES) == TILES;
}

/* Tile data are large, so that Linux hands out memory for them to processes that ask. */
static int ask(void) {
  enum { BF16 = 1 << 22, TILE = 1 << 24, ARCH_PRCTL = 158, REQUEST = 0x1023, TILE_DATA = 18 };
  if (cpuid(0, 0).a < 7 || (cpuid(7, 0).d & (BF16 | TILE)) != (BF16 | TILE) || !are_tiles_saved())
    return 0;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"((long)ARCH_PRCTL), "D"((long)REQUEST), "S"((long)TILE_DATA)
                   : "rcx", "r11", "memory");
  return result == 0;
}

int attn_amx_granted(void) {
  enum { UNKNOWN, GRANTED, REFUSED };
  static int answer;
  int known = __atomic_load_n(&answer, __ATOMIC_RELAXED);
  if (known == UNKNOWN) { /* threads may ask at the same time: they get the same answer */
    known = ask() ? GRANTED : REFUSED;
    __atomic_store_n(&answer, known, __ATOMIC_RELAXED);
  }
  return known == GRANTED;
}

#else

int attn_amx_granted(void) { return 0; }

#endif
