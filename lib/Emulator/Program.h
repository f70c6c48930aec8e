//===- Program.h - Compiled kernels and what is known of their code ---------===//
#ifndef ATTN_LIB_EMULATOR_PROGRAM_H
#define ATTN_LIB_EMULATOR_PROGRAM_H

#include "Runtime/State.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace attn::emulator {

/// An op that the runtime speaks of by its number.
struct Site {
  mlir::Location location;
  std::string op;
};

/// Where each variable in shared memory lies; the dynamic ones share what follows the static ones.
struct SharedLayout {
  llvm::StringMap<uint64_t> offsets;
  uint64_t staticBytes = 0;
};

using KernelFunction = void (*)(Warp *, const void *const *arguments);

/// The symbol of a compiled kernel, apart from those of the C library.
inline std::string symbolOf(llvm::StringRef kernel) { return ("attn_emu_kernel_" + kernel).str(); }

struct KernelInfo {
  explicit KernelInfo(mlir::Location location) : location(location) {}
  mlir::Location location;
  std::vector<unsigned> argumentBytes;
  /// nvvm.maxntid: the most threads, 0 if it has none.
  uint64_t maxThreads = 0;
  KernelFunction function = nullptr;
};

class Program {
public:
  explicit Program(mlir::Location location);
  ~Program();

  mlir::Location location;
  /// 80 of sm_80.
  unsigned chip = 0;

  std::vector<Site> sites;
  /// The instructions in one execution of each piece of straight code.
  std::vector<std::map<std::string, uint64_t>> regions;
  llvm::StringMap<KernelInfo> kernels;
  SharedLayout shared;
  bool counts = true;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

/// Compiles a module in the LLVM dialect and the run-time functions for this machine.
llvm::LogicalResult compile(mlir::ModuleOp host, bool optimised, Program &program);

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_PROGRAM_H
