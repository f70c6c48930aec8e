// The native part of run.py: memory for tensors, the FMA peak of this core and, where CEILING names a folder with
// kernels written by hand, one of those to compare with.
#include <cpuid.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// Does this machine multiply tiles, and does Linux let this process?
extern "C" bool has_amx() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool there = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) && (d >> 24 & 1);
  return there && syscall(SYS_arch_prctl, /*ARCH_REQ_XCOMP_PERM=*/0x1023, /*tile data*/ 18) == 0;
}

// GFLOP/s of four independent products of tiles; leaves the tiles as it found them, in their first state.
extern "C" __attribute__((target("amx-tile,amx-bf16"))) double peak_amx() {
  alignas(64) unsigned char configuration[64] = {1};
  alignas(64) static unsigned char zeros[1024];
  for (int tile = 0; tile < 8; ++tile)
    configuration[16 + 2 * tile] = 64, configuration[48 + tile] = 16;
  _tile_loadconfig(configuration);
  _tile_zero(0), _tile_zero(1), _tile_zero(2), _tile_zero(3);
  _tile_loadd(4, zeros, 64), _tile_loadd(5, zeros, 64), _tile_loadd(6, zeros, 64), _tile_loadd(7, zeros, 64);
  const int64_t steps = 20000;
  const double start = threadSeconds();
  for (int64_t i = 0; i < steps; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  const double seconds = threadSeconds() - start;
  _tile_release();
  return double(steps * 4 * 16384) / seconds * 1e-9;
}

// Reads memory and does nothing with it but what keeps the loads.
#define ATTN_READ(name, isa, width)                                                                                    \
  __attribute__((target(isa))) static void name(const char *from, int64_t bytes) {                                     \
    typedef int64_t vector __attribute__((vector_size(width)));                                                        \
    vector any[4] = {};                                                                                                \
    for (int64_t at = 0; at + 512 <= bytes; at += 512) {                                                               \
      _Pragma("clang loop unroll(full)") for (int line = 0; line < 512; line += 64)                                    \
          __builtin_prefetch(from + at + 4096 + line);                                                                 \
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 512 / width; ++i) any[i % 4] |=                           \
          *reinterpret_cast<const vector *>(from + at + i * width);                                                    \
    }                                                                                                                  \
    vector sum = any[0] | any[1] | any[2] | any[3];                                                                    \
    asm volatile("" : : "x"(sum));                                                                                     \
  }
ATTN_READ(readAVX512, "avx512f", 64)
ATTN_READ(readAVX2, "avx2", 32)

// On all OpenMP threads, in parts.
extern "C" void read_all(const char *from, int64_t bytes) {
  const bool wide = has_avx512();
  const int64_t part = 512 << 10;
#pragma omp parallel for schedule(dynamic)
  for (int64_t at = 0; at < bytes; at += part)
    (wide ? readAVX512 : readAVX2)(from + at, bytes - at < part ? bytes - at : part);
}

// The same numbers as bf16.
extern "C" void narrow(const float *from, uint16_t *to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    __builtin_memcpy(&bits, from + i, sizeof bits);
    to[i] = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
}

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
#include "attn_bf16.h"
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

namespace {

template <int D>
void ceilingBF16(int n, MaskSpec mask, const uint16_t *q, const uint16_t *k, const uint16_t *v, float *out) {
  using Kernel = AttnBf16<D, 64, EXP_DEG3, MAX_LAZY, PIPE_ON>;
  static Kernel *kernel = nullptr;
  static int planned = -1;
  static MaskSpec plannedMask;
  if (planned != n || plannedMask.causal != mask.causal || plannedMask.window != mask.window) {
    delete kernel; // its memory and its list of units are not part of the time
    kernel = new Kernel(n, 16, 1024, 1.0f / std::sqrt(float(D)), mask);
    planned = n, plannedMask = mask;
  }
  kernel->run(q, k, v, out);
  _tile_release();
}

} // namespace

// The same for bf16 with an output of f32; N must be a multiple of 64.
extern "C" void ceiling_bf16(int n, int d, bool causal, int window, const uint16_t *q, const uint16_t *k,
                             const uint16_t *v, float *out) {
  MaskSpec mask;
  mask.causal = causal;
  mask.window = window;
  d == 64 ? ceilingBF16<64>(n, mask, q, k, v, out) : ceilingBF16<128>(n, mask, q, k, v, out);
}

#if __has_include("linear.cpp")
namespace linear {
#include "linear.cpp"
} // namespace linear

// Linear attention with features elu(x) + 1, D = 64.
extern "C" void ceiling_linear(int n, bool causal, const float *q, const float *k, const float *v, float *out) {
  causal ? linear::linear_causal<16>(q, k, v, out, n) : linear::linear_full(q, k, v, out, n);
}
#endif
#endif
