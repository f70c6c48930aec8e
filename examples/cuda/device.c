#include "device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static struct {
  int (*init)(unsigned);
  int (*count)(int *);
  int (*retain)(void **, int);
  int (*set_current)(void *);
  int (*allocate)(uint64_t *, size_t);
  int (*release)(uint64_t);
  int (*write)(uint64_t, const void *, size_t, void *);
  int (*read)(void *, uint64_t, size_t, void *);
  int (*wait)(void *);
} driver;

static int find(void *library) {
  const struct {
    const char *name;
    void *place;
  } functions[] = {{"cuInit", &driver.init},
                   {"cuDeviceGetCount", &driver.count},
                   {"cuDevicePrimaryCtxRetain", &driver.retain},
                   {"cuCtxSetCurrent", &driver.set_current},
                   {"cuMemAlloc_v2", &driver.allocate},
                   {"cuMemFree_v2", &driver.release},
                   {"cuMemcpyHtoDAsync_v2", &driver.write},
                   {"cuMemcpyDtoHAsync_v2", &driver.read},
                   {"cuStreamSynchronize", &driver.wait}};
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
    if (!(*(void **)functions[i].place = dlsym(library, functions[i].name)))
      return 0;
  return 1;
}

const char *device_start(void) {
  static char text[64];
  void *context = NULL, *library = dlopen("libcuda.so.1", RTLD_NOW);
  int count = 0, code;
  if (!library)
    return "no CUDA driver: libcuda.so.1 was not found";
  if (!find(library))
    return "the CUDA driver is too old";
  if ((code = driver.init(0)) || (code = driver.count(&count)) || count == 0 || (code = driver.retain(&context, 0)) ||
      (code = driver.set_current(context))) {
    snprintf(text, sizeof(text), "no GPU: the CUDA driver answers %d", code);
    return text;
  }
  return NULL;
}

void *device_allocate(size_t bytes) {
  uint64_t address = 0;
  return driver.allocate(&address, bytes) ? NULL : (void *)(uintptr_t)address;
}

void device_free(void *memory) { driver.release((uint64_t)(uintptr_t)memory); }

int device_write(void *device, const void *host, size_t bytes) {
  return !driver.write((uint64_t)(uintptr_t)device, host, bytes, NULL) && !driver.wait(NULL);
}

int device_read(void *host, const void *device, size_t bytes) {
  return !driver.read(host, (uint64_t)(uintptr_t)device, bytes, NULL) && !driver.wait(NULL);
}
