/* Calls the compiled function `f` on tensors from .npy files and compares what it returns with other ones:
 *
 *     call q.npy:f4 k.npy:f4 ... -- out.npy:f4:1e-5 ...
 *
 * A tensor's element type is i1, i4, i8 (bytes), f4, f2, or b2, bf16, which .npy files hold as f32. Here all numbers
 * are little-endian. */
#include "attn/Runtime/Attn.h"

#include <dlpack/dlpack.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int f();

enum { MOST = 12, RANK = 6 };

static void die(const char *what, const char *which) {
  fprintf(stderr, "%s: %s\n", which, what);
  exit(2);
}

/* The tensor of a file whose header is that of numpy.save, version 1. */
static DLTensor *read_tensor(char *name, double *tolerance) {
  char *type = strchr(name, ':'), header[1024], magic[10];
  *type++ = 0;
  if (strchr(type, ':'))
    *tolerance = atof(strchr(type, ':') + 1);
  FILE *file = fopen(name, "rb");
  if (!file || fread(magic, 1, 10, file) != 10)
    die("cannot be read", name);
  size_t length = (unsigned char)magic[8] + 256 * (unsigned char)magic[9];
  if (length >= sizeof header || fread(header, 1, length, file) != length)
    die("has a header that cannot be read", name);
  header[length] = 0;
  DLTensor *tensor = calloc(1, sizeof *tensor);
  tensor->shape = calloc(RANK, sizeof(int64_t));
  size_t count = 1;
  for (char *at = strchr(strstr(header, "shape"), '(') + 1; *at != ')' && tensor->ndim < RANK;) {
    count *= tensor->shape[tensor->ndim++] = strtoll(at, &at, 10);
    at += strspn(at, ", ");
  }
  int narrow = type[0] == 'b', bytes = type[1] - '0', there = narrow ? 4 : bytes;
  tensor->device.device_type = kDLCPU;
  tensor->dtype = (DLDataType){narrow ? kDLBfloat : type[0] == 'f' ? kDLFloat : kDLInt, 8 * bytes, 1};
  char *data = tensor->data = aligned_alloc(64, (count * there + 64) / 64 * 64);
  if (fread(data, there, count, file) != count)
    die("is cut short", name);
  for (size_t n = 0; narrow && n < count; ++n) /* the upper half, for the numbers in the file are bf16 already */
    memcpy(data + 2 * n, data + 4 * n + 2, 2);
  fclose(file);
  return tensor;
}

static size_t count_of(const DLTensor *tensor) {
  size_t count = 1;
  for (int d = 0; d < tensor->ndim; ++d)
    count *= tensor->shape[d];
  return count;
}

static double number(const DLTensor *tensor, size_t n) {
  float wide = 0;
  if (tensor->dtype.code == kDLBfloat)
    memcpy((char *)&wide + 2, (char *)tensor->data + 2 * n, 2);
  else if (tensor->dtype.bits == 16)
    wide = (float)((_Float16 *)tensor->data)[n];
  else
    wide = ((float *)tensor->data)[n];
  return wide;
}

static int compare(const DLTensor *got, const DLTensor *wanted, double tolerance, int result) {
  double worst = 0;
  for (size_t n = 0, count = count_of(wanted); n < count; ++n) {
    double x = number(got, n), y = number(wanted, n), off = x == y ? 0 : fabs(x - y) / fmax(1, fabs(y));
    if (isnan(off) || off > worst)
      worst = isnan(off) ? INFINITY : off;
  }
  printf("result %d: %zu numbers, off by %.2g, allowed %.2g\n", result, count_of(wanted), worst, tolerance);
  return worst > tolerance;
}

int main(int argc, char **argv) {
  DLTensor *tensors[MOST] = {0}, *wanted[MOST] = {0};
  double tolerance[MOST] = {0};
  int inputs = 0, results = 0, wrong = 0;
  for (int i = 1; i < argc; ++i) {
    if (!strcmp(argv[i], "--")) {
      inputs = i - 1;
    } else if (!inputs) {
      tensors[i - 1] = read_tensor(argv[i], tolerance);
    } else {
      DLTensor *result = wanted[results] = read_tensor(argv[i], &tolerance[results]);
      DLTensor *place = tensors[inputs + results++] = malloc(sizeof *place);
      *place = *result;
      size_t bytes = (count_of(result) * result->dtype.bits / 8 + 64) / 64 * 64;
      place->data = memset(aligned_alloc(64, bytes), 0xff, bytes); /* NaN */
    }
  }
  DLTensor **t = tensors;
  int status = f(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11]);
  if (status)
    die(attn_last_error(), "f");
  for (int r = 0; r < results; ++r)
    wrong |= compare(tensors[inputs + r], wanted[r], tolerance[r], r);
  return wrong;
}
