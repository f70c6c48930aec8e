/* Values below 2^-126, called from threads that flush them and from ones that do not: the same results, which are 0,
 * and every thread's mode is what it was. Many heads, so that every worker has tasks. */
#include "denormals.h"
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <xmmintrin.h>

enum { heads = 64, tokens = 40, dim = 16, count = heads * tokens * dim, threads = 3 };

static float q[count], k[count], v[count], out[count];
static int64_t shape[] = {1, heads, tokens, dim};

static DLTensor tensor(float *data) {
  DLTensor t = {.data = data, .device = {kDLCPU, 0}, .ndim = 4, .dtype = {kDLFloat, 32, 1}, .shape = shape};
  return t;
}

static void set(unsigned mode) {
  _mm_setcsr(mode);
#pragma omp parallel num_threads(threads)
  _mm_setcsr(mode);
}

/* Threads that have another mode; flags of what has happened (the low 6 bits) aside. */
static int others(unsigned mode) {
  int wrong = (_mm_getcsr() & ~0x3fu) != mode;
#pragma omp parallel num_threads(threads) reduction(+ : wrong)
  wrong += (_mm_getcsr() & ~0x3fu) != mode;
  return wrong;
}

static int run(unsigned mode) {
  DLTensor tq = tensor(q), tk = tensor(k), tv = tensor(v), to = tensor(out);
  set(mode);
  if (denormals(&tq, &tk, &tv, &to))
    return fprintf(stderr, "%s\n", attn_last_error()), 1;
  int changed = others(mode), wrong = 0;
  set(0x1f80);
  for (int n = 0; n < count; ++n) {
    uint32_t bits = ((union {
                      float f;
                      uint32_t u;
                    }){out[n]})
                        .u;
    int normal = n % dim == 0; /* values of 1 */
    wrong += normal ? out[n] < 0.99999f || out[n] > 1.00001f : (bits & 0x7fffffff) != 0;
  }
  printf("mode %04x: %d wrong, %d threads changed\n", mode, wrong, changed);
  return wrong + changed;
}

int main(void) {
  omp_set_num_threads(threads);
  _mm_setcsr(0x1f80);
  for (int n = 0; n < count; ++n) {
    q[n] = k[n] = 1e-40f;
    v[n] = n % dim == 0 ? 1 : n % dim < 8 ? 1e-39f : -1e-44f;
  }
  return run(0x1f80) + run(0x9fc0) != 0 /* FTZ and DAZ */;
}
