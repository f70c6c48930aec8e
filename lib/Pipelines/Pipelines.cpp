//===- Pipelines.cpp - One function per arrow -----------------------------===//
#include "attn/Pipelines/Pipelines.h"
#include "CheckSpec.h"

#include "attn/Codegen/CPU/Passes.h"
#include "attn/Codegen/GPU/Passes.h"
#include "attn/Conversion/Passes.h"
#include "attn/Entry/Passes.h"
#include "attn/Schedule/Passes.h"
#include "attn/Support/Names.h"
#include "attn/Target/Levels.h"
#include "attn/Target/PTX.h"
#include "attn/Tiling/Passes.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace attn {

LogicalResult convertToAttn(ModuleOp spec) {
  PassManager pm(spec.getContext());
  pm.addPass(createConvertLinalgToAttn());
  return pm.run(spec);
}

void buildSchedule(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createExpandRows());
  SelectScheduleOptions select;
  select.lanes = options.target.lanes;
  select.rows = options.target.rows;
  select.amx = options.target.amx;
  select.bf16Pairs = options.target.bf16Pairs;
  select.l1Bytes = options.target.l1Bytes;
  select.l2Bytes = options.target.l2Bytes;
  select.cores = options.target.cores;
  select.pairCosts.assign(options.target.costs.pair.begin(), options.target.costs.pair.end());
  select.queryTile = options.schedule.queryTile;
  select.keyTile = options.schedule.keyTile;
  select.group = options.schedule.group;
  select.split = options.schedule.split;
  select.pack = options.schedule.pack;
  select.reindex = options.schedule.reindex;
  if (options.gpu)
    select.chip = options.gpu->chip;
  pm.addPass(createSelectSchedule(select));
}

void buildTiling(OpPassManager &pm, const CompileOptions &options) {
  pm.addPass(createTileAttention());
  TileStepsOptions steps;
  steps.lanes = options.gpu ? 1 : options.target.lanes;
  pm.addPass(createTileSteps(steps));
}

static void addCPUMath(OpPassManager &pm, const TargetModel &target) {
  LowerCPUMathOptions math;
  math.fma = target.fma;
  math.rounding = target.rounding;
  math.f16Conversions = target.f16Conversions;
  math.avx512Exp = target.avx512Exp;
  pm.addPass(createLowerCPUMath(math));
}

void buildCPU(OpPassManager &pm, const CompileOptions &options) {
  ConvertAttnTileToCPUOptions convert;
  convert.lanes = options.target.lanes;
  convert.rows = options.target.rows;
  convert.avx512Exp = options.target.avx512Exp;
  convert.amx = options.target.amx;
  convert.bf16Pairs = options.target.bf16Pairs;
  convert.l2Bytes = options.target.l2Bytes;
  pm.addPass(createConvertAttnTileToCPU(convert));
  LowerEntryPointsOptions entries;
  entries.threads = options.threads;
  entries.x86 = llvm::Triple(options.target.triple).isX86();
  pm.addPass(createLowerEntryPoints(entries));
  addCPUMath(pm, options.target);
}

void buildGPU(OpPassManager &pm, const CompileOptions &options) {
  ConvertAttnTileToGPUOptions convert;
  convert.tensorCores = convert.asyncCopies = options.gpu->tensorCores;
  pm.addPass(createConvertAttnTileToGPU(convert));
  OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
  device.addPass(createLowerGPUMath());
  device.addPass(createCanonicalizerPass());
  device.addPass(createCSEPass());
  device.addPass(createLoopInvariantCodeMotionPass());
}

void buildNVVM(OpPassManager &pm, const CompileOptions &) {
  OpPassManager &device = pm.nest<gpu::GPUModuleOp>();
  device.addPass(createSCFToControlFlowPass());
  device.addPass(createConvertToLLVMPass());
  device.addPass(createReconcileUnrealizedCastsPass());
  device.addPass(createCanonicalizerPass());
  device.addPass(createCSEPass());
}

void buildDeviceEntries(OpPassManager &pm, const CompileOptions &options) {
  LowerEntryPointsOptions entries;
  entries.threads = false;
  entries.x86 = llvm::Triple(options.target.triple).isX86();
  pm.addPass(createLowerEntryPoints(entries));
  addCPUMath(pm, options.target);
}

void buildLLVM(OpPassManager &pm, const CompileOptions &) {
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  ConvertToLLVMPassOptions convert;
  convert.allowPatternRollback = false;
  pm.addPass(createConvertToLLVMPass(convert));
  pm.addPass(createReconcileUnrealizedCastsPass());
}

