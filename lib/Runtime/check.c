/* Argument checks: every tensor against its row in the function's table. */
#include "Internal.h"

enum { DTYPE_UINT = 1, DTYPE_BOOL = 6 }; /* 6: kDLBool, younger than some DLPack headers */

/* Kernels of a GPU count positions in 32 bits, and sums of two of them. */
static int64_t max_extent(const AttnCall *call) { return on_device(call) ? INT64_C(1) << 30 : INT32_MAX; }

/* The argument under check. */
typedef struct {
  AttnCall *call;
  int64_t index;
  const AttnTensor *expected;
  const DLTensor *got;
} Argument;

#define REFUSE(arg, status, format, ...) ATTN_FAIL_ARGUMENT((arg)->call, (arg)->index, status, format, __VA_ARGS__)

static int check_pointer(const Argument *arg) {
  return arg->got ? ATTN_OK : REFUSE(arg, ATTN_NULL_ARGUMENT, "%s pointer", "null");
}

static int check_device(const Argument *arg) {
  int type = (int)arg->got->device.device_type, expected = (int)arg->call->program.function->device;
  if (type != expected)
    return REFUSE(arg, ATTN_WRONG_DEVICE, "device type is %d, expected %d (%s)", type, expected,
                  expected == kDLCPU ? "CPU" : "CUDA");
  if (type == kDLCUDA && arg->index == 0)
    arg->call->ordinal = arg->got->device.device_id;
  if (type == kDLCUDA && arg->got->device.device_id != arg->call->ordinal)
    return REFUSE(arg, ATTN_WRONG_DEVICE, "it is on GPU %d, but '%s' is on GPU %d", (int)arg->got->device.device_id,
                  attn_tensor_name(&arg->call->program, 0), (int)arg->call->ordinal);
  return ATTN_OK;
}

static int check_rank(const Argument *arg) {
  if (arg->got->ndim != arg->expected->rank)
    return REFUSE(arg, ATTN_WRONG_RANK, "rank is %d, expected %d", arg->got->ndim, (int)arg->expected->rank);
  if (arg->got->ndim > 0 && !arg->got->shape)
    return REFUSE(arg, ATTN_NULL_ARGUMENT, "%s shape", "null");
  return ATTN_OK;
}

