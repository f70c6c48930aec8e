/* What a program that calls compiled attention functions needs to know: error codes, the last message, and plans.
 *
 * Every public function NAME of a spec comes as three C functions over DLPack tensors on the CPU, or, where it was
 * compiled for a GPU, in the memory of one, and then the stream is one more argument, the last:
 *
 *   plan and run               int NAME(const DLTensor *input..., DLTensor *output...);
 *   look at the mask once ...  int NAME_plan(attn_plan **plan, const DLTensor *input...);
 *   ... for many calls         int NAME_run(const attn_plan *plan, const DLTensor *input..., DLTensor *output...);
 *
 * Each returns ATTN_OK or another AttnStatus, and attn_last_error() then says what was wrong with which argument.
 * Outputs are untouched unless the status is ATTN_OK. A plan holds what the mask says for the extents and the captured
 * mask data it was made from; it may be shared by threads, and NAME_run refuses it for other extents.
 */
#ifndef ATTN_RUNTIME_ATTN_H
#define ATTN_RUNTIME_ATTN_H

#ifdef __cplusplus
extern "C" {
#endif

enum AttnStatus {
  ATTN_OK = 0,
  ATTN_NULL_ARGUMENT = 1, /* a null tensor, null shape, or null data of a tensor that has elements */
  ATTN_WRONG_RANK = 2,
  ATTN_WRONG_DTYPE = 3,
  ATTN_WRONG_DEVICE = 4, /* not kDLCPU; of functions for a GPU, not kDLCUDA */
  ATTN_WRONG_EXTENT = 5, /* not the extent the spec fixes, or not the extent another argument has, or 2^31 and more */
  ATTN_WRONG_STRIDE = 6, /* the last dimension must be contiguous */
  ATTN_MISALIGNED = 7,   /* data must be aligned to the size of an element */
  ATTN_OVERLAP = 8,      /* an output shares memory with an input, another output, or itself */
  ATTN_OUT_OF_MEMORY = 9,
  ATTN_WRONG_PLAN = 10,    /* the plan is of another function, other extents or another GPU */
  ATTN_NO_DEVICE = 11,     /* no CUDA driver, no GPU, or one that the kernels were not compiled for */
  ATTN_DEVICE_FAILED = 12, /* the CUDA driver refused a request; outputs may be touched */
  ATTN_NO_AMX = 13,        /* the code is for CPUs with AMX, and this one, or its operating system, has none to give */
  ATTN_NO_CPU = 14         /* the object holds code for several CPUs, and none of it runs on this one */
};

typedef struct attn_plan attn_plan;

/* What went wrong in the last failed call of this thread; "" if nothing did. Valid until the next failed call of the
 * thread. */
const char *attn_last_error(void);

/* Gives back a plan; null is allowed. */
void attn_plan_free(attn_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
