/* Device.h over the CUDA driver. The driver is looked for when the first function runs, so that objects link, load and
 * say what is missing on machines without one. */
#include "Driver.h"
#include "attn/Runtime/Device.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlfcn.h>

/* A kernel of a loaded image. */
typedef struct Function {
  struct Function *next;
  const char *name;
  CUfunction handle;
  int64_t shared_bytes; /* that it may be launched with */
} Function;

/* An image in one context. Modules live as long as the process. */
typedef struct Module {
  struct Module *next;
  const AttnImage *image;
  CUcontext context;
  uint64_t context_id; /* handles are used again, these are not */
  CUmodule handle;
  Function *functions;
} Module;

static Driver driver;
static Module *modules;
static atomic_int state; /* 0: not looked for, 1: ready */
static atomic_flag busy = ATOMIC_FLAG_INIT;

static void lock(void) {
  while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire))
    sched_yield();
}

static void unlock(void) { atomic_flag_clear_explicit(&busy, memory_order_release); }

/* ---- messages ---- */

enum { TEXT_SIZE = 448, LOG_SIZE = 2048 };

static char *text_buffer(void) {
  static _Thread_local char text[TEXT_SIZE];
  return text;
}

#define TEXT(...) (snprintf(text_buffer(), TEXT_SIZE, __VA_ARGS__), text_buffer())

static const char *describe(CUresult result) {
  const char *text = NULL;
  if (driver.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
    text = "an error without a name";
  return text;
}

static const char *answer(CUresult result, const char *what, int64_t bytes) {
  if (result == CUDA_SUCCESS)
    return NULL;
  return TEXT("the CUDA driver failed to %s %lld bytes of device memory: %s, error %d", what, (long long)bytes,
              describe(result), result);
}

/* ---- driver, device, context ---- */

static const char *load_driver(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return "no CUDA driver: libcuda.so.1 was not found by the dynamic linker; install the NVIDIA driver, or add its "
           "folder to LD_LIBRARY_PATH";
#define ATTN_DRIVER_FUNCTION(field, symbol, required, parameters)                                                      \
  *(void **)&driver.field = dlsym(library, symbol);                                                                    \
  if (required && !driver.field)                                                                                       \
    return TEXT("the CUDA driver libcuda.so.1 has no %s; a driver for CUDA 11.2 or later has it", symbol);
#include "Driver.def"
  CUresult result = driver.cuInit(0);
  int count = 0;
  if (result == CUDA_SUCCESS)
    result = driver.cuDeviceGetCount(&count);
  if (result != CUDA_SUCCESS)
    return TEXT("no GPU: the CUDA driver does not start: %s, error %d", describe(result), result);
  return count ? NULL : "no GPU: the CUDA driver is there and sees no device (CUDA_VISIBLE_DEVICES may hide it)";
}

/* A failed search is repeated by the next call: a driver may be installed meanwhile. */
static const char *find_driver(void) {
  const char *text = NULL;
  if (atomic_load_explicit(&state, memory_order_acquire))
    return NULL;
  lock();
  if (!atomic_load_explicit(&state, memory_order_relaxed)) {
    text = load_driver();
    if (!text)
      atomic_store_explicit(&state, 1, memory_order_release);
  }
  unlock();
  return text;
}

/* The primary context, which the CUDA runtime and frameworks share. */
static CUresult enter_primary(CUdevice device, CUcontext *context) {
  CUresult result = driver.cuDevicePrimaryCtxRetain(context, device);
  return result == CUDA_SUCCESS ? driver.cuCtxSetCurrent(*context) : result;
}

/* The context that is current in this thread; where there is none, the primary one of `ordinal` becomes it. */
static const char *find_context(int ordinal, CUcontext *context) {
  CUdevice wanted = 0, current = 0;
  CUresult result = driver.cuDeviceGet(&wanted, ordinal);
  if (result == CUDA_SUCCESS)
    result = driver.cuCtxGetCurrent(context);
  if (result == CUDA_SUCCESS && *context) {
    result = driver.cuCtxGetDevice(&current);
    if (result == CUDA_SUCCESS && current != wanted)
      return TEXT("the tensors are on GPU %d, but another one, %d, is current in this thread; make theirs current",
                  ordinal, current);
  } else if (result == CUDA_SUCCESS) {
    result = enter_primary(wanted, context);
  }
  return result == CUDA_SUCCESS ? NULL : TEXT("GPU %d cannot be used: %s, error %d", ordinal, describe(result), result);
}

static int attribute(int which) {
  CUdevice device = 0;
  int value = 0;
  if (driver.cuCtxGetDevice(&device) == CUDA_SUCCESS)
    driver.cuDeviceGetAttribute(&value, which, device);
  return value;
}

static int has_pools(void) {
  return driver.cuMemAllocAsync && driver.cuMemFreeAsync && attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
}

/* ---- modules ---- */

/* The chip in the PTX: what stands behind ".target ". */
static int find_target(const char *ptx, const char **target) {
  static const char word[] = "\n.target ";
  *target = strstr(ptx, word);
  if (!*target)
    return 0;
  *target += sizeof(word) - 1;
  return (int)strcspn(*target, ", \n");
}

static const char *refuse_image(const AttnImage *image, CUresult result, const char *log) {
  const char *target = "";
  int length = find_target(image->ptx, &target);
  return TEXT("the kernels, compiled for %.*s, do not load on this GPU of compute capability %d.%d: %s, error %d%s%s",
              length, target, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
              attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), describe(result), result, *log ? ": " : "", log);
}

