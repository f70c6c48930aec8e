/* Joins the parts of split keys: sum(16^(m_c - m) acc_c) / sum(16^(m_c - m) l_c), and lse = 4 m ln 2 + ln l; in natural
 * units exp and m + ln l. (In powers of 2 the largest and least scores would overflow.) */
#include "Internal.h"

#include <string.h>

enum { DTYPE_BFLOAT = 4 };

static float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

static uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/* 2^x for x <= 0, relative error below 1e-7: 2^f by its Taylor series for |f| <= 1/2, then the exponent. */
static float exp2_of(float x) {
  if (!(x > -126.0f))
    return x == x ? 0.0f : x;
  int32_t whole = (int32_t)(x - 0.5f);
  float t = (x - (float)whole) * 0.69314718056f;
  float p = 1.0f / 5040.0f;
  p = p * t + 1.0f / 720.0f;
  p = p * t + 1.0f / 120.0f;
  p = p * t + 1.0f / 24.0f;
  p = p * t + 1.0f / 6.0f;
  p = p * t + 0.5f;
  p = p * t + 1.0f;
  p = p * t + 1.0f;
  return p * float_of((uint32_t)(whole + 127) << 23);
}

/* ln x of a positive normal x, in double: x = 2^e y with y near 1, ln y = 2 artanh((y - 1) / (y + 1)). */
static double log_of(float x) {
  uint32_t bits = bits_of(x);
  if (!(x < float_of(0x7f800000u)))
    return (double)x;
  int32_t exponent = (int32_t)(bits >> 23) - 127;
  double y = (double)float_of((bits & 0x7fffffu) | 0x3f800000u);
  if (y > 1.41421356) {
    y *= 0.5;
    exponent++;
  }
  double s = (y - 1.0) / (y + 1.0), z = s * s;
  double series = 1.0 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11)))));
  return 2.0 * s * series + exponent * 0.6931471805599453;
}

static uint16_t to_bfloat16(float value) {
  uint32_t bits = bits_of(value);
  if (value != value)
    return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Rounds to nearest, ties to even. */
static uint16_t to_float16(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return (uint16_t)(sign | 0x7e00);
  if (magnitude >= 0x477ff000) /* rounds to 65520 or more */
    return (uint16_t)(sign | 0x7c00);
  if (magnitude < 0x38800000) /* below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the last bits */
    return (uint16_t)(sign | (bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f)));
  return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

static void store(const AttnProblem *problem, int64_t offset, float value) {
  void *data = problem->out->data;
  if (problem->out_bits == 32)
    ((float *)data)[offset] = value;
  else if (problem->out_code == DTYPE_BFLOAT)
    ((uint16_t *)data)[offset] = to_bfloat16(value);
  else
    ((uint16_t *)data)[offset] = to_float16(value);
}

/* Leaves the weight 16^(m_c - m) of each part in place of its m; answers the joined m and l. A part with l == 0 saw no
 * key. */
static void weigh_parts(float *part, int64_t stride, int64_t parts, int64_t dim, float unit, float *m, float *l) {
  *m = -__builtin_inff();
  *l = 0.0f;
  for (int64_t c = 0; c < parts; c++)
    if (part[c * stride + dim + 1] != 0.0f && part[c * stride + dim] > *m)
      *m = part[c * stride + dim];
  for (int64_t c = 0; c < parts; c++) {
    float *own = &part[c * stride + dim];
    own[0] = own[1] != 0.0f ? exp2_of((own[0] - *m) * unit) : 0.0f;
    *l += own[0] * own[1];
  }
}

/* One row: `part` is its first part, the next ones follow `stride` floats apart. */
static void merge_row(const AttnProblem *problem, float *part, int64_t stride, int64_t parts, int64_t b, int64_t h,
                      int64_t token) {
  const int64_t dim = problem->value_dim, *out = problem->out->extents + 4;
  int64_t base = b * out[0] + h * out[1] + token * out[2];
  float m, l;
  weigh_parts(part, stride, parts, dim, problem->natural_partials ? 1.44269504f : 4.0f, &m, &l);
  float inverse = l != 0.0f ? 1.0f / l : 0.0f;
  for (int64_t d = 0; d < dim; d++) {
    float sum = 0.0f;
    for (int64_t c = 0; c < parts; c++)
      if (part[c * stride + dim] != 0.0f)
        sum += part[c * stride + dim] * part[c * stride + d];
    store(problem, base + d * out[3], sum * inverse);
  }
  if (!problem->lse)
    return;
  const int64_t *lse = problem->lse->extents + 3;
  double unit = problem->natural_partials ? 1.0 : 2.772588722239781;
  float value = l != 0.0f ? (float)((double)m * unit + log_of(l)) : -__builtin_inff();
  ((float *)problem->lse->data)[b * lse[0] + h * lse[1] + token * lse[2]] = value;
}

void attn_merge(const AttnProblem *problem, float *partials, int64_t parts, int64_t b, int64_t h, int64_t token,
                int64_t step, int64_t rows) {
  int64_t width = problem->value_dim + 2;
  for (int64_t row = 0; row < rows; row++)
    merge_row(problem, partials + row * width, rows * width, parts, b, h, token + row * step);
}
