/* One call, of tensors that nothing reads: what the object says of the driver. */
#include "packed.h"
#include <stdio.h>

int main(void) {
  static char memory[3][256];
  int64_t shape[] = {1, 2, 1, 64}, ids_shape[] = {1, 1};
  DLTensor q = {0}, doc = {0};
  q.data = memory[0];
  q.device.device_type = doc.device.device_type = kDLCUDA;
  q.ndim = 4;
  q.dtype = (DLDataType){kDLBfloat, 16, 1};
  q.shape = shape;
  DLTensor out = q;
  out.data = memory[1];
  doc.data = memory[2];
  doc.ndim = 2;
  doc.dtype = (DLDataType){kDLInt, 32, 1};
  doc.shape = ids_shape;
  int code = packed(&q, &q, &q, &doc, &out, NULL);
  printf("code %d: %s\n", code, attn_last_error());
  return 0;
}
