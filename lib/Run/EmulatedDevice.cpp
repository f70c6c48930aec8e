//===- EmulatedDevice.cpp - A GPU for the runtime, on this CPU --------------===//
#include "EmulatedDevice.h"
#include "attn/Runtime/Device.h"
#include "attn/Support/Errors.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/FileSystem.h"
#include <chrono>
#include <cstring>
#include <mutex>

using namespace llvm;

namespace attn::run {

/// The device that the runtime speaks to, one call after the other.
static EmulatedDevice *current = nullptr;
static std::mutex calls;

struct EmulatedDevice::Functions {
  static const char *start(const AttnImage *, int32_t) { return nullptr; }

  static const char *allocate(int64_t bytes, void **memory, void *) {
    *memory = std::aligned_alloc(256, alignTo(std::max<int64_t>(bytes, 1), 256));
    if (!*memory)
      return "out of device memory";
    std::memset(*memory, 0xff, bytes); // NaN, as whatever a GPU's memory holds
    current->memory[*memory] = bytes;
    return nullptr;
  }

  // A plan may be given back outside of any call.
  static const char *release(void *memory, void *) {
    if (current)
      current->memory.erase(memory);
    std::free(memory);
    return nullptr;
  }

  static const char *releaseIdle(void *memory, int32_t) { return release(memory, nullptr); }

  static const char *write(void *device, const void *host, int64_t bytes, void *) {
    std::memcpy(device, host, bytes);
    return nullptr;
  }

  static const char *read(void *host, const void *device, int64_t bytes, void *) {
    std::memcpy(host, device, bytes);
    return nullptr;
  }

  static const char *launch(const AttnDeviceLaunch *launch, void *) { return current->launch(*launch); }
};

const char *EmulatedDevice::launch(const AttnDeviceLaunch &launch) {
  std::vector<emulator::GlobalBuffer> buffers = tensors;
  for (auto [data, bytes] : memory)
    buffers.push_back({data, bytes, /*writable=*/true, "device memory"});
  emulator::LaunchDims dims;
  dims.grid = {uint32_t(launch.blocks), 1, 1};
  dims.block = {uint32_t(launch.threads), 1, 1};
  dims.dynamicShared = launch.shared_bytes;
  std::vector<emulator::KernelArgument> arguments;
  for (int64_t i = 0; i < launch.num_parameters; ++i)
    arguments.emplace_back(*static_cast<const int64_t *>(launch.parameters[i]));
  emulator::LaunchReport done;
  auto start = std::chrono::steady_clock::now();
  if (failed(emulator->launch(launch.kernel, dims, arguments, buffers, done)))
    return "the emulator could not start the kernel";
  report.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.add(done);
  if (done.faults.empty())
    return nullptr;
  error.clear();
  raw_string_ostream os(error);
  os << "the emulator found " << done.faultCount << " faults in '" << launch.kernel << "':\n";
  done.print(os);
  return error.c_str();
}

/// Whether the emulator needs less than about a second, as far as extents and the sizes of files tell.
static bool isSmall(const InputOptions &inputs) {
  auto extent = [&](const char *name, int64_t otherwise) {
    auto found = inputs.extents.find(name);
    return double(found == inputs.extents.end() ? otherwise : found->second);
  };
  double queries = extent("N", inputs.tokens);
  double pairs = extent("B", 1) * extent("H", 1) * queries * extent("M", queries);
  uint64_t total = 0, bytes = 0;
  for (const auto &[name, path] : inputs.files)
    total += sys::fs::file_size(path, bytes) ? 0 : bytes;
  return pairs <= 1 << 22 && total <= 1 << 20;
}

Expected<std::unique_ptr<EmulatedDevice>> EmulatedDevice::create(mlir::OwningOpRef<mlir::ModuleOp> module,
                                                                 const RunOptions &options) {
  std::unique_ptr<EmulatedDevice> device(new EmulatedDevice);
  device->module = std::move(module);
  emulator::EmulatorOptions emulatorOptions;
  emulatorOptions.chip = options.gpu->chip;
  emulatorOptions.checks = emulatorOptions.counts = options.emulatorChecks;
  emulatorOptions.optimised = !all_of(options.inputs, isSmall);
  emulatorOptions.threads = options.threads;
  auto kernels = *device->module->getOps<mlir::gpu::GPUModuleOp>().begin();
  auto made = emulator::Emulator::create(kernels, emulatorOptions);
  if (failed(made))
    return makeError("the emulator has no rule for an op of the kernels");
  device->emulator = std::move(*made);
  return std::move(device);
}

EmulatedDevice::~EmulatedDevice() {
  if (current == this)
    current = nullptr;
}

Error EmulatedDevice::define(orc::LLJIT &jit) const {
  orc::SymbolMap symbols;
  auto add = [&](StringRef name, auto *function) {
    symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported};
  };
  add("attn_device_start", &Functions::start);
  add("attn_device_allocate", &Functions::allocate);
  add("attn_device_release", &Functions::release);
  add("attn_device_release_idle", &Functions::releaseIdle);
  add("attn_device_write", &Functions::write);
  add("attn_device_read", &Functions::read);
  add("attn_device_launch", &Functions::launch);
  return jit.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
}

/// All bytes from the first to the last element.
static emulator::GlobalBuffer bufferOf(const DLTensor &tensor, bool writable, unsigned index) {
  int64_t low = 0, high = 0, compact = 1, bytes = (tensor.dtype.bits + 7) / 8;
  for (int d = tensor.ndim; d-- > 0;) {
    if (tensor.shape[d] == 0)
      return {tensor.data, 0, writable, ""};
    int64_t reach = (tensor.shape[d] - 1) * (tensor.strides ? tensor.strides[d] : compact) * bytes;
    (reach < 0 ? low : high) += reach;
    compact *= tensor.shape[d];
  }
  char *start = static_cast<char *>(tensor.data) + tensor.byte_offset + low;
  return {start, uint64_t(high - low + bytes), writable, (writable ? "output " : "input ") + std::to_string(index)};
}

Expected<int> EmulatedDevice::call(Tensors inputs, Tensors outputs, function_ref<int(Tensors)> fn) {
  std::lock_guard<std::mutex> lock(calls);
  current = this;
  tensors.clear();
  std::vector<DLTensor> there;
  SmallVector<const DLTensor *> pointers;
  there.reserve(inputs.size() + outputs.size());
  for (auto [list, writable] : {std::pair(inputs, false), {outputs, true}})
    for (auto [index, tensor] : enumerate(list)) {
      tensors.push_back(bufferOf(*tensor, writable, index));
      there.push_back(*tensor);
      there.back().device.device_type = kDLCUDA;
      pointers.push_back(&there.back());
    }
  return fn(pointers);
}

} // namespace attn::run
