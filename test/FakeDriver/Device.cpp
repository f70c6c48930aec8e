//===- Device.cpp - Memory and kernels of the fake CUDA driver ------------===//
#include "Device.h"

#include "attn/Register.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include <cstdlib>
#include <cstring>

using namespace attn;

namespace fake {

Device &Device::get() {
  static Device *device = new Device; // as long as the process: programs free memory at exit
  return *device;
}

Device::Device() {
  const char *file = std::getenv("FAKE_CUDA_KERNELS");
  if (!file)
    return;
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  attn::registerAllDialects(registry);
  auto *context = new mlir::MLIRContext(registry);
  module = mlir::parseSourceFile<mlir::ModuleOp>(file, context);
  if (!module || module->getOps<mlir::gpu::GPUModuleOp>().empty()) {
    llvm::errs() << "fake CUDA driver: " << file << " holds no kernels\n";
    std::abort();
  }
  auto made = emulator::Emulator::create(*module->getOps<mlir::gpu::GPUModuleOp>().begin());
  if (failed(made))
    std::abort();
  emulator = std::move(*made);
}

// New memory holds NaNs.
void *Device::allocate(int gpu, size_t bytes) {
  void *data = std::aligned_alloc(256, llvm::alignTo(bytes, 256));
  if (data) {
    std::memset(data, 0xff, bytes);
    memory[static_cast<char *>(data)] = {bytes, gpu};
  }
  return data;
}

bool Device::release(int gpu, void *data) {
  auto found = memory.find(static_cast<char *>(data));
  if (found == memory.end() || found->second.gpu != gpu)
    return false;
  memory.erase(found);
  std::free(data);
  return true;
}

bool Device::owns(int gpu, const void *data, size_t bytes) const {
  auto *first = static_cast<const char *>(data);
  auto next = memory.upper_bound(first);
  if (next == memory.begin())
    return false;
  auto [start, there] = *std::prev(next);
  return there.gpu == gpu && first + bytes <= start + there.bytes;
}

llvm::SmallVector<emulator::KernelArgument> Device::read(const std::string &kernel, void **parameters) {
  llvm::SmallVector<emulator::KernelArgument> arguments;
  module->walk([&](mlir::LLVM::LLVMFuncOp fn) {
    for (unsigned i = 0; fn.getName() == kernel && i < fn.getNumArguments(); ++i)
      arguments.emplace_back(*static_cast<const int64_t *>(parameters[i]));
  });
  return arguments;
}

bool Device::run(int gpu, const std::string &kernel, const LaunchShape &shape, void **parameters) {
  if (!emulator)
    return true;
  std::vector<emulator::GlobalBuffer> buffers;
  for (auto [data, there] : memory)
    if (there.gpu == gpu)
      buffers.push_back({const_cast<char *>(data), there.bytes, /*writable=*/true, "device memory"});
  emulator::LaunchDims dims;
  dims.grid = {shape.grid, 1, 1};
  dims.block = {shape.block, 1, 1};
  dims.dynamicShared = shape.shared;
  emulator::LaunchReport report;
  if (failed(emulator->launch(kernel, dims, read(kernel, parameters), buffers, report)))
    return false;
  if (report.faultCount)
    report.print(llvm::errs());
  return report.faultCount == 0;
}

} // namespace fake
