/* Memory of a GPU, through the CUDA driver that is found at run time: a program that has it from elsewhere (cudaMalloc,
 * a framework) needs none of this. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stddef.h>

/* Starts the first GPU and makes its primary context current. Null, or what is missing. */
const char *device_start(void);
void *device_allocate(size_t bytes); /* null: out of memory */
void device_free(void *memory);
/* Both wait until the copy is done; 0 where it failed. */
int device_write(void *device, const void *host, size_t bytes);
int device_read(void *host, const void *device, size_t bytes);

#endif
