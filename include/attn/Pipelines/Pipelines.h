//===- Pipelines.h - One function per arrow ---------------------*- C++ -*-===//
//
//   spec --convertToAttn--> attn --buildSchedule--> schedule --buildTiling--> tile --buildCPU--> cpu --buildLLVM-->
//   llvm --> object
//                                                         --buildGPU--> gpu --buildNVVM--> nvvm --> PTX
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_PIPELINES_PIPELINES_H
#define ATTN_PIPELINES_PIPELINES_H

#include "attn/Schedule/Schedule.h"
#include "attn/Target/Object.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attn {

struct CompileOptions {
  TargetModel target; // the CPU; of a GPU kernel, the host's
  /// Where one object has code for several CPUs, all of them, the best first: `target` is the best.
  std::vector<TargetModel> levels;
  std::optional<GPUModel> gpu; // compile kernels for it
  ScheduleOverrides schedule;
  bool threads = true;
  /// Verify the IR behind every pass. A build with assertions always does; it is about an eighth of the time of a
  /// compilation in process, for what only a defect of a pass can break.
  bool verify = false;
  bool jit = false; // the object is loaded into this process, beside runtimeObject() of attn/Runtime/Bitcode.h
};

/// What a spec says in other dialects (linalg) -> attn, in place. The functions below do so by themselves, on a copy.
mlir::LogicalResult convertToAttn(mlir::ModuleOp spec);
/// attn -> attn with a schedule on every op.
void buildSchedule(mlir::OpPassManager &pm, const CompileOptions &options);
/// attn -> kernels of loops over attn_tile.
void buildTiling(mlir::OpPassManager &pm, const CompileOptions &options);
/// attn_tile -> vector code and C entry points.
void buildCPU(mlir::OpPassManager &pm, const CompileOptions &options);
/// attn_tile -> a gpu.module of structured warp code, which the emulator runs.
void buildGPU(mlir::OpPassManager &pm, const CompileOptions &options);
/// the gpu.module -> the LLVM dialect.
void buildNVVM(mlir::OpPassManager &pm, const CompileOptions &options);
/// vector code -> the LLVM dialect.
void buildLLVM(mlir::OpPassManager &pm, const CompileOptions &options);

/// Names the pipelines for command lines: attn-to-tile, attn-to-cpu, attn-to-llvm, attn-to-gpu.
void registerPipelines();

/// What a compiled function, and a module of them, exports: NAME, NAME_plan and NAME_run.
std::vector<std::string> entryNames(mlir::func::FuncOp func);
std::vector<std::string> entryNames(mlir::ModuleOp spec);

/// Warp code -> C entry points whose kernels a device runs. The gpu.module has to be gone by then.
void buildDeviceEntries(mlir::OpPassManager &pm, const CompileOptions &options);

/// A spec whose kernels are emulated: the host's code, and a module that holds the gpu.module for the emulator.
struct EmulatedCode {
  mlir::OwningOpRef<mlir::ModuleOp> device;
  NativeModule host;
};
mlir::FailureOr<EmulatedCode> compileToEmulated(mlir::ModuleOp spec, const CompileOptions &options);

/// Spec (not changed) to PTX for options.gpu.
mlir::FailureOr<std::string> compileToPTX(mlir::ModuleOp spec, const CompileOptions &options);

/// Spec (not changed) to an LLVM module ready for code generation. Kernels for options.gpu are in it as PTX, and as
/// machine code where a ptxas is found.
mlir::FailureOr<NativeModule> compileToNative(mlir::ModuleOp spec, const CompileOptions &options);

/// Spec (not changed) to the bytes of an object file.
mlir::FailureOr<std::unique_ptr<llvm::MemoryBuffer>> compileToObject(mlir::ModuleOp spec,
                                                                     const CompileOptions &options);

} // namespace attn

#endif // ATTN_PIPELINES_PIPELINES_H
