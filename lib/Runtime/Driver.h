/* The part of the CUDA driver API that objects use, declared here: building them needs no CUDA toolkit. Names and
 * numbers are those of cuda.h, and are a stable ABI. */
#ifndef ATTN_RUNTIME_DRIVER_H
#define ATTN_RUNTIME_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef void *CUstream;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_NO_BINARY_FOR_GPU = 209 };
enum { CU_JIT_ERROR_LOG_BUFFER = 5, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6 };
enum { CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 };
enum {
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115
};
enum { DEFAULT_SHARED_BYTES = 48 << 10 }; /* of a block, without asking for more */

typedef struct {
#define ATTN_DRIVER_FUNCTION(field, symbol, required, parameters) CUresult(*field) parameters;
#include "Driver.def"
} Driver;

#endif
