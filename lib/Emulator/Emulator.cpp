//===- Emulator.cpp - GPU kernels run on a CPU ------------------------------===//
#include "attn/Emulator/Emulator.h"
#include "BlockRunner.h"
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include <atomic>
#include <thread>

using namespace mlir;

namespace attn::emulator {

Program::Program(Location location) : location(location) {}
Program::~Program() = default;
Emulator::Emulator(EmulatorOptions options, std::unique_ptr<Program> program)
    : options(std::move(options)), program(std::move(program)) {}
Emulator::~Emulator() = default;

static RuleTable makeRules() {
  RuleTable rules;
  for (auto add : {addArithmeticRules, addAsyncCopyRules, addCollectiveRules, addControlFlowRules, addMathRules,
                   addMatrixRules, addMemoryRules, addStructureRules})
    add(rules);
  return rules;
}

static LogicalResult layOutShared(gpu::GPUModuleOp module, SharedLayout &layout) {
  SmallVector<std::pair<StringRef, uint64_t>> dynamic;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    if (global.getAddrSpace() != 3)
      continue;
    auto types = componentTypes(global.getGlobalType());
    if (failed(types))
      return global.emitError("the emulator does not know the size of ") << global.getGlobalType();
    uint64_t alignment = global.getAlignment().value_or(16), bytes = 0;
    for (Type type : *types)
      bytes += std::max(8u, type.getIntOrFloatBitWidth()) / 8;
    if (bytes == 0) {
      dynamic.push_back({global.getSymName(), alignment});
      continue;
    }
    uint64_t offset = llvm::alignTo(layout.staticBytes, alignment);
    layout.offsets[global.getSymName()] = offset;
    layout.staticBytes = offset + bytes;
  }
  for (auto [name, alignment] : dynamic)
    layout.staticBytes = llvm::alignTo(layout.staticBytes, alignment);
  for (auto [name, alignment] : dynamic)
    layout.offsets[name] = layout.staticBytes;
  return success();
}

static LogicalResult addKernel(ModuleOp host, LLVM::LLVMFuncOp kernel, const RuleTable &rules, Program &program) {
  KernelInfo info(kernel.getLoc());
  for (Type type : kernel.getArgumentTypes()) {
    auto types = componentTypes(type);
    info.argumentBytes.push_back(
        failed(types) || types->empty() ? 0 : std::max(8u, types->front().getIntOrFloatBitWidth()) / 8);
  }
  if (auto threads = kernel->getAttrOfType<DenseI32ArrayAttr>("nvvm.maxntid")) {
    info.maxThreads = 1;
    for (int32_t extent : threads.asArrayRef())
      info.maxThreads *= extent;
  }
  WarpBuilder builder(host, kernel, rules, program.shared, program);
  if (failed(builder.build(symbolOf(kernel.getName()))))
    return failure();
  program.kernels.try_emplace(kernel.getName(), std::move(info));
  return success();
}

FailureOr<std::unique_ptr<Emulator>> Emulator::create(gpu::GPUModuleOp module, const EmulatorOptions &options) {
  module.getContext()
      ->loadDialect<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                    vector::VectorDialect>();
  RuleTable rules = makeRules();
  auto program = std::make_unique<Program>(module.getLoc());
  program->counts = options.counts;
  StringRef chip = options.chip;
  if (!chip.consume_front("sm_") || chip.consumeInteger(10, program->chip))
    return module.emitError("the emulator does not know the chip ") << options.chip << "; it wants a name like sm_80";
  if (failed(layOutShared(module, program->shared)))
    return failure();
  OwningOpRef<ModuleOp> host = ModuleOp::create(module.getLoc());
  for (auto kernel : module.getOps<LLVM::LLVMFuncOp>())
    if (kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()) &&
        failed(addKernel(*host, kernel, rules, *program)))
      return failure();
  if (failed(compile(*host, options.optimised, *program)))
    return failure();
  return std::unique_ptr<Emulator>(new Emulator(options, std::move(program)));
}

/// The most shared memory of a block, as the CUDA programming guide has it.
static uint64_t sharedLimit(unsigned chip) {
  constexpr uint64_t kilo = 1024;
  switch (chip) {
  case 70:
    return 96 * kilo;
  case 75:
    return 64 * kilo;
  case 80:
  case 87:
    return 163 * kilo;
  case 86:
  case 89:
  case 120:
    return 99 * kilo;
  default:
    return chip < 70 ? 48 * kilo : 227 * kilo;
  }
}

