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

/* Writes a row of the output, times `factor`. */
static void store_row(const AttnProblem *problem, int64_t offset, const float *row, int64_t dim, float factor) {
  float *wide = (float *)problem->out->data + offset;
  uint16_t *narrow = (uint16_t *)problem->out->data + offset;
  if (problem->out_bits == 32)
    for (int64_t d = 0; d < dim; d++)
      wide[d] = row[d] * factor;
  else if (problem->out_code == DTYPE_BFLOAT)
    for (int64_t d = 0; d < dim; d++)
      narrow[d] = to_bfloat16(row[d] * factor);
  else
    for (int64_t d = 0; d < dim; d++)
      narrow[d] = to_float16(row[d] * factor);
}

static float from_float16(uint32_t half) {
  uint32_t sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00)
    return float_of(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude < 0x400) /* a multiple of 2^-24 */
    return (sign ? -1.0f : 1.0f) * (float)magnitude * 5.9604644775390625e-08f;
  return float_of(sign | ((magnitude << 13) + 0x38000000));
}

/* Adds `weight` times a row of a tensor of the type of the output. */
static void add_row(const AttnProblem *problem, const AttnMemRef *tensor, int64_t offset, float weight, float *row) {
  const float *wide = (const float *)tensor->data + offset;
  const uint16_t *narrow = (const uint16_t *)tensor->data + offset;
  const int64_t dim = problem->value_dim;
  if (problem->out_bits == 32)
    for (int64_t d = 0; d < dim; d++)
      row[d] += weight * wide[d];
  else if (problem->out_code == DTYPE_BFLOAT)
    for (int64_t d = 0; d < dim; d++)
      row[d] += weight * float_of((uint32_t)narrow[d] << 16);
  else
    for (int64_t d = 0; d < dim; d++)
      row[d] += weight * from_float16(narrow[d]);
}

/* What a row joins: its log-sum-exp in the unit of m, where its output starts, its weight. */
typedef struct {
  double m;
  int64_t base;
  float weight;
} Joined;

static Joined find_joined(const AttnProblem *problem, int64_t b, int64_t h, int64_t token) {
  Joined joined = {-__builtin_inf(), 0, 0.0f};
  if (!problem->joined_out)
    return joined;
  const int64_t *out = problem->joined_out->extents + 4, *lse = problem->joined_lse->extents + 3;
  float value = ((const float *)problem->joined_lse->data)[b * lse[0] + h * lse[1] + token * lse[2]];
  if (value > 3.402823466e38f) /* as for scores: +inf is the largest finite number */
    value = 3.402823466e38f;
  joined.base = b * out[0] + h * out[1] + token * out[2];
  joined.m = (double)value * (problem->kernel->natural_partials ? 1.0 : 0.360673760222240853);
  return joined;
}

/* Leaves the weight 16^(m_c - m) of each part in place of its m; answers the joined m and l. A part with l == 0 saw no
 * key. */
static void weigh_parts(float *part, int64_t stride, int64_t parts, int64_t dim, double unit, Joined *joined, double *m,
                        float *l) {
  *m = joined->m;
  *l = 0.0f;
  for (int64_t c = 0; c < parts; c++)
    if (part[c * stride + dim + 1] != 0.0f && !((double)part[c * stride + dim] <= *m))
      *m = (double)part[c * stride + dim];
  for (int64_t c = 0; c < parts; c++) {
    float *own = &part[c * stride + dim];
    own[0] = own[1] != 0.0f ? exp2_of((float)(((double)own[0] - *m) * unit)) : 0.0f;
    *l += own[0] * own[1];
  }
  if (joined->m != -__builtin_inf())
    joined->weight = exp2_of((float)((joined->m - *m) * unit));
  *l += joined->weight;
}

/* One row: `part` is its first part, the next ones follow `stride` floats apart. */
static void merge_row(const AttnProblem *problem, float *part, int64_t stride, int64_t parts, int64_t b, int64_t h,
                      int64_t token) {
  const int64_t dim = problem->value_dim, *out = problem->out->extents + 4;
  int64_t base = b * out[0] + h * out[1] + token * out[2];
  double m, unit = problem->kernel->natural_partials ? 1.0 : 2.772588722239781; /* of m, in natural units */
  float l;
  Joined joined = find_joined(problem, b, h, token);
  weigh_parts(part, stride, parts, dim, unit * 1.4426950408889634, &joined, &m, &l);
  float first = part[dim]; /* the sums gather in the first part; a weight of 0 adds nothing, not even NaN */
  for (int64_t d = 0; d < dim; d++)
    part[d] = first != 0.0f ? first * part[d] : 0.0f;
  for (int64_t c = 1; c < parts; c++)
    if (part[c * stride + dim] != 0.0f)
      for (int64_t d = 0; d < dim; d++)
        part[d] += part[c * stride + dim] * part[c * stride + d];
  if (joined.weight != 0.0f)
    add_row(problem, problem->joined_out, joined.base, joined.weight, part);
  store_row(problem, base, part, dim, l != 0.0f ? 1.0f / l : 0.0f);
  if (!problem->lse)
    return;
  const int64_t *lse = problem->lse->extents + 3;
  float value = l != 0.0f ? (float)(m * unit + log_of(l)) : -__builtin_inff();
  ((float *)problem->lse->data)[b * lse[0] + h * lse[1] + token * lse[2]] = value;
}

void attn_merge(const AttnProblem *problem, float *partials, int64_t parts, int64_t b, int64_t h, int64_t token,
                int64_t step, int64_t rows) {
  int64_t width = problem->value_dim + 2;
  for (int64_t row = 0; row < rows; row++)
    merge_row(problem, partials + row * width, rows * width, parts, b, h, token + row * step);
}