static CUresult load_data(const void *data, char *log, CUmodule *module) {
  int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, (void *)(uintptr_t)LOG_SIZE};
  log[0] = 0;
  return driver.cuModuleLoadDataEx(module, data, 2, options, values);
}

/* Machine code runs on the chip it is for and its minor revisions; the driver compiles PTX for the others. */
static const char *load_image(const AttnImage *image, CUmodule *module) {
  char *log = malloc(LOG_SIZE);
  if (!log)
    return "out of memory for the log of the CUDA driver";
  CUresult result = image->cubin ? load_data(image->cubin, log, module) : CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (result != CUDA_SUCCESS)
    result = load_data(image->ptx, log, module);
  const char *text = result == CUDA_SUCCESS ? NULL : refuse_image(image, result, log);
  free(log);
  return text;
}

/* Under the lock. */
static const char *find_module(const AttnImage *image, CUcontext context, Module **found) {
  uint64_t id = 0;
  if (driver.cuCtxGetId)
    driver.cuCtxGetId(context, &id);
  for (*found = modules; *found; *found = (*found)->next)
    if ((*found)->image == image && (*found)->context == context && (*found)->context_id == id)
      return NULL;
  Module *module = calloc(1, sizeof(*module));
  if (!module)
    return "out of memory for a module";
  const char *text = load_image(image, &module->handle);
  if (text) {
    free(module);
    return text;
  }
  module->image = image;
  module->context = context;
  module->context_id = id;
  module->next = modules;
  *found = modules = module;
  return NULL;
}

/* Under the lock. */
static const char *find_function(Module *module, const char *name, Function **found) {
  for (*found = module->functions; *found; *found = (*found)->next)
    if (strcmp((*found)->name, name) == 0)
      return NULL;
  Function *function = calloc(1, sizeof(*function));
  if (!function)
    return "out of memory for a function";
  CUresult result = driver.cuModuleGetFunction(&function->handle, module->handle, name);
  if (result != CUDA_SUCCESS) {
    free(function);
    return TEXT("the module has no kernel '%s': %s, error %d", name, describe(result), result);
  }
  function->name = name;
  function->shared_bytes = DEFAULT_SHARED_BYTES;
  function->next = module->functions;
  *found = module->functions = function;
  return NULL;
}

/* Under the lock. */
static const char *allow_shared(Function *function, int64_t bytes) {
  if (bytes <= function->shared_bytes)
    return NULL;
  CUresult result =
      driver.cuFuncSetAttribute(function->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes);
  if (result != CUDA_SUCCESS)
    return TEXT("a block of '%s' needs %lld bytes of shared memory, which this GPU does not give: %s, error %d",
                function->name, (long long)bytes, describe(result), result);
  function->shared_bytes = bytes;
  return NULL;
}

static const char *find_kernel(const AttnDeviceLaunch *launch, CUcontext context, CUfunction *kernel) {
  Module *module = NULL;
  Function *function = NULL;
  lock();
  const char *text = find_module(launch->image, context, &module);
  if (!text)
    text = find_function(module, launch->kernel, &function);
  if (!text)
    text = allow_shared(function, launch->shared_bytes);
  if (!text)
    *kernel = function->handle;
  unlock();
  return text;
}

