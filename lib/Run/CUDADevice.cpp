//===- CUDADevice.cpp - The first GPU of this machine -----------------------===//
#include "Device.h"
#include "attn/Runtime/Device.h"
#include "attn/Support/Errors.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

using namespace llvm;

namespace attn::run {
namespace {

/// A tensor's copy in device memory: all bytes from its first to its last element.
class DeviceCopy {
public:
  explicit DeviceCopy(const DLTensor &host) : host(host), there(host) {
    bytes = (host.dtype.bits + 7) / 8;
    for (int d = 0; d < host.ndim; ++d)
      bytes = host.shape[d] == 0 ? 0 : bytes + (host.shape[d] - 1) * host.strides[d] * ((host.dtype.bits + 7) / 8);
    there.device = {kDLCUDA, 0};
  }
  DeviceCopy(const DeviceCopy &) = delete;
  ~DeviceCopy() {
    if (memory)
      attn_device_release(memory, nullptr);
  }

  const char *upload() {
    const char *text = attn_device_allocate(bytes, &memory, nullptr);
    there.data = memory;
    return text || bytes == 0 ? text : attn_device_write(memory, host.data, bytes, nullptr);
  }
  const char *download() { return bytes ? attn_device_read(host.data, memory, bytes, nullptr) : nullptr; }
  const DLTensor *get() const { return &there; }

private:
  const DLTensor &host;
  DLTensor there;
  int64_t bytes;
  void *memory = nullptr;
};

class CUDADevice : public Device {
public:
  Error define(orc::LLJIT &jit) const override {
    orc::SymbolMap symbols;
    auto add = [&](StringRef name, auto *function) {
      symbols[jit.mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(function), JITSymbolFlags::Exported};
    };
    add("attn_device_start", &attn_device_start);
    add("attn_device_allocate", &attn_device_allocate);
    add("attn_device_release", &attn_device_release);
    add("attn_device_release_idle", &attn_device_release_idle);
    add("attn_device_write", &attn_device_write);
    add("attn_device_read", &attn_device_read);
    add("attn_device_launch", &attn_device_launch);
    return jit.getMainJITDylib().define(orc::absoluteSymbols(std::move(symbols)));
  }

  Expected<int> call(Tensors inputs, Tensors outputs, function_ref<int(Tensors)> fn) override {
    std::vector<std::unique_ptr<DeviceCopy>> copies;
    SmallVector<const DLTensor *> pointers;
    for (const DLTensor *tensor : concat<const DLTensor *const>(inputs, outputs)) {
      copies.push_back(std::make_unique<DeviceCopy>(*tensor));
      if (const char *text = copies.back()->upload())
        return makeError(text);
      pointers.push_back(copies.back()->get());
    }
    int status = fn(pointers);
    for (auto &copy : MutableArrayRef(copies).drop_front(status ? copies.size() : inputs.size()))
      if (const char *text = copy->download())
        return makeError(text);
    return status;
  }
};

} // namespace

Expected<std::unique_ptr<Device>> openCUDADevice() {
  if (const char *text = attn_device_start(nullptr, 0))
    return makeError("--target=cuda: ", text);
  return std::make_unique<CUDADevice>();
}

} // namespace attn::run
