//===- Driver.cpp - A CUDA driver without a GPU ---------------------------===//
//
// libcuda.so.1 for tests: what objects call of it, with its rules checked. The environment steers it:
//
//   FAKE_CUDA_LOG=FILE          a line for each call that does something
//   FAKE_CUDA_FAIL=NAME=CODE    that function fails
//   FAKE_CUDA_DEVICES=N         so many GPUs (1)
//   FAKE_CUDA_CHIP=80           their compute capability times 10; newer code is refused
//   FAKE_CUDA_CUBIN=off         machine code is refused, PTX is not
//   FAKE_CUDA_POOLS=off         no stream-ordered allocation
//   FAKE_CUDA_KERNELS=FILE      what runs; see Device.h
//
//===----------------------------------------------------------------------===//
#include "Device.h"

#include "llvm/ADT/StringExtras.h"
#include <cstdarg>
#include <cstdlib>
#include <cstring>

using llvm::StringRef;

namespace fake {
namespace {

enum Code {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NoBinary = 209,
  BadPTX = 218,
  NotFound = 500,
  Illegal = 700
};
enum Attribute { Major = 75, Minor = 76, Pools = 115 };
enum { ErrorLog = 5, ErrorLogSize = 6, DynamicShared = 8 };

std::recursive_mutex calls;
thread_local void *currentContext = nullptr;
char contexts[8]; // their addresses are handles

StringRef setting(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value ? value : otherwise;
}

int number(const char *name, const char *otherwise) {
  int value = 0;
  (void)setting(name, otherwise).getAsInteger(10, value);
  return value;
}

void log(const std::string &line) {
  if (const char *file = std::getenv("FAKE_CUDA_LOG"))
    if (FILE *out = std::fopen(file, "a")) {
      std::fprintf(out, "%s\n", line.c_str());
      std::fclose(out);
    }
}

/// What a call of `name` has to answer before it looks at anything: 0, or the code that the environment asks for.
int begin(StringRef name, bool needsContext = true) {
  auto [which, code] = setting("FAKE_CUDA_FAIL", "").split('=');
  int answer = 0;
  if (which == name && !code.getAsInteger(10, answer)) {
    log((name + " fails").str());
    return answer;
  }
  return needsContext && !currentContext ? 201 : Success;
}

int currentGPU() { return static_cast<int>(static_cast<char *>(currentContext) - contexts); }

bool isNewer(StringRef ptx) {
  int chip = 0;
  StringRef target = ptx.split(".target sm_").second;
  target.take_while(llvm::isDigit).getAsInteger(10, chip);
  return chip == 0 || chip > number("FAKE_CUDA_CHIP", "80");
}

} // namespace
} // namespace fake

using namespace fake;

#define FAKE(name) extern "C" __attribute__((visibility("default"))) int name
#define BEGIN(...)                                                                                                     \
  std::lock_guard<std::recursive_mutex> guard(calls);                                                                  \
  if (int code = begin(__VA_ARGS__))                                                                                   \
  return code

FAKE(cuInit)(unsigned) {
  BEGIN("cuInit", false);
  return number("FAKE_CUDA_DEVICES", "1") ? Success : 100;
}

FAKE(cuGetErrorString)(int code, const char **text) {
  *text = code == OutOfMemory ? "out of memory" : code == 100 ? "no CUDA-capable device is detected" : "fake error";
  return Success;
}

FAKE(cuDeviceGetCount)(int *count) {
  *count = number("FAKE_CUDA_DEVICES", "1");
  return Success;
}

FAKE(cuDeviceGet)(int *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < number("FAKE_CUDA_DEVICES", "1") ? Success : 101;
}

FAKE(cuDeviceGetAttribute)(int *value, int attribute, int) {
  int chip = number("FAKE_CUDA_CHIP", "80");
  *value = attribute == Major ? chip / 10 : attribute == Minor ? chip % 10 : setting("FAKE_CUDA_POOLS", "on") == "on";
  return Success;
}

FAKE(cuDevicePrimaryCtxRetain)(void **context, int device) {
  BEGIN("cuDevicePrimaryCtxRetain", false);
  *context = &contexts[device];
  return Success;
}

FAKE(cuCtxGetCurrent)(void **context) {
  *context = currentContext;
  return Success;
}

FAKE(cuCtxSetCurrent)(void *context) {
  currentContext = context;
  log("context " + (context ? std::to_string(currentGPU()) : "none"));
  return Success;
}

FAKE(cuCtxGetDevice)(int *device) {
  BEGIN("cuCtxGetDevice");
  *device = currentGPU();
  return Success;
}

FAKE(cuCtxGetId)(void *context, unsigned long long *id) {
  *id = reinterpret_cast<uintptr_t>(context);
  return Success;
}

