//===- Kernel.cpp - A compiled function in this process ---------------------===//
#include "Kernel.h"
#include "EmulatedTiles.h"
#include "attn/Runtime/Amx.h"
#include "attn/Runtime/Bitcode.h"
#include "attn/Support/Errors.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"

#ifdef ATTN_HAVE_OPENMP
extern "C" void omp_set_num_threads(int);
extern "C" int omp_get_max_threads(void);
#endif
// The last error of the runtime is thread-local, in the emulated form a JIT can link; libgcc and compiler-rt have
// this.
extern "C" void *__emutls_get_address(void *);

using namespace llvm;

namespace attn::run {
namespace {

/// int caller(void *function, const void *const *arguments): calls a C function of `count` pointers.
std::unique_ptr<Module> buildCaller(LLVMContext &context, StringRef name, size_t count) {
  auto module = std::make_unique<Module>(name, context);
  Type *pointer = PointerType::getUnqual(context), *number = Type::getInt32Ty(context);
  auto *caller = llvm::Function::Create(FunctionType::get(number, {pointer, pointer}, false),
                                        llvm::Function::ExternalLinkage, name, *module);
  IRBuilder<> b(BasicBlock::Create(context, "", caller));
  SmallVector<Value *> arguments;
  for (size_t i = 0; i < count; ++i)
    arguments.push_back(b.CreateLoad(pointer, b.CreateConstGEP1_64(pointer, caller->getArg(1), i)));
  auto *type = FunctionType::get(number, SmallVector<Type *>(count, pointer), false);
  b.CreateRet(b.CreateCall(type, caller->getArg(0), arguments));
  return module;
}

Expected<std::unique_ptr<orc::LLJIT>> makeJIT(bool emulateTiles) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto jit = orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  orc::JITDylib &library = (*jit)->getMainJITDylib();
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  orc::SymbolMap symbols;
  auto define = [&](StringRef name, void *address) {
    symbols[(*jit)->mangleAndIntern(name)] = {orc::ExecutorAddr::fromPtr(address), JITSymbolFlags::Exported};
  };
  define("__emutls_get_address", reinterpret_cast<void *>(&__emutls_get_address));
  auto *granted = emulateTiles ? +[] { return 1; } : &attn_amx_granted;
  define("attn_amx_granted", reinterpret_cast<void *>(granted));
  for (const EmulatedInstruction &instruction : getEmulatedInstructions())
    define(instruction.name, instruction.address);
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols))))
    return std::move(error);
  return jit;
}

} // namespace

Kernel::Kernel(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}
Kernel::Kernel(Kernel &&) = default;
Kernel::~Kernel() {
  if (jit && forgetFunction)
    reinterpret_cast<void (*)()>(forgetFunction)();
}

Expected<Kernel> Kernel::load(std::unique_ptr<MemoryBuffer> object, StringRef name, std::unique_ptr<Device> device,
                              bool emulateTiles) {
  auto jit = makeJIT(emulateTiles);
  if (!jit)
    return jit.takeError();
  ArrayRef<unsigned char> runtime = runtimeObject(device        ? RuntimeForm::Device
                                                  : hasOpenMP() ? RuntimeForm::Threads
                                                                : RuntimeForm::Serial);
  StringRef bytes(reinterpret_cast<const char *>(runtime.data()), runtime.size());
  if (Error error = (*jit)->addObjectFile(MemoryBuffer::getMemBuffer(bytes, "attn runtime", false)))
    return std::move(error);
  if (Error error = (*jit)->addObjectFile(std::move(object)))
    return std::move(error);
  if (device)
    if (Error error = device->define(**jit))
      return std::move(error);
  Kernel kernel(std::move(*jit));
  kernel.device = std::move(device);
  std::pair<std::string, void **> symbols[] = {
      {name.str(), &kernel.callFunction},           {(name + "_plan").str(), &kernel.planFunction},
      {(name + "_run").str(), &kernel.runFunction}, {"attn_plan_free", &kernel.freeFunction},
      {"attn_last_error", &kernel.errorFunction},   {"attn_forget_memory", &kernel.forgetFunction}};
  for (auto &[symbol, pointer] : symbols) {
    auto address = kernel.jit->lookup(symbol);
    if (!address)
      return address.takeError();
    *pointer = address->toPtr<void *>();
  }
  return kernel;
}

Error Kernel::check(int status) const {
  if (status == 0)
    return Error::success();
  return makeError(reinterpret_cast<const char *(*)()>(errorFunction)(), " (status ", status, ")");
}

Expected<Kernel::Caller> Kernel::findCaller(size_t count) const {
  Caller &caller = callers[count];
  if (caller)
    return caller;
  auto context = std::make_unique<LLVMContext>();
  std::string name = formatv("attn_run_call_{0}", count);
  std::unique_ptr<Module> module = buildCaller(*context, name, count);
  module->setDataLayout(jit->getDataLayout());
  if (Error error = jit->addIRModule(orc::ThreadSafeModule(std::move(module), std::move(context))))
    return std::move(error);
  auto address = jit->lookup(name);
  if (!address)
    return address.takeError();
  return caller = address->toPtr<Caller>();
}

/// Calls a function of the object with `first` and the tensors; on a device those lie there, and the default stream
/// comes last.
Error Kernel::invoke(void *function, ArrayRef<const void *> first, Tensors inputs, Tensors outputs) const {
  Expected<Caller> caller = findCaller(first.size() + inputs.size() + outputs.size() + (device ? 1 : 0));
  if (!caller)
    return caller.takeError();
  SmallVector<const void *> arguments(first);
  if (!device) {
    arguments.append(inputs.begin(), inputs.end());
    arguments.append(outputs.begin(), outputs.end());
    return check((*caller)(function, arguments.data()));
  }
  Expected<int> status = device->call(inputs, outputs, [&](Tensors there) {
    arguments.append(there.begin(), there.end());
    arguments.push_back(nullptr);
    return (*caller)(function, arguments.data());
  });
  return status ? check(*status) : status.takeError();
}

Error Kernel::call(Tensors inputs, Tensors outputs) const { return invoke(callFunction, {}, inputs, outputs); }

Expected<attn_plan *> Kernel::plan(Tensors inputs) const {
  attn_plan *plan = nullptr;
  if (Error error = invoke(planFunction, {&plan}, inputs, {}))
    return std::move(error);
  return plan;
}

Error Kernel::run(const attn_plan *plan, Tensors inputs, Tensors outputs) const {
  return invoke(runFunction, {plan}, inputs, outputs);
}

void Kernel::free(attn_plan *plan) const { reinterpret_cast<void (*)(attn_plan *)>(freeFunction)(plan); }

#ifdef ATTN_HAVE_OPENMP
bool hasOpenMP() { return true; }
void setNumThreads(int threads) { omp_set_num_threads(threads); }
int getNumThreads() { return omp_get_max_threads(); }
#else
bool hasOpenMP() { return false; }
void setNumThreads(int) {}
int getNumThreads() { return 1; }
#endif

} // namespace attn::run
