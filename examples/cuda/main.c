/* Attention on a GPU from C: calls the kernel that attn-compile made of attention.mlir on tensors in device memory, and
 * checks it against plain loops on the host. build.sh compiles, links and runs this.
 *
 * Exit status: 0 all is well, 1 wrong, 2 no GPU to run on.
 */
#include "attention.h"
#include "device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1, HEADS = 8, KV_HEADS = 2, TOKENS = 130, DIM = 64 };

/* A tensor in both memories, [batch, heads, tokens, head_dim] without gaps. */
typedef struct {
  uint16_t *host;
  void *device;
  int64_t shape[4];
  size_t count;
} Array;

static float from_bf16(uint16_t bits) {
  uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof(value));
  return value;
}

/* Numbers in [-1, 1), the same every time, cut to bf16. */
static void fill(Array *array, uint32_t seed) {
  for (size_t n = 0; n < array->count; ++n) {
    seed = seed * 1664525u + 1013904223u;
    float value = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    array->host[n] = (uint16_t)(bits >> 16);
  }
}

static Array make_array(int heads, uint32_t seed) {
  Array array = {.shape = {BATCH, heads, TOKENS, DIM}, .count = (size_t)BATCH * heads * TOKENS * DIM};
  array.host = calloc(array.count, sizeof(uint16_t));
  array.device = device_allocate(array.count * sizeof(uint16_t));
  if (!array.host || !array.device) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  fill(&array, seed);
  if (!device_write(array.device, array.host, array.count * sizeof(uint16_t))) {
    fprintf(stderr, "no copy to the GPU\n");
    exit(1);
  }
  return array;
}

static void free_array(Array *array) {
  device_free(array->device);
  free(array->host);
}

static DLTensor view(Array *array) {
  DLTensor tensor = {0};
  tensor.data = array->device;
  tensor.device.device_type = kDLCUDA;
  tensor.ndim = 4;
  tensor.dtype = (DLDataType){kDLBfloat, 16, 1};
  tensor.shape = array->shape;
  return tensor;
}

static float at(const Array *array, int64_t b, int64_t h, int64_t token, int64_t d) {
  return from_bf16(array->host[((b * array->shape[1] + h) * TOKENS + token) * DIM + d]);
}

/* The definition, in double: softmax of q.k / sqrt(D) over the keys 0 .. i, times v. */
static void plain_row(const Array *q, const Array *k, const Array *v, int b, int h, int i, double *out) {
  int kv = h / (HEADS / KV_HEADS);
  double score[TOKENS], max = -INFINITY, sum = 0;
  for (int j = 0; j <= i; ++j) {
    double dot = 0;
    for (int d = 0; d < DIM; ++d)
      dot += (double)at(q, b, h, i, d) * at(k, b, kv, j, d);
    score[j] = dot / sqrt(DIM);
    max = fmax(max, score[j]);
  }
  memset(out, 0, DIM * sizeof(double));
  for (int j = 0; j <= i; ++j) {
    double weight = exp(score[j] - max);
    sum += weight;
    for (int d = 0; d < DIM; ++d)
      out[d] += weight * at(v, b, kv, j, d);
  }
  for (int d = 0; d < DIM; ++d)
    out[d] /= sum;
}

/* Reads the output, and forgets it on the device. */
static double largest_error(const Array *q, const Array *k, const Array *v, Array *out) {
  double worst = 0, expected[DIM];
  size_t bytes = out->count * sizeof(uint16_t);
  if (!device_read(out->host, out->device, bytes))
    return NAN;
  for (int b = 0; b < BATCH; ++b)
    for (int h = 0; h < HEADS; ++h)
      for (int i = 0; i < TOKENS; ++i) {
        plain_row(q, k, v, b, h, i, expected);
        for (int d = 0; d < DIM; ++d) {
          double error = fabs(at(out, b, h, i, d) - expected[d]);
          worst = error <= worst ? worst : error; /* a NaN stays */
        }
      }
  memset(out->host, 0xff, bytes);
  return device_write(out->device, out->host, bytes) ? worst : NAN;
}

/* bf16 keeps 8 bits of a result below 1. */
static int report(const char *what, double error) {
  int good = error <= 1.0 / 128;
  printf("%-34s largest error %.1e  %s\n", what, error, good ? "ok" : "WRONG");
  return good;
}

static int run(Array *q, Array *k, Array *v, Array *out) {
  DLTensor tq = view(q), tk = view(k), tv = view(v), tout = view(out);
  int good, code = attention(&tq, &tk, &tv, &tout, NULL);
  if (code != ATTN_OK) {
    fprintf(stderr, "code %d: %s\n", code, attn_last_error());
    return 1;
  }
  good = report("attention()", largest_error(q, k, v, out));

  /* The plan says which tiles are computed and lies on the GPU; made once, it serves every layer of a model with these
   * extents. */
  attn_plan *plan = NULL;
  code = attention_plan(&plan, &tq, &tk, &tv, NULL);
  if (code == ATTN_OK)
    code = attention_run(plan, &tq, &tk, &tv, &tout, NULL);
  if (code != ATTN_OK) {
    fprintf(stderr, "code %d: %s\n", code, attn_last_error());
    return 1;
  }
  good &= report("attention_plan(), attention_run()", largest_error(q, k, v, out));
  attn_plan_free(plan);
  return good ? 0 : 1;
}

/* What a call says on a machine without a GPU: nothing is read of the data. */
static int refuse(const char *why) {
  static uint16_t data[3][HEADS * DIM];
  Array one = {.device = data[0], .shape = {1, HEADS, 1, DIM}},
        two = {.device = data[1], .shape = {1, KV_HEADS, 1, DIM}};
  Array three = {.device = data[2], .shape = {1, HEADS, 1, DIM}};
  DLTensor q = view(&one), k = view(&two), out = view(&three);
  int code = attention(&q, &k, &k, &out, NULL);
  fprintf(stderr, "%s\ncode %d: %s\n", why, code, attn_last_error());
  return code == ATTN_NO_DEVICE ? 2 : 1;
}

int main(void) {
  const char *missing = device_start();
  if (missing)
    return refuse(missing);
  Array q = make_array(HEADS, 1), k = make_array(KV_HEADS, 2), v = make_array(KV_HEADS, 3), out = make_array(HEADS, 4);
  int status = run(&q, &k, &v, &out);
  free_array(&q);
  free_array(&k);
  free_array(&v);
  free_array(&out);
  return status;
}
