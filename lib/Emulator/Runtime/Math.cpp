//===- Math.cpp - Functions that a vector unit does not have ----------------===//
#include "Lanes.h"

using namespace attn::emulator;

#pragma clang fp contract(fast)

/// Of 2^f for |f| <= 1/2: ln(2)^n / n!, n = 7 to 0.
static constexpr float kTaylor[] = {1.5252734e-5f, 1.5403530e-4f, 1.3333558e-3f, 9.6181291e-3f,
                                    5.5504109e-2f, 2.4022651e-1f, 6.9314718e-1f, 1.0f};

extern "C" {

/// 2^x to about one unit in the last place; denormal results are 0, as ex2.approx.ftz has it.
void attn_emu_exp2(const float *in, float *out) {
  LanesF32 x = load<LanesF32>(in);
  LanesF32 inside = __builtin_elementwise_max(__builtin_elementwise_min(x, LanesF32(128.0f)), LanesF32(-127.0f));
  LanesF32 whole = __builtin_elementwise_rint(inside);
  LanesF32 f = inside - whole;
  LanesF32 p = kTaylor[0];
  for (uint32_t i = 1; i < sizeof(kTaylor) / sizeof(float); ++i)
    p = p * f + kTaylor[i];
  LanesI32 exponent = __builtin_convertvector(whole, LanesI32);
  // In two steps, since 2^128 has no representation.
  LanesI32 first = exponent >> 1, second = exponent - first;
  LanesF32 result =
      p * __builtin_bit_cast(LanesF32, (first + 127) << 23) * __builtin_bit_cast(LanesF32, (second + 127) << 23);
  LanesI32 bits = __builtin_bit_cast(LanesI32, result);
  LanesI32 normal = bits >= 0x00800000;
  LanesI32 isNaN = x != x;
  bits = (bits & normal & ~isNaN) | (__builtin_bit_cast(LanesI32, x) & isNaN);
  store(out, bits);
}

void attn_emu_map_f32(float (*function)(float), const float *in, float *out) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    out[lane] = function(in[lane]);
}

void attn_emu_map_f64(double (*function)(double), const double *in, double *out) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    out[lane] = function(in[lane]);
}

void attn_emu_map2_f32(float (*function)(float, float), const float *a, const float *b, float *out) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    out[lane] = function(a[lane], b[lane]);
}

void attn_emu_map2_f64(double (*function)(double, double), const double *a, const double *b, double *out) {
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    out[lane] = function(a[lane], b[lane]);
}

} // extern "C"
