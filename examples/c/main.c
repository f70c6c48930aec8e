/* Attention from C: calls the kernel that attn-compile made of examples/window.mlir, on tensors in DLPack's form.
 *
 * The tensors lie in memory as [batch, tokens, heads, head_dim], as most models have them; the kernel wants [batch,
 * heads, tokens, head_dim] and gets it through strides, so nothing is copied. build.sh compiles, links and runs this.
 */
#include "window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, HEADS = 3, TOKENS = 301, DIM = 64, WINDOW = 256 /* keys a query sees, itself among them */ };

static const size_t count = (size_t)BATCH * HEADS * TOKENS * DIM;

/* A [batch, heads, tokens, head_dim] view of memory that holds [batch, tokens, heads, head_dim]. */
typedef struct {
  float *data;
  int64_t shape[4], strides[4];
} Array;

static Array make_array(void) {
  Array array = {
      calloc(count, sizeof(float)), {BATCH, HEADS, TOKENS, DIM}, {TOKENS * HEADS * DIM, DIM, HEADS * DIM, 1}};
  if (!array.data) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return array;
}

static DLTensor view(Array *array) {
  DLTensor tensor = {0};
  tensor.data = array->data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 4;
  tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  tensor.shape = array->shape;
  tensor.strides = array->strides;
  return tensor;
}

/* Numbers in [-1, 1), the same every time. */
static void fill(Array *array, uint32_t seed) {
  for (size_t n = 0; n < count; ++n) {
    seed = seed * 1664525u + 1013904223u;
    array->data[n] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
  }
}

static const float *row(const Array *array, int b, int h, int token) {
  return array->data + b * array->strides[0] + h * array->strides[1] + token * array->strides[2];
}

/* The definition, in double: softmax of q.k / sqrt(D) over the keys i - 255 .. i, times v. */
static void plain_row(const Array *q, const Array *k, const Array *v, int b, int h, int i, double *out) {
  int first = i >= WINDOW ? i - WINDOW + 1 : 0;
  double score[WINDOW], max = -INFINITY, sum = 0;
  for (int j = first; j <= i; ++j) {
    double dot = 0;
    for (int d = 0; d < DIM; ++d)
      dot += (double)row(q, b, h, i)[d] * row(k, b, h, j)[d];
    score[j - first] = dot / sqrt(DIM);
    max = fmax(max, score[j - first]);
  }
  memset(out, 0, DIM * sizeof(double));
  for (int j = first; j <= i; ++j) {
    double weight = exp(score[j - first] - max);
    sum += weight;
    for (int d = 0; d < DIM; ++d)
      out[d] += weight * row(v, b, h, j)[d];
  }
  for (int d = 0; d < DIM; ++d)
    out[d] /= sum;
}

static double largest_error(const Array *q, const Array *k, const Array *v, const Array *out) {
  double worst = 0, expected[DIM];
  for (int b = 0; b < BATCH; ++b)
    for (int h = 0; h < HEADS; ++h)
      for (int i = 0; i < TOKENS; ++i) {
        plain_row(q, k, v, b, h, i, expected);
        for (int d = 0; d < DIM; ++d) {
          double error = fabs(row(out, b, h, i)[d] - expected[d]);
          worst = error <= worst ? worst : error; /* a NaN stays */
        }
      }
  return worst;
}

static int report(const char *what, double error) {
  int good = error <= 1e-6;
  printf("%-28s largest error %.1e  %s\n", what, error, good ? "ok" : "WRONG");
  return good;
}

/* A query of the wrong head_dim is refused by name and the output stays as it was. */
static int refuses_wrong_shape(DLTensor q, const DLTensor *k, const DLTensor *v, Array *out, DLTensor *tout) {
  int64_t shape[4] = {BATCH, HEADS, TOKENS, DIM - 1};
  q.shape = shape;
  out->data[0] = 42.0f;
  int code = window(&q, k, v, tout);
  printf("a wrong shape gives code %d: %s\n", code, attn_last_error());
  return code != 0 && out->data[0] == 42.0f && strstr(attn_last_error(), "q") != NULL;
}

int main(void) {
  Array q = make_array(), k = make_array(), v = make_array(), out = make_array();
  fill(&q, 1);
  fill(&k, 2);
  fill(&v, 3);
  DLTensor tq = view(&q), tk = view(&k), tv = view(&v), tout = view(&out);

  if (window(&tq, &tk, &tv, &tout) != 0) {
    fprintf(stderr, "window: %s\n", attn_last_error());
    return 1;
  }
  int good = report("window()", largest_error(&q, &k, &v, &out));

  /* The plan says which tiles are computed; made once, it serves every layer of a model with these extents. */
  attn_plan *plan = NULL;
  memset(out.data, 0, count * sizeof(float));
  if (window_plan(&plan, &tq, &tk, &tv) != 0 || window_run(plan, &tq, &tk, &tv, &tout) != 0) {
    fprintf(stderr, "window_plan, window_run: %s\n", attn_last_error());
    return 1;
  }
  attn_plan_free(plan);
  good &= report("window_plan(), window_run()", largest_error(&q, &k, &v, &out));

  good &= refuses_wrong_shape(tq, &tk, &tv, &out, &tout);
  free(q.data);
  free(k.data);
  free(v.data);
  free(out.data);
  return good ? 0 : 1;
}