// Pipelines by name are for the host's CPU.
static CompileOptions hostOptions() {
  CompileOptions options;
  std::string error;
  if (auto target = TargetModel::get("native", "", error); succeeded(target))
    options.target = *target;
  return options;
}

namespace {
struct GPUPipelineOptions : PassPipelineOptions<GPUPipelineOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("the GPU"), llvm::cl::init("sm_80")};
};
} // namespace

static void buildToGPU(OpPassManager &pm, const GPUPipelineOptions &given) {
  CompileOptions options = hostOptions();
  std::string error;
  FailureOr<GPUModel> gpu = GPUModel::get(given.chip, error);
  options.gpu = succeeded(gpu) ? *gpu : GPUModel();
  options.gpu->chip = given.chip; // where it is unknown, attn-select-schedule says which are known
  pm.addPass(createConvertLinalgToAttn());
  buildSchedule(pm, options);
  buildTiling(pm, options);
  buildGPU(pm, options);
}

void registerPipelines() {
  static PassPipelineRegistration<> tile("attn-to-tile", "attn to loops over tiles", [](OpPassManager &pm) {
    CompileOptions options = hostOptions();
    pm.addPass(createConvertLinalgToAttn());
    buildSchedule(pm, options);
    buildTiling(pm, options);
  });
  static PassPipelineRegistration<> cpu("attn-to-cpu", "attn to vector code of this machine's CPU",
                                        [](OpPassManager &pm) {
                                          CompileOptions options = hostOptions();
                                          pm.addPass(createConvertLinalgToAttn());
                                          buildSchedule(pm, options);
                                          buildTiling(pm, options);
                                          buildCPU(pm, options);
                                        });
  static PassPipelineRegistration<> llvm("attn-to-llvm", "attn to the LLVM dialect for this machine's CPU",
                                         [](OpPassManager &pm) {
                                           CompileOptions options = hostOptions();
                                           pm.addPass(createConvertLinalgToAttn());
                                           buildSchedule(pm, options);
                                           buildTiling(pm, options);
                                           buildCPU(pm, options);
                                           buildLLVM(pm, options);
                                         });
  static PassPipelineRegistration<GPUPipelineOptions> gpu("attn-to-gpu", "attn to warp code of a GPU", buildToGPU);
}

std::vector<std::string> entryNames(func::FuncOp func) {
  std::string name = func.getName().str();
  return {name, name + "_plan", name + "_run"};
}

std::vector<std::string> entryNames(ModuleOp spec) {
  std::vector<std::string> names;
  for (auto func : spec.getOps<func::FuncOp>())
    if (!func.isPrivate())
      llvm::append_range(names, entryNames(func));
  return names;
}

static bool hasAssertions() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

/// A copy of a spec in the attn dialect; errors where it cannot be compiled.
static FailureOr<OwningOpRef<ModuleOp>> copySpec(ModuleOp spec) {
  OwningOpRef<ModuleOp> copy = spec.clone();
  if (failed(convertToAttn(*copy)) || failed(checkSpec(*copy)))
    return failure();
  return copy;
}

/// Lowers a spec to its gpu.module, of warp code or, with `nvvm`, of the LLVM dialect.
static FailureOr<gpu::GPUModuleOp> lowerToDevice(ModuleOp module, const CompileOptions &options, bool nvvm) {
  PassManager pm(module.getContext());
  pm.enableVerifier(options.verify || hasAssertions());
  buildSchedule(pm, options);
  buildTiling(pm, options);
  buildGPU(pm, options);
  if (nvvm)
    buildNVVM(pm, options);
  if (failed(pm.run(module)))
    return failure();
  auto devices = module.getOps<gpu::GPUModuleOp>();
  if (devices.empty())
    return module.emitError("has no attention op to compile for a GPU");
  return *devices.begin();
}

/// Lowers what is left once the gpu.module is gone: the C entry points.
static FailureOr<NativeModule> lowerHost(ModuleOp module, const CompileOptions &options,
                                         ArrayRef<std::string> entries) {
  PassManager pm(module.getContext());
  pm.enableVerifier(options.verify || hasAssertions());
  buildDeviceEntries(pm, options);
  buildLLVM(pm, options);
  if (failed(pm.run(module)))
    return failure();
  return makeNative(module, options.target, RuntimeForm::Device, entries, !options.jit);
}

