//===- EmulatedDevice.h - A GPU for the runtime, on this CPU ----------------===//
#ifndef ATTN_LIB_RUN_EMULATEDDEVICE_H
#define ATTN_LIB_RUN_EMULATEDDEVICE_H

#include "Device.h"
#include "attn/Emulator/Emulator.h"
#include "attn/Runtime/Device.h"
#include "llvm/ExecutionEngine/Orc/CoreContainers.h"
#include "llvm/Support/Error.h"
#include <dlpack/dlpack.h>

namespace attn::run {

/// Runs the kernels of one gpu.module for the C runtime: device memory is memory of this process, and whatever else a
/// kernel touches is a fault.
class EmulatedDevice : public Device {
public:
  static llvm::Expected<std::unique_ptr<EmulatedDevice>> create(mlir::OwningOpRef<mlir::ModuleOp> device,
                                                                const RunOptions &options);
  ~EmulatedDevice() override;

  llvm::Error define(llvm::orc::LLJIT &jit) const override;
  /// Kernels may read `inputs`, and write `outputs` too.
  llvm::Expected<int> call(Tensors inputs, Tensors outputs, llvm::function_ref<int(Tensors)> fn) override;
  std::optional<EmulationReport> takeReport() override { return std::exchange(report, {}); }

  struct Functions; // what the runtime calls

private:
  EmulatedDevice() = default;
  const char *launch(const AttnDeviceLaunch &launch);

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<emulator::Emulator> emulator;
  std::vector<emulator::GlobalBuffer> tensors;
  std::map<void *, uint64_t> memory;
  std::string error;
  EmulationReport report;
};

} // namespace attn::run

#endif // ATTN_LIB_RUN_EMULATEDDEVICE_H
