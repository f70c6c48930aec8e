//===- Kernel.h - A compiled function in this process -----------------------===//
#ifndef ATTN_LIB_RUN_KERNEL_H
#define ATTN_LIB_RUN_KERNEL_H

#include "Device.h"
#include "attn/Run/Run.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include <dlpack/dlpack.h>
#include <memory>

struct attn_plan;
namespace llvm::orc {
class LLJIT;
}

namespace attn::run {

/// The functions NAME, NAME_plan and NAME_run of an object file. An error holds what attn_last_error() says.
class Kernel {
public:
  /// Compiles one function of a spec.
  static llvm::Expected<Kernel> compile(mlir::func::FuncOp func, const RunOptions &options);
  static llvm::Expected<Kernel> load(std::unique_ptr<llvm::MemoryBuffer> object, llvm::StringRef name,
                                     std::unique_ptr<Device> device = nullptr, bool emulateTiles = false);
  Kernel(Kernel &&);
  ~Kernel();

  llvm::Error call(Tensors inputs, Tensors outputs) const;
  llvm::Expected<attn_plan *> plan(Tensors inputs) const;
  llvm::Error run(const attn_plan *plan, Tensors inputs, Tensors outputs) const;
  void free(attn_plan *plan) const;
  /// Null where kernels run on the CPU.
  Device *getDevice() const { return device.get(); }

private:
  explicit Kernel(std::unique_ptr<llvm::orc::LLJIT> jit);
  llvm::Error check(int status) const;

  static llvm::Expected<Kernel> compileForDevice(mlir::func::FuncOp func, const CompileOptions &compileOptions,
                                                 const RunOptions &options);
  llvm::Error invoke(void *function, llvm::ArrayRef<const void *> first, Tensors inputs, Tensors outputs) const;

  /// Functions of any number of pointers are called by code made for that number.
  using Caller = int (*)(void *function, const void *const *arguments);
  llvm::Expected<Caller> findCaller(size_t count) const;

  std::unique_ptr<llvm::orc::LLJIT> jit;
  mutable llvm::DenseMap<size_t, Caller> callers;
  std::unique_ptr<Device> device;
  void *callFunction, *planFunction, *runFunction, *freeFunction, *errorFunction, *forgetFunction = nullptr;
};

/// Was this built with OpenMP?
bool hasOpenMP();
/// Sets the number of OpenMP threads of later calls.
void setNumThreads(int threads);
int getNumThreads();

} // namespace attn::run

#endif // ATTN_LIB_RUN_KERNEL_H