FailureOr<EmulatedCode> compileToEmulated(ModuleOp spec, const CompileOptions &options) {
  FailureOr<OwningOpRef<ModuleOp>> copy = copySpec(spec);
  if (failed(copy))
    return failure();
  OwningOpRef<ModuleOp> module = std::move(*copy);
  FailureOr<gpu::GPUModuleOp> device = lowerToDevice(*module, options, /*nvvm=*/false);
  if (failed(device))
    return failure();
  EmulatedCode code;
  code.device = ModuleOp::create(spec.getLoc());
  (*device)->moveBefore(code.device->getBody(), code.device->getBody()->end());
  FailureOr<NativeModule> host = lowerHost(*module, options, entryNames(spec));
  if (failed(host))
    return failure();
  code.host = std::move(*host);
  return std::move(code);
}

FailureOr<std::string> compileToPTX(ModuleOp spec, const CompileOptions &options) {
  FailureOr<OwningOpRef<ModuleOp>> copy = copySpec(spec);
  if (failed(copy))
    return failure();
  OwningOpRef<ModuleOp> module = std::move(*copy);
  FailureOr<gpu::GPUModuleOp> device = lowerToDevice(*module, options, /*nvvm=*/true);
  if (failed(device))
    return failure();
  return emitPTX(*device, options.gpu->chip);
}

// The driver compiles PTX for any later chip, once in each process; machine code of the very chip saves it that.
static LogicalResult embedKernels(ModuleOp module, gpu::GPUModuleOp device, const CompileOptions &options) {
  FailureOr<std::string> ptx = emitPTX(device, options.gpu->chip);
  if (failed(ptx))
    return failure();
  device.erase();
  Builder b(module.getContext());
  module->setAttr(kPTXAttr, b.getStringAttr(*ptx));
  if (!hasPTXAssembler())
    return success();
  llvm::Expected<std::string> cubin = assemblePTX(*ptx, options.gpu->chip);
  if (cubin)
    module->setAttr(kCubinAttr, b.getStringAttr(*cubin));
  else
    module.emitWarning("the object holds PTX alone: ") << llvm::toString(cubin.takeError());
  return success();
}

static FailureOr<NativeModule> compileToHostOfGPU(ModuleOp module, const CompileOptions &options) {
  std::vector<std::string> entries = entryNames(module);
  FailureOr<gpu::GPUModuleOp> device = lowerToDevice(module, options, /*nvvm=*/true);
  if (failed(device) || failed(embedKernels(module, *device, options)))
    return failure();
  return lowerHost(module, options, entries);
}

/// Lowers a module to the LLVM dialect for options.target.
static LogicalResult lowerToLLVM(ModuleOp module, const CompileOptions &options) {
  PassManager pm(module.getContext());
  pm.enableVerifier(options.verify || hasAssertions());
  buildSchedule(pm, options);
  buildTiling(pm, options);
  buildCPU(pm, options);
  buildLLVM(pm, options);
  return pm.run(module);
}

static FailureOr<NativeModule> compileLevels(ModuleOp spec, const CompileOptions &options, RuntimeForm runtime) {
  SmallVector<OwningOpRef<ModuleOp>> bodies;
  for (const TargetModel &level : options.levels) {
    CompileOptions own = options;
    own.target = level;
    bodies.push_back(spec.clone());
    if (failed(lowerToLLVM(*bodies.back(), own)))
      return failure();
  }
  auto modules = llvm::map_to_vector(bodies, [](OwningOpRef<ModuleOp> &body) { return *body; });
  return makeNative(modules, options.levels, runtime, entryNames(spec));
}

FailureOr<NativeModule> compileToNative(ModuleOp spec, const CompileOptions &options) {
  FailureOr<OwningOpRef<ModuleOp>> copy = copySpec(spec);
  if (failed(copy))
    return failure();
  ModuleOp module = **copy;
  if (options.gpu)
    return compileToHostOfGPU(module, options);
  RuntimeForm runtime = options.threads ? RuntimeForm::Threads : RuntimeForm::Serial;
  if (options.levels.size() > 1)
    return compileLevels(module, options, runtime);
  if (failed(lowerToLLVM(module, options)))
    return failure();
  return makeNative(module, options.target, runtime, entryNames(spec), !options.jit);
}

FailureOr<std::unique_ptr<llvm::MemoryBuffer>> compileToObject(ModuleOp spec, const CompileOptions &options) {
  FailureOr<NativeModule> native = compileToNative(spec, options);
  if (failed(native))
    return failure();
  SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream os(bytes);
  if (failed(emitMachineCode(*native, os, /*assembly=*/false)))
    return spec.emitError("LLVM cannot write an object file for ") << options.target.triple;
  std::unique_ptr<llvm::MemoryBuffer> buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(
      std::move(bytes), "attn object", /*RequiresNullTerminator=*/false);
  return std::move(buffer);
}

} // namespace attn