static const char *dtype_name(int64_t code) {
  static const char *const names[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  return code >= 0 && code <= DTYPE_BOOL ? names[code] : "unknown";
}

/* Older exporters say uint8, or uint of 1 bit, where they mean bool. */
static int same_dtype(const AttnTensor *expected, DLDataType got) {
  if (got.lanes != 1)
    return 0;
  if (expected->dtype_code == DTYPE_BOOL && got.code == DTYPE_UINT)
    return got.bits == 8 || got.bits == 1;
  return got.code == expected->dtype_code && got.bits == expected->bits;
}

static int check_dtype(const Argument *arg) {
  DLDataType got = arg->got->dtype;
  if (same_dtype(arg->expected, got))
    return ATTN_OK;
  return REFUSE(arg, ATTN_WRONG_DTYPE, "element type is %s%d (%d lanes), expected %s%d", dtype_name(got.code), got.bits,
                got.lanes, dtype_name(arg->expected->dtype_code), (int)arg->expected->bits);
}

static int check_symbol(const Argument *arg, int64_t symbol, int64_t dim, int64_t extent) {
  AttnCall *call = arg->call;
  if (call->extents[symbol] < 0) {
    call->extents[symbol] = extent;
    call->definers[symbol] = arg->index;
  }
  if (call->extents[symbol] == extent)
    return ATTN_OK;
  return REFUSE(arg, ATTN_WRONG_EXTENT, "%s (dimension %d) is %lld, but '%s' has %lld",
                attn_symbol_name(&call->program, symbol), (int)dim, (long long)extent,
                attn_tensor_name(&call->program, call->definers[symbol]), (long long)call->extents[symbol]);
}

static int check_extent(const Argument *arg, int64_t dim) {
  int64_t extent = arg->got->shape[dim], expected = arg->expected->dims[dim];
  if (extent < 0 || extent > max_extent(arg->call))
    return REFUSE(arg, ATTN_WRONG_EXTENT, "dimension %d is %lld, expected 0 to %lld", (int)dim, (long long)extent,
                  (long long)max_extent(arg->call));
  if (expected < 0)
    return check_symbol(arg, -expected - 1, dim, extent);
  if (extent != expected)
    return REFUSE(arg, ATTN_WRONG_EXTENT, "dimension %d is %lld, expected %lld", (int)dim, (long long)extent,
                  (long long)expected);
  return ATTN_OK;
}

static int check_extents(const Argument *arg) {
  for (int64_t d = 0; d < arg->expected->rank; d++) {
    int status = check_extent(arg, d);
    if (status != ATTN_OK)
      return status;
  }
  return ATTN_OK;
}

/* Sizes and strides into the memref. The stride of a dimension of extent 0 or 1 means nothing; it becomes 0, or 1 if
 * innermost. */
static int fill_strides(const Argument *arg) {
  int64_t rank = arg->expected->rank, compact = 1, reach = 0;
  int64_t *extents = arg->call->tensors[arg->index].extents;
  for (int64_t d = rank; d-- > 0;) {
    int64_t extent = arg->got->shape[d], bytes;
    int64_t stride = extent <= 1 ? d == rank - 1 : arg->got->strides ? arg->got->strides[d] : compact;
    extents[d] = extent;
    extents[rank + d] = stride;
    if (__builtin_mul_overflow(stride, max64(extent - 1, 0) * element_bytes(arg->expected), &bytes) ||
        bytes == INT64_MIN || __builtin_add_overflow(reach, bytes < 0 ? -bytes : bytes, &reach) ||
        __builtin_mul_overflow(compact, max64(extent, 1), &compact))
      return REFUSE(arg, ATTN_WRONG_STRIDE, "stride %lld of dimension %d reaches beyond the address space",
                    (long long)stride, (int)d);
  }
  return ATTN_OK;
}

static int check_strides(const Argument *arg) {
  int status = fill_strides(arg);
  int64_t rank = arg->expected->rank;
  if (status != ATTN_OK || rank == 0 || !arg->expected->inner_contiguous)
    return status;
  int64_t stride = arg->call->tensors[arg->index].extents[2 * rank - 1];
  return stride == 1
             ? ATTN_OK
             : REFUSE(arg, ATTN_WRONG_STRIDE, "stride of the last dimension is %lld, expected 1", (long long)stride);
}

static int check_data(const Argument *arg) {
  int64_t elements = 1, size = element_bytes(arg->expected);
  for (int64_t d = 0; d < arg->expected->rank; d++)
    elements *= arg->got->shape[d] > 0;
  if (elements && !arg->got->data)
    return REFUSE(arg, ATTN_NULL_ARGUMENT, "%s data", "null");
  char *data = arg->got->data ? (char *)arg->got->data + arg->got->byte_offset : NULL;
  if (elements && (uintptr_t)data % (uintptr_t)size != 0)
    return REFUSE(arg, ATTN_MISALIGNED, "data is at %p, expected a multiple of %d bytes", (void *)data, (int)size);
  AttnMemRef *memref = &arg->call->tensors[arg->index];
  memref->base = memref->data = data;
  memref->offset = 0;
  return ATTN_OK;
}

int attn_check_arguments(AttnCall *call, const DLTensor *const *args, int64_t count) {
  static int (*const checks[])(const Argument *) = {check_pointer, check_device,  check_rank, check_dtype,
                                                    check_extents, check_strides, check_data};
  for (int64_t t = 0; t < count; t++) {
    Argument arg = {call, t, &call->program.tensors[t], args[t]};
    for (size_t c = 0; c < sizeof(checks) / sizeof(checks[0]); c++) {
      int status = checks[c](&arg);
      if (status != ATTN_OK)
        return status;
    }
  }
  return ATTN_OK;
}

int attn_check_heads(AttnCall *call) {
  for (int64_t k = 0; k < call->program.function->num_kernels; k++) {
    const AttnKernel *kernel = &call->program.kernels[k];
    int64_t heads = call->tensors[kernel->out].extents[1], kv_heads = call->tensors[kernel->key].extents[1];
    if (kv_heads == 0 ? heads != 0 : heads % kv_heads != 0)
      return ATTN_FAIL_ARGUMENT(call, kernel->query, ATTN_WRONG_EXTENT,
                                "%lld heads are not a multiple of the %lld heads of '%s'", (long long)heads,
                                (long long)kv_heads, attn_tensor_name(&call->program, kernel->key));
    if (kv_heads != 0 && heads / kv_heads % attn_pack(kernel) != 0)
      return ATTN_FAIL_ARGUMENT(call, kernel->query, ATTN_WRONG_EXTENT,
                                "%lld heads share a head of '%s', no multiple of the %lld that the schedule packs",
                                (long long)(heads / kv_heads), attn_tensor_name(&call->program, kernel->key),
                                (long long)attn_pack(kernel));
  }
  return ATTN_OK;
}

static int check_multiples(AttnCall *call, const AttnStep *step) {
  for (int64_t k = 0; k < step->num_multiples; k++) {
    const AttnMultiple *m = &step->multiples[k];
    int64_t t = step->operands[m->operand], of_t = step->operands[m->of_operand];
    int64_t extent = call->tensors[t].extents[m->dim], of = call->tensors[of_t].extents[m->of_dim];
    if (of == 0 ? extent != 0 : extent % of != 0)
      return ATTN_FAIL_ARGUMENT(
          call, t, ATTN_WRONG_EXTENT, "dimension %d is %lld, no multiple of dimension %d of '%s', %lld", (int)m->dim,
          (long long)extent, (int)m->of_dim, attn_tensor_name(&call->program, of_t), (long long)of);
  }
  return ATTN_OK;
}

static int check_least(AttnCall *call, const AttnStep *step) {
  for (int64_t k = 0; k < step->num_least; k++) {
    const AttnLeast *l = &step->least[k];
    int64_t t = step->operands[l->operand], of = call->tensors[step->operands[l->of_operand]].extents[l->of_dim];
    int64_t extent = call->tensors[t].extents[l->dim], least = of * l->times + l->plus;
    if ((l->times == 0 || of > 0) && extent < least)
      return ATTN_FAIL_ARGUMENT(call, t, ATTN_WRONG_EXTENT, "dimension %d is %lld, expected at least %lld", (int)l->dim,
                                (long long)extent, (long long)least);
  }
  return ATTN_OK;
}

int attn_check_steps(AttnCall *call) {
  int status = ATTN_OK;
  for (int64_t k = 0; k < call->program.function->num_steps && status == ATTN_OK; k++) {
    status = check_multiples(call, &call->program.steps[k]);
    if (status == ATTN_OK)
      status = check_least(call, &call->program.steps[k]);
  }
  return status;
}

/* An index outside a captured tensor reads its nearest element, so there must be one. A set may be empty where its last
 * dimension is searched, not read. */
int attn_check_captured(AttnCall *call) {
  for (int64_t k = 0; k < call->program.function->num_kernels; k++) {
    const AttnKernel *kernel = &call->program.kernels[k];
    const int64_t *query = call->tensors[kernel->out].extents, *key = call->tensors[kernel->key].extents;
    if (query[0] == 0 || query[1] == 0 || query[2] == 0 || key[2] == 0)
      continue; /* no pair asks */
    for (int64_t c = 0; c < kernel->num_captured; c++) {
      int64_t index = kernel->captured[c], dims = call->program.tensors[index].rank - (kernel->searched >> c & 1);
      for (int64_t d = 0; d < dims; d++)
        if (call->tensors[index].extents[d] == 0)
          return ATTN_FAIL_ARGUMENT(call, index, ATTN_WRONG_EXTENT,
                                    "dimension %d is 0, expected at least 1: the mask or score reads it", (int)d);
    }
  }
  return ATTN_OK;
}
