/* The cpuid instruction of x86-64; nothing of libc. */
#ifndef ATTN_LIB_RUNTIME_CPUID_H
#define ATTN_LIB_RUNTIME_CPUID_H

typedef struct {
  unsigned a, b, c, d;
} Registers;

static inline Registers cpuid(unsigned leaf, unsigned subleaf) {
  Registers r;
  __asm__ volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d) : "a"(leaf), "c"(subleaf));
  return r;
}

#endif /* ATTN_LIB_RUNTIME_CPUID_H */
