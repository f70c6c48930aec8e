//===- Device.h - Where kernels for a GPU run -------------------------------===//
#ifndef ATTN_LIB_RUN_DEVICE_H
#define ATTN_LIB_RUN_DEVICE_H

#include "attn/Run/Run.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <dlpack/dlpack.h>

namespace llvm::orc {
class LLJIT;
}

namespace attn::run {

using Tensors = llvm::ArrayRef<const DLTensor *>;

class Device {
public:
  virtual ~Device() = default;
  /// Defines the functions of attn/Runtime/Device.h for objects that `jit` loads.
  virtual llvm::Error define(llvm::orc::LLJIT &jit) const = 0;
  /// Calls `fn` with the tensors, inputs first, where kernels find them. If it answers 0, `outputs` then hold results.
  virtual llvm::Expected<int> call(Tensors inputs, Tensors outputs, llvm::function_ref<int(Tensors)> fn) = 0;
  /// What all launches since the start did; null where nobody counts.
  virtual std::optional<EmulationReport> takeReport() { return std::nullopt; }
};

/// The first GPU of this machine. Fails where there is none.
llvm::Expected<std::unique_ptr<Device>> openCUDADevice();

} // namespace attn::run

#endif // ATTN_LIB_RUN_DEVICE_H