static LogicalResult check(StringRef name, const Launch &launch, ArrayRef<KernelArgument> arguments) {
  const KernelInfo &kernel = launch.kernel;
  InFlightDiagnostic error = emitError(kernel.location) << "kernel " << name << " cannot be launched: ";
  uint64_t threads = 1;
  for (uint32_t extent : launch.dims.block)
    threads *= extent;
  if (threads == 0 || threads % kLanes || threads > kMaxWarps * kLanes)
    return error << "a block of " << threads << " threads; the emulator runs 1 to 32 whole warps";
  if (launch.sharedBytes > sharedLimit(launch.program.chip))
    return error << launch.sharedBytes << " bytes of shared memory, of which a block has at most "
                 << sharedLimit(launch.program.chip) << " on " << launch.options.chip;
  if (kernel.maxThreads && threads > kernel.maxThreads)
    return error << "a block of " << threads << " threads, but nvvm.maxntid allows " << kernel.maxThreads;
  if (arguments.size() != kernel.argumentBytes.size())
    return error << "it has " << kernel.argumentBytes.size() << " arguments, " << arguments.size() << " were given";
  for (auto [index, argument, bytes] : llvm::enumerate(arguments, kernel.argumentBytes))
    if (argument.size() != bytes)
      return error << "argument " << index << " has " << bytes << " bytes, " << argument.size() << " were given";
  error.abandon();
  return success();
}

static void collect(MutableArrayRef<std::unique_ptr<BlockRunner>> runners, const GlobalShadow &global,
                    const Launch &launch, LaunchReport &report) {
  const Program &program = launch.program;
  FaultMap faults;
  report.faultCount += global.collect(faults);
  for (const Site &site : program.sites)
    report.accesses.emplace_back(site.location, site.op);
  for (auto &runner : runners) {
    report.faultCount += runner->faultCount;
    for (auto &[key, record] : runner->faults) {
      auto [it, isNew] = faults.try_emplace(key, record);
      if (isNew)
        continue;
      uint64_t sum = it->second.fault.occurrences + record.fault.occurrences;
      if (record.block < it->second.block)
        it->second = record;
      it->second.fault.occurrences = sum;
    }
    for (auto [region, count] : llvm::enumerate(runner->regionCounts))
      for (const auto &[op, times] : program.regions[region])
        report.instructions[op] += times * count;
    for (auto [total, part] : llvm::zip_equal(report.accesses, runner->siteCounts))
      total += MemoryCounts{part.requests, part.bytes, part.passes, part.idealPasses, part.sectors, part.idealSectors};
  }
  llvm::erase_if(report.accesses, [](const AccessCounts &access) { return access.requests == 0; });
  std::vector<FaultRecord> sorted;
  for (auto &[key, record] : faults)
    sorted.push_back(record);
  // Stable, without the standard library's buffer, which is deprecated: the map's order is that of the sites.
  SmallVector<size_t> order = llvm::to_vector(llvm::seq(sorted.size()));
  llvm::sort(order, [&](size_t a, size_t b) { return std::pair(sorted[a].block, a) < std::pair(sorted[b].block, b); });
  for (size_t index : ArrayRef(order).take_front(launch.options.maxFaults))
    report.faults.push_back(std::move(sorted[index].fault));
}

LogicalResult Emulator::launch(StringRef name, const LaunchDims &dims, ArrayRef<KernelArgument> arguments,
                               ArrayRef<GlobalBuffer> buffers, LaunchReport &report) const {
  auto kernel = program->kernels.find(name);
  if (kernel == program->kernels.end())
    return emitError(program->location) << "the module has no kernel " << name;
  SmallVector<const void *> pointers;
  for (const KernelArgument &argument : arguments)
    pointers.push_back(argument.data());
  Launch launch{
      *program, kernel->second, options, dims, pointers, buffers, program->shared.staticBytes + dims.dynamicShared};
  if (failed(check(name, launch, arguments)))
    return failure();

  uint64_t blocks = uint64_t(dims.grid[0]) * dims.grid[1] * dims.grid[2];
  unsigned wanted = options.threads ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  GlobalShadow global(launch);
  std::vector<std::unique_ptr<BlockRunner>> runners;
  for (unsigned i = 0; i < std::min<uint64_t>(wanted, blocks); ++i)
    runners.push_back(std::make_unique<BlockRunner>(launch, global));
  std::atomic<uint64_t> next = 0;
  auto work = [&](BlockRunner &runner) {
    for (uint64_t block; (block = next++) < blocks;)
      runner.run(block);
  };
  std::vector<std::thread> threads;
  for (auto &runner : llvm::drop_begin(runners))
    threads.emplace_back([&, pointer = runner.get()] { work(*pointer); });
  if (!runners.empty())
    work(*runners.front());
  for (std::thread &thread : threads)
    thread.join();
  report.blocks += blocks;
  collect(runners, global, launch, report);
  return success();
}

} // namespace attn::emulator
