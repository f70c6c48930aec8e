/* What the runtime asks of the machine that runs GPU kernels. A compiled object has it from the CUDA driver (cuda.c); a
 * process that emulates GPUs defines it itself.
 *
 * Everything is ordered by `stream`, as in CUDA; null is the default stream. A function that answers a text failed, and
 * the text says how: it is a constant or lives as long as the thread.
 */
#ifndef ATTN_RUNTIME_DEVICE_H
#define ATTN_RUNTIME_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels of an object. `cubin` is null where no ptxas took part. */
typedef struct {
  const char *ptx; /* ends with a 0 */
  const void *cubin;
  int64_t cubin_bytes;
} AttnImage;

typedef struct {
  const AttnImage *image;
  const char *kernel;
  int64_t blocks, threads; /* of the grid; of a block */
  int64_t shared_bytes;    /* of a block */
  void *const *parameters; /* where each one lies, 8 bytes each */
  int64_t num_parameters;
} AttnDeviceLaunch;

/* Partial results: of each item and part first the sums of weighted values, row after row in whole sectors of memory,
 * then m and l of every row side by side. Floats of a row of sums, and of all that a row has (padded, so that every
 * part starts at a sector). */
static inline int64_t attn_sum_floats(int64_t value_dim) { return (value_dim + 7) / 8 * 8; }
static inline int64_t attn_partial_floats(int64_t value_dim) { return attn_sum_floats(value_dim) + 8; }

/* Threads of a block that runs the code of a step; each takes units that far apart. */
enum { ATTN_STEP_THREADS = 128 };

/* Is there the device `ordinal`, and does it take the kernels, if some are given? Makes it the one that the functions
 * below speak to. */
const char *attn_device_start(const AttnImage *image, int32_t ordinal);
const char *attn_device_allocate(int64_t bytes, void **memory, void *stream);
/* Frees once what the stream holds is done. */
const char *attn_device_release(void *memory, void *stream);
/* Frees once everything on the device `ordinal`, which has the memory, is done, whichever device the thread speaks to.
 */
const char *attn_device_release_idle(void *memory, int32_t ordinal);
/* Both wait until the copy is done: the host's memory is free for reuse. */
const char *attn_device_write(void *device, const void *host, int64_t bytes, void *stream);
const char *attn_device_read(void *host, const void *device, int64_t bytes, void *stream);
const char *attn_device_launch(const AttnDeviceLaunch *launch, void *stream);

#ifdef __cplusplus
}
#endif
#endif