FAKE(cuCtxSynchronize)() {
  BEGIN("cuCtxSynchronize");
  log("wait for all of GPU " + std::to_string(currentGPU()));
  return Success;
}

static int refuse(int code, StringRef why, unsigned count, const int *options, void **values) {
  for (unsigned i = 0; i < count; ++i)
    if (options[i] == ErrorLog)
      std::strcpy(static_cast<char *>(values[i]), why.str().c_str());
  return code;
}

FAKE(cuModuleLoadDataEx)(void **module, const void *image, unsigned count, int *options, void **values) {
  BEGIN("cuModuleLoadDataEx");
  StringRef text(static_cast<const char *>(image));
  bool machineCode = text.starts_with("\177ELF");
  if (machineCode && (setting("FAKE_CUDA_CUBIN", "on") == "off" || number("FAKE_CUDA_CHIP", "80") != 80)) {
    log("load cubin: refused");
    return NoBinary;
  }
  if (!machineCode && isNewer(text)) {
    log("load ptx: refused");
    return refuse(BadPTX, "ptxas fatal: the target is newer than this GPU", count, options, values);
  }
  log(machineCode ? "load cubin" : "load ptx");
  auto *loaded = new Module;
  if (!machineCode)
    loaded->ptx = text.str();
  *module = loaded;
  return Success;
}

FAKE(cuModuleGetFunction)(void **function, void *module, const char *name) {
  BEGIN("cuModuleGetFunction");
  auto *loaded = static_cast<Module *>(module);
  bool there = loaded->ptx.empty() || StringRef(loaded->ptx).contains((".entry " + StringRef(name) + "(").str());
  log(std::string("function ") + name + (there ? "" : ": none"));
  if (!there)
    return NotFound;
  Function &entry = loaded->functions[name];
  entry.name = name;
  *function = &entry;
  return Success;
}

FAKE(cuFuncSetAttribute)(void *function, int attribute, int value) {
  BEGIN("cuFuncSetAttribute");
  if (attribute != DynamicShared || value > 163 << 10)
    return InvalidValue;
  log("shared limit " + std::to_string(value));
  static_cast<Function *>(function)->sharedLimit = value;
  return Success;
}

FAKE(cuLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                     unsigned shared, void *stream, void **parameters, void **extra) {
  BEGIN("cuLaunchKernel");
  auto *entry = static_cast<Function *>(function);
  log("launch " + entry->name + (stream ? " on a stream" : ""));
  if (gx == 0 || gy != 1 || gz != 1 || bx % 32 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || extra)
    return InvalidValue;
  if (shared > entry->sharedLimit)
    return InvalidValue;
  return Device::get().run(currentGPU(), entry->name, {gx, bx, shared}, parameters) ? Success : Illegal;
}

static int allocate(uint64_t *address, size_t bytes) {
  if (bytes == 0)
    return InvalidValue;
  *address = reinterpret_cast<uint64_t>(Device::get().allocate(currentGPU(), bytes));
  return *address ? Success : OutOfMemory;
}

static int release(uint64_t address) {
  return Device::get().release(currentGPU(), reinterpret_cast<void *>(address)) ? Success : InvalidValue;
}

FAKE(cuMemAlloc_v2)(uint64_t *address, size_t bytes) {
  BEGIN("cuMemAlloc_v2");
  log("allocate");
  return allocate(address, bytes);
}

FAKE(cuMemFree_v2)(uint64_t address) {
  BEGIN("cuMemFree_v2");
  log("free");
  return release(address);
}

FAKE(cuMemAllocAsync)(uint64_t *address, size_t bytes, void *) {
  BEGIN("cuMemAllocAsync");
  log("allocate in order");
  return setting("FAKE_CUDA_POOLS", "on") == "on" ? allocate(address, bytes) : 801;
}

FAKE(cuMemFreeAsync)(uint64_t address, void *) {
  BEGIN("cuMemFreeAsync");
  log("free in order");
  return release(address);
}

FAKE(cuMemcpyHtoDAsync_v2)(uint64_t device, const void *host, size_t bytes, void *) {
  BEGIN("cuMemcpyHtoDAsync_v2");
  log("write");
  if (!Device::get().owns(currentGPU(), reinterpret_cast<void *>(device), bytes))
    return InvalidValue;
  std::memcpy(reinterpret_cast<void *>(device), host, bytes);
  return Success;
}

FAKE(cuMemcpyDtoHAsync_v2)(void *host, uint64_t device, size_t bytes, void *) {
  BEGIN("cuMemcpyDtoHAsync_v2");
  log("read");
  if (!Device::get().owns(currentGPU(), reinterpret_cast<void *>(device), bytes))
    return InvalidValue;
  std::memcpy(host, reinterpret_cast<void *>(device), bytes);
  return Success;
}

FAKE(cuStreamSynchronize)(void *) {
  BEGIN("cuStreamSynchronize");
  log("wait");
  return Success;
}
