/* Does an output share memory with anything? Interleaved views of one buffer are told apart where strides show it. */
#include "Internal.h"

/* The bytes of a tensor: `lo` is its first byte, and every dimension of more than one element walks up by `stride`. */
typedef struct {
  uintptr_t lo;
  int64_t bytes; /* of an element; 0: the tensor is empty */
  int64_t dims, extent[ATTN_MAX_RANK], stride[ATTN_MAX_RANK];
} Span;

static Span make_span(const AttnTensor *tensor, const AttnMemRef *memref) {
  Span span = {(uintptr_t)memref->data, element_bytes(tensor), 0, {0}, {0}};
  for (int64_t d = 0; d < tensor->rank; d++) {
    int64_t extent = memref->extents[d], stride = memref->extents[tensor->rank + d] * element_bytes(tensor);
    if (extent == 0)
      span.bytes = 0;
    if (extent <= 1)
      continue;
    if (stride < 0) {
      span.lo -= (uintptr_t)(-stride * (extent - 1));
      stride = -stride;
    }
    span.extent[span.dims] = extent;
    span.stride[span.dims++] = stride;
  }
  return span;
}

/* Bytes from the first one to behind the last one, counting only dimensions with a stride below `limit`. */
static int64_t reach(const Span *span, int64_t limit) {
  int64_t bytes = span->bytes;
  for (int64_t d = 0; d < span->dims; d++)
    if (span->stride[d] < limit)
      bytes += (span->extent[d] - 1) * span->stride[d];
  return bytes;
}

static int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static int64_t gcd_of_large(const Span *span, int64_t limit, int64_t start) {
  for (int64_t d = 0; d < span->dims; d++)
    if (span->stride[d] >= limit)
      start = gcd(start, span->stride[d]);
  return start;
}

/* Taken modulo the common divisor of all large strides, each tensor is one short piece: are the pieces apart? */
static int apart_modulo(const Span *a, const Span *b, int64_t limit) {
  int64_t period = gcd_of_large(b, limit, gcd_of_large(a, limit, 0));
  if (period == 0)
    return 0;
  int64_t ahead = (int64_t)((b->lo - a->lo) % (uintptr_t)period);
  if (b->lo < a->lo)
    ahead = (period - (int64_t)((a->lo - b->lo) % (uintptr_t)period)) % period;
  return reach(a, limit) <= ahead && ahead + reach(b, limit) <= period;
}

/* "May": layouts whose separation the strides do not show count as overlapping. */
static int may_overlap(const Span *a, const Span *b) {
  if (a->bytes == 0 || b->bytes == 0)
    return 0;
  if (a->lo + (uintptr_t)reach(a, INT64_MAX) <= b->lo || b->lo + (uintptr_t)reach(b, INT64_MAX) <= a->lo)
    return 0;
  for (int64_t d = 0; d < a->dims; d++)
    if (a->stride[d] > 0 && apart_modulo(a, b, a->stride[d]))
      return 0;
  return 1;
}

/* No two elements share a byte if every stride steps over all that the smaller ones reach. */
static int may_overlap_itself(const Span *span) {
  for (int64_t d = 0; d < span->dims && span->bytes; d++) {
    int64_t below = reach(span, span->stride[d]);
    if (span->stride[d] < below)
      return 1;
    for (int64_t e = 0; e < d; e++)
      if (span->stride[e] == span->stride[d])
        return 1;
  }
  return 0;
}

int attn_check_overlap(AttnCall *call, int64_t count) {
  const AttnTensor *tensors = call->program.tensors;
  for (int64_t t = 0; t < count; t++) {
    if (tensors[t].role != ATTN_OUTPUT)
      continue;
    Span out = make_span(&tensors[t], &call->tensors[t]);
    if (may_overlap_itself(&out))
      return ATTN_FAIL_ARGUMENT(call, t, ATTN_OVERLAP, "%s elements share memory by their strides", "its");
    for (int64_t other = 0; other < count; other++) {
      Span span = make_span(&tensors[other], &call->tensors[other]);
      if (other != t && may_overlap(&out, &span))
        return ATTN_FAIL_ARGUMENT(call, t, ATTN_OVERLAP, "shares memory with '%s'",
                                  attn_tensor_name(&call->program, other));
    }
  }
  return ATTN_OK;
}
