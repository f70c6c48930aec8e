//===- Kernel.h - Kernels written as text, and their launch -----------------===//
#ifndef ATTN_TEST_UNIT_EMULATOR_KERNEL_H
#define ATTN_TEST_UNIT_EMULATOR_KERNEL_H

#include "attn/Emulator/Emulator.h"
#include "mlir/IR/BuiltinOps.h"
#include "gtest/gtest.h"

namespace attn::emulator::test {

/// A module with `@smem`, dynamic shared memory, and one kernel `@k`. Diagnostics are collected.
class Kernel {
public:
  Kernel(const std::string &arguments, const std::string &body, EmulatorOptions options = {});

  bool isCompiled() const { return emulator != nullptr; }
  /// Launches and fails the test if that is refused.
  LaunchReport launch(const LaunchDims &dims, llvm::ArrayRef<KernelArgument> arguments,
                      llvm::ArrayRef<GlobalBuffer> buffers) const;
  bool canLaunch(const LaunchDims &dims, llvm::ArrayRef<KernelArgument> arguments,
                 llvm::ArrayRef<GlobalBuffer> buffers) const;
  const std::string &diagnostics() const { return errors; }
  /// The line of the source where a fault happened.
  llvm::StringRef lineOf(const Fault &fault) const;

private:
  std::unique_ptr<mlir::MLIRContext> context;
  std::string source;
  mutable std::string errors;
  std::unique_ptr<mlir::ScopedDiagnosticHandler> handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Emulator> emulator;
};

template <typename T>
GlobalBuffer input(const std::vector<T> &data, std::string name) {
  return {const_cast<T *>(data.data()), data.size() * sizeof(T), false, std::move(name)};
}

template <typename T>
GlobalBuffer output(std::vector<T> &data, std::string name) {
  return {data.data(), data.size() * sizeof(T), true, std::move(name)};
}

constexpr LaunchDims kOneWarp{{1, 1, 1}, {32, 1, 1}, 4096};

/// Runs `body`, which computes the i32 `%r` of each lane from `%lane` and `%x` = in[lane], on one warp. It finds the
/// constants `%c0`, `%c1`, `%c2`, `%c4`, `%c16`, `%c31` and `%full` = -1, and `%smem`. No fault may happen.
std::vector<int32_t> runLanes(const std::vector<int32_t> &in, const std::string &body);
/// Some input for it.
std::vector<int32_t> numbers();

uint16_t toBF16(float value);
float fromBF16(uint16_t bits);
uint16_t toF16(float value);
float fromF16(uint16_t bits);

} // namespace attn::emulator::test

#endif // ATTN_TEST_UNIT_EMULATOR_KERNEL_H
