//===- Device.h - What the fake CUDA driver drives --------------*- C++ -*-===//
#ifndef ATTN_TEST_FAKEDRIVER_DEVICE_H
#define ATTN_TEST_FAKEDRIVER_DEVICE_H

#include "attn/Emulator/Emulator.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fake {

struct Function {
  std::string name;
  int64_t sharedLimit = 48 << 10;
};

struct Module {
  std::string ptx; // empty: machine code
  std::map<std::string, Function> functions;
};

struct LaunchShape {
  unsigned grid, block, shared;
};

/// Device memory is memory of this process; kernels run in the emulator, from the file that FAKE_CUDA_KERNELS names:
/// what `attn-compile --emit=gpu` wrote for the same spec.
class Device {
public:
  static Device &get();

  void *allocate(int gpu, size_t bytes);
  bool release(int gpu, void *memory);
  /// Whether all bytes are of one allocation of that GPU that is alive.
  bool owns(int gpu, const void *memory, size_t bytes) const;
  /// Runs all blocks, which see the memory of their GPU. Without a file, true; false after a fault, which is printed.
  bool run(int gpu, const std::string &kernel, const LaunchShape &shape, void **parameters);

private:
  Device();
  llvm::SmallVector<attn::emulator::KernelArgument> read(const std::string &kernel, void **parameters);

  struct Memory {
    size_t bytes;
    int gpu;
  };
  std::map<const char *, Memory> memory;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<attn::emulator::Emulator> emulator;
};

} // namespace fake

#endif // ATTN_TEST_FAKEDRIVER_DEVICE_H
