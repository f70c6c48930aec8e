//===- Kernel.cpp - A compiled function in this process ---------------------===//
#include "Kernel.h"
#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Bitcode.h"
#include "attn/Support/Errors.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/TargetSelect.h"
#include <array>
#include <utility>

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

constexpr size_t kMaxArguments = ATTN_MAX_OPERANDS + 10; // captured; query, key, value, results; plan, stream

template <size_t>
using Pointer = const void *;

template <size_t... I>
int callWith(void *function, const void *const *arguments, std::index_sequence<I...>) {
  return reinterpret_cast<int (*)(Pointer<I>...)>(function)(arguments[I]...);
}

template <size_t N>
int callWith(void *function, const void *const *arguments) {
  return callWith(function, arguments, std::make_index_sequence<N>());
}

template <size_t... N>
constexpr auto makeCallers(std::index_sequence<N...>) {
  return std::array<int (*)(void *, const void *const *), sizeof...(N)>{callWith<N>...};
}

/// Calls a C function of as many pointers as there are `arguments`.
int callFunction(void *function, ArrayRef<const void *> arguments) {
  static constexpr auto callers = makeCallers(std::make_index_sequence<kMaxArguments + 1>());
  assert(arguments.size() <= kMaxArguments && "more arguments than an object may have");
  return callers[arguments.size()](function, arguments.data());
}

Expected<std::unique_ptr<orc::LLJIT>> makeJIT() {
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
  orc::SymbolMap symbols{{(*jit)->mangleAndIntern("__emutls_get_address"),
                          {orc::ExecutorAddr::fromPtr(&__emutls_get_address), JITSymbolFlags::Exported}}};
  if (Error error = library.define(orc::absoluteSymbols(std::move(symbols))))
    return std::move(error);
  return jit;
}

} // namespace

Kernel::Kernel(std::unique_ptr<orc::LLJIT> jit) : jit(std::move(jit)) {}
Kernel::Kernel(Kernel &&) = default;
Kernel &Kernel::operator=(Kernel &&) = default;
Kernel::~Kernel() = default;

Expected<Kernel> Kernel::load(std::unique_ptr<MemoryBuffer> object, StringRef name, std::unique_ptr<Device> device) {
  auto jit = makeJIT();
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
  std::pair<std::string, void **> symbols[] = {{name.str(), &kernel.callFunction},
                                               {(name + "_plan").str(), &kernel.planFunction},
                                               {(name + "_run").str(), &kernel.runFunction},
                                               {"attn_plan_free", &kernel.freeFunction},
                                               {"attn_last_error", &kernel.errorFunction}};
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

/// Calls a function of the object with `first` and the tensors; on a device those lie there, and the default stream
/// comes last.
Error Kernel::invoke(void *function, ArrayRef<const void *> first, Tensors inputs, Tensors outputs) const {
  SmallVector<const void *> arguments(first);
  if (!device) {
    arguments.append(inputs.begin(), inputs.end());
    arguments.append(outputs.begin(), outputs.end());
    return check(run::callFunction(function, arguments));
  }
  Expected<int> status = device->call(inputs, outputs, [&](Tensors there) {
    arguments.append(there.begin(), there.end());
    arguments.push_back(nullptr);
    return run::callFunction(function, arguments);
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
