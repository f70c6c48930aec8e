/* Runs what consumer compiled. Query and key are 0, so each row averages the values of the keys it keeps, and value row
 * j holds j: the mean of i - 127 .. i, cut at 0. */
#include <dlpack/dlpack.h>
#include <math.h>
#include <stdio.h>

enum { HEADS = 4, TOKENS = 300, DIM = 64 };

int f(const DLTensor *q, const DLTensor *k, const DLTensor *v, DLTensor *out);

static float zero[HEADS][TOKENS][DIM], value[HEADS][TOKENS][DIM], out[HEADS][TOKENS][DIM];

static DLTensor view(void *data) {
  static int64_t shape[4] = {1, HEADS, TOKENS, DIM};
  DLTensor tensor = {0};
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 4;
  tensor.dtype = (DLDataType){kDLFloat, 32, 1};
  tensor.shape = shape;
  return tensor;
}

int main(void) {
  for (int h = 0; h < HEADS; ++h)
    for (int j = 0; j < TOKENS; ++j)
      for (int d = 0; d < DIM; ++d)
        value[h][j][d] = (float)j;
  DLTensor q = view(zero), v = view(value), o = view(out);
  if (f(&q, &q, &v, &o) != 0)
    return 1;
  double worst = 0;
  for (int h = 0; h < HEADS; ++h)
    for (int i = 0; i < TOKENS; ++i)
      for (int d = 0; d < DIM; ++d) {
        double expected = ((i < 127 ? 0 : i - 127) + i) / 2.0, error = fabs(out[h][i][d] - expected);
        worst = error <= worst ? worst : error;
      }
  printf("largest error %g: %s\n", worst, worst <= 1e-3 ? "ok" : "WRONG");
  return !(worst <= 1e-3);
}