/* ---- Device.h ---- */

const char *attn_device_start(const AttnImage *image, int32_t ordinal) {
  CUcontext context = NULL;
  Module *module = NULL;
  const char *text = find_driver();
  if (!text)
    text = find_context(ordinal, &context);
  if (text || !image)
    return text;
  lock();
  text = find_module(image, context, &module);
  unlock();
  return text;
}

static CUresult free_when_done(CUdeviceptr address, CUstream stream) {
  CUresult waited = driver.cuStreamSynchronize(stream), freed = driver.cuMemFree(address);
  return waited == CUDA_SUCCESS ? freed : waited;
}

const char *attn_device_allocate(int64_t bytes, void **memory, void *stream) {
  CUdeviceptr address = 0;
  size_t size = (size_t)(bytes > 0 ? bytes : 1);
  CUresult result = has_pools() ? driver.cuMemAllocAsync(&address, size, stream) : driver.cuMemAlloc(&address, size);
  *memory = (void *)(uintptr_t)address;
  return answer(result, "allocate", bytes);
}

const char *attn_device_release(void *memory, void *stream) {
  CUdeviceptr address = (CUdeviceptr)(uintptr_t)memory;
  CUresult result = has_pools() ? driver.cuMemFreeAsync(address, stream) : free_when_done(address, stream);
  return result == CUDA_SUCCESS
             ? NULL
             : TEXT("the CUDA driver failed to free device memory: %s, error %d", describe(result), result);
}

/* Perhaps in a thread that has not called before or speaks to another GPU: it is left as it was. */
const char *attn_device_release_idle(void *memory, int32_t ordinal) {
  CUdevice wanted = 0, current = 0;
  CUcontext before = NULL, entered = NULL;
  CUresult result = driver.cuDeviceGet(&wanted, ordinal);
  if (result == CUDA_SUCCESS)
    result = driver.cuCtxGetCurrent(&before);
  if (result == CUDA_SUCCESS && before)
    result = driver.cuCtxGetDevice(&current);
  if (result == CUDA_SUCCESS && !(before && current == wanted))
    result = enter_primary(wanted, &entered);
  if (result == CUDA_SUCCESS)
    result = driver.cuCtxSynchronize();
  if (result == CUDA_SUCCESS)
    result = driver.cuMemFree((CUdeviceptr)(uintptr_t)memory);
  if (entered)
    driver.cuCtxSetCurrent(before);
  return result == CUDA_SUCCESS
             ? NULL
             : TEXT("the CUDA driver failed to free device memory: %s, error %d", describe(result), result);
}

const char *attn_device_write(void *device, const void *host, int64_t bytes, void *stream) {
  CUresult result = driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)device, host, (size_t)bytes, stream);
  if (result == CUDA_SUCCESS)
    result = driver.cuStreamSynchronize(stream);
  return answer(result, "write", bytes);
}

const char *attn_device_read(void *host, const void *device, int64_t bytes, void *stream) {
  CUresult result = driver.cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)device, (size_t)bytes, stream);
  if (result == CUDA_SUCCESS)
    result = driver.cuStreamSynchronize(stream);
  return answer(result, "read", bytes);
}

const char *attn_device_launch(const AttnDeviceLaunch *launch, void *stream) {
  CUcontext context = NULL;
  CUfunction kernel = NULL;
  CUresult result = driver.cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS)
    return TEXT("no current context: %s, error %d", describe(result), result);
  const char *text = find_kernel(launch, context, &kernel);
  if (text)
    return text;
  result = driver.cuLaunchKernel(kernel, (unsigned)launch->blocks, 1, 1, (unsigned)launch->threads, 1, 1,
                                 (unsigned)launch->shared_bytes, stream, (void **)launch->parameters, NULL);
  if (result != CUDA_SUCCESS)
    return TEXT(
        "the CUDA driver refused to launch '%s' (%lld blocks of %lld threads, %lld bytes of shared memory): %s, "
        "error %d",
        launch->kernel, (long long)launch->blocks, (long long)launch->threads, (long long)launch->shared_bytes,
        describe(result), result);
  return NULL;
}
