/* Which of several bodies of a function runs on this CPU. */
#ifndef ATTN_RUNTIME_LEVELS_H
#define ATTN_RUNTIME_LEVELS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Words of feature bits: registers of CPUID leaves, and what the operating system saves. */
enum AttnFeatureWord {
  ATTN_LEAF1_C,
  ATTN_LEAF7_B,
  ATTN_LEAF7_C,
  ATTN_LEAF7_D,
  ATTN_LEAF7_1_A, /* subleaf 1 */
  ATTN_EXTENDED1_C,
  ATTN_XCR0,
  ATTN_FEATURE_WORDS
};

/* A body: the bits that the CPU must have, and whether it needs tile registers (Amx.h). */
typedef struct {
  uint32_t needs[ATTN_FEATURE_WORDS];
  uint32_t amx;
} AttnLevel;

/* The first of the levels that this CPU has all bits of, or -1. */
int attn_choose_level(const AttnLevel *levels, int64_t count);

/* ATTN_NO_CPU, with a message that names the levels. */
int attn_no_level(const char *function, const char *names);

#ifdef __cplusplus
}
#endif
#endif
