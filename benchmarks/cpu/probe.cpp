// The native part of run.py: memory for tensors, the FMA peak of this core and, where CEILING names a folder with
// kernels written by hand, one of those to compare with.
#include <immintrin.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

double threadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

} // namespace

// Independent chains hide the latency of an FMA. Both return GFLOP/s of one core, in processor time of this thread.
#define ATTN_PEAK(name, isa, vector, set, fma, lanes, chains)                                                          \
  extern "C" __attribute__((target(isa))) double name() {                                                              \
    const vector x = set(0.9999f), y = set(1e-4f);                                                                     \
    vector sum[chains];                                                                                                \
    for (vector &s : sum)                                                                                              \
      s = y;                                                                                                           \
    const int64_t steps = 100000;                                                                                      \
    const double start = threadSeconds();                                                                              \
    for (int64_t i = 0; i < steps; ++i)                                                                                \
      _Pragma("clang loop unroll(full)") for (int c = 0; c < chains; ++c) {                                            \
        sum[c] = fma(sum[c], x, y);                                                                                    \
        asm volatile("" : "+v"(sum[c]));                                                                               \
      }                                                                                                                \
    return double(steps * chains * lanes * 2) / (threadSeconds() - start) * 1e-9;                                      \
  }
ATTN_PEAK(peak_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, 16, 16)
ATTN_PEAK(peak_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, 8, 12)

extern "C" bool has_avx512() { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"); }

// Huge pages where there are some, so that no measurement depends on where small pages happen to lie. Never freed.
extern "C" float *tensor(int64_t count, uint64_t seed) {
  const size_t page = size_t(2) << 20, bytes = (size_t(count) * sizeof(float) + page - 1) / page * page;
  auto *data = static_cast<float *>(aligned_alloc(page, bytes));
  if (!data)
    return nullptr;
  madvise(data, bytes, MADV_HUGEPAGE);
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  auto uniform = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (float(state >> 40) + 0.5f) * 0x1p-24f;
  };
  for (int64_t i = 0; i < count; ++i) // standard normal
    data[i] = sqrtf(-2.0f * logf(uniform())) * cosf(6.2831853f * uniform());
  return data;
}

extern "C" double largest_difference(const float *x, const float *y, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; ++i)
    if (double d = std::fabs(double(x[i]) - double(y[i])); !(d <= most)) // a NaN counts
      most = d;
  return most;
}

#ifdef CEILING
#include "attn_f32.h"

namespace {

template <int D>
void ceiling(int n, MaskSpec mask, const float *q, const float *k, const float *v, float *out) {
  static AttnF32<D, 128> *kernel = nullptr;
  static int planned = -1;
  if (planned != n) { // its scratch memory is not part of the time
    delete kernel;
    kernel = new AttnF32<D, 128>(n, 1.0f / std::sqrt(float(D)));
    planned = n;
  }
  kernel->mask = mask;
  kernel->template run<3>(q, k, v, out);
}

} // namespace

// N must be a multiple of 16, D 64 or 128; window counts the keys a query sees, itself included, 0: no window.
extern "C" void ceiling_f32(int n, int d, bool causal, int window, const float *q, const float *k, const float *v,
                            float *out) {
  MaskSpec mask;
  mask.causal = causal;
  mask.window = window;
  d == 64 ? ceiling<64>(n, mask, q, k, v, out) : ceiling<128>(n, mask, q, k, v, out);
}
#endif
