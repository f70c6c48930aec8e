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
  /// The line of the module on which `text` stands first.
  unsigned lineOf(llvm::StringRef text) const;

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

unsigned lineOf(const Fault &fault);

uint16_t toBF16(float value);
float fromBF16(uint16_t bits);
uint16_t toF16(float value);
float fromF16(uint16_t bits);

} // namespace attn::emulator::test

#endif // ATTN_TEST_UNIT_EMULATOR_KERNEL_H
