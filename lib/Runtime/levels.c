/* Asks the CPU for feature bits. A part of its own, for x86-64 alone: only objects with several bodies hold it. */
#include "attn/Runtime/Levels.h"
#include "attn/Runtime/Amx.h"

#if defined(__x86_64__)
#include "Cpuid.h"

/* A leaf that the CPU does not have answers with those of another one. */
static void read_features(uint32_t *words) {
  enum { OSXSAVE = 1 << 27, EXTENDED = (int)0x80000000 };
  for (int w = 0; w < ATTN_FEATURE_WORDS; w++)
    words[w] = 0;
  words[ATTN_LEAF1_C] = cpuid(1, 0).c;
  if (cpuid(0, 0).a >= 7) {
    Registers seven = cpuid(7, 0);
    words[ATTN_LEAF7_B] = seven.b;
    words[ATTN_LEAF7_C] = seven.c;
    words[ATTN_LEAF7_D] = seven.d;
    if (seven.a >= 1)
      words[ATTN_LEAF7_1_A] = cpuid(7, 1).a;
  }
  if (cpuid((uint32_t)EXTENDED, 0).a > (uint32_t)EXTENDED)
    words[ATTN_EXTENDED1_C] = cpuid((uint32_t)EXTENDED + 1, 0).c;
  if (words[ATTN_LEAF1_C] & OSXSAVE) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    words[ATTN_XCR0] = low;
  }
}

int attn_choose_level(const AttnLevel *levels, int64_t count) {
  uint32_t words[ATTN_FEATURE_WORDS];
  read_features(words);
  for (int64_t k = 0; k < count; k++) {
    int fits = 1;
    for (int w = 0; w < ATTN_FEATURE_WORDS; w++)
      fits &= (levels[k].needs[w] & ~words[w]) == 0;
    if (fits && (!levels[k].amx || attn_amx_granted()))
      return (int)k;
  }
  return -1;
}

#else

int attn_choose_level(const AttnLevel *levels, int64_t count) { return -1; }

#endif
