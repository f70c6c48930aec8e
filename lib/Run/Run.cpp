//===- Run.cpp - Compile a spec in process, run, check and time it ----------===//
#include "attn/Run/Run.h"
#include "Arguments.h"
#include "Kernel.h"
#include "attn/Reference/Npy.h"
#include "attn/Reference/Reference.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Files.h"
#include "attn/Support/Names.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;

namespace attn {
namespace {

using run::Kernel;
using run::PlacedTensor;
using HostTensors = llvm::SmallVector<HostTensor>;
using Placed = std::vector<PlacedTensor>;
using Clock = std::chrono::steady_clock;

constexpr double kCheckSeconds = 0.5; // of the reference, in each of two precisions
constexpr int64_t kCountedRows = 512; // for the density

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What can be refused before anything is compiled.
llvm::Error checkOptions(func::FuncOp func, const RunOptions &options) {
  if (options.reference && (options.check || options.benchSeconds > 0))
    return makeError(
        "--reference evaluates the definition itself, so there is nothing to check or to time; leave out --check "
        "and --bench");
  if (options.benchSeconds > 0 && options.gpu && !options.emulate)
    return makeError("--bench: with --target=cuda most of a call's time would be copies to and from the GPU");
  if (options.threads > 1 && !run::hasOpenMP())
    return makeError("--threads=", options.threads, ": this build has no OpenMP and runs on one thread; leave it out");
  llvm::SmallVector<std::string> names = getResultNames(func), arguments = getArgumentNames(func);
  for (auto &[name, file] : options.outputs) {
    if (!llvm::is_contained(names, name) && !llvm::is_contained(arguments, name))
      return makeError("--output=", name, "=", file, ": there is no result '", name, "'; the results are ",
                       llvm::join(names, ", "), ", the arguments ", llvm::join(arguments, ", "));
    if (llvm::Error error = checkWritable(file))
      return error;
  }
  return llvm::Error::success();
}

/// Runs one function on one set of inputs: results, check and timing in turn.
class Runner {
public:
  Runner(func::FuncOp func, const RunOptions &options, const InputOptions &inputOptions)
      : func(func), options(options), inputOptions(inputOptions), resultNames(getResultNames(func)) {}

  /// Without a kernel the reference is evaluated.
  llvm::Expected<RunReport> run(const Kernel *kernel) {
    report.function = func.getName().str();
    llvm::Expected<run::Arguments> made = run::Arguments::make(func, options, inputOptions);
    if (!made)
      return made.takeError();
    arguments = std::move(*made);
    if (llvm::Error error = kernel ? runKernel(*kernel) : evaluateReference())
      return std::move(error);
    describeTensors();
    if (options.check)
      if (llvm::Error error = check())
        return std::move(error);
    if (llvm::Error error = writeOutputs())
      return std::move(error);
    return std::move(report);
  }

private:
  llvm::Error evaluateReference() {
    if (failed(evaluate(func, inputs, results)))
      return makeError("the reference cannot evaluate this function");
    return llvm::Error::success();
  }

  llvm::Error runKernel(const Kernel &kernel) {
    if (llvm::Error error = arguments.place(func, options))
      return error;
    Placed &placedResults = arguments.placedResults;
    auto in = run::getPointers(arguments.placedInputs), out = run::getPointers(placedResults);
    if (llvm::Error error = kernel.call(in, out)) {
      bool touched = !llvm::all_of(placedResults, [](const PlacedTensor &placed) { return placed.isUntouched(); });
      return touched ? makeError(toString(std::move(error)), "; yet the results were written to") : std::move(error);
    }
    for (auto [placed, name] : llvm::zip_equal(placedResults, resultNames)) {
      results.push_back(placed.read());
      if (!placed.isSurroundingIntact())
        return makeError("result '", name, "': the kernel wrote between its elements");
    }
    return options.benchSeconds > 0 ? bench(kernel, in, out) : llvm::Error::success();
  }

  llvm::Error bench(const Kernel &kernel, run::Tensors in, run::Tensors out) {
    std::vector<double> calls, plans;
    Clock::time_point start = Clock::now();
    while (calls.size() < 5 || secondsSince(start) < options.benchSeconds) {
      Clock::time_point call = Clock::now();
      if (llvm::Error error = kernel.call(in, out))
        return error;
      calls.push_back(secondsSince(call));
      Clock::time_point plan = Clock::now();
      llvm::Expected<attn_plan *> made = kernel.plan(in);
      if (!made)
        return made.takeError();
      plans.push_back(secondsSince(plan));
      kernel.free(*made);
    }
    llvm::sort(calls);
    llvm::sort(plans);
    size_t n = calls.size();
    report.bench =
        BenchReport{int64_t(n), calls[n / 2], calls[n / 10], calls[n - 1 - n / 10], plans[n / 2], run::getNumThreads()};
    FailureOr<Work> work = measureWork(func, inputs, kCountedRows, inputOptions.seed);
    if (failed(work))
      return llvm::Error::success();
    report.work = WorkReport{work->pairs, work->kept, work->flops, work->sampled};
    llvm::Expected<llvm::SmallVector<CountedStep>> steps = countSteps(func, inputs);
    if (!steps)
      return steps.takeError();
    for (const CountedStep &step : *steps)
      report.work->flops += double(step.work.operations);
    return llvm::Error::success();
  }

  llvm::Error check() {
    int64_t rows = chooseRows(func, inputs, kCheckSeconds);
    llvm::SmallVector<RowSample> exact, plain;
    uint64_t seed = inputOptions.seed;
    if (failed(evaluateRows(func, inputs, rows, seed, exact, Precision::Exact)) ||
        failed(evaluateRows(func, inputs, rows, seed, plain, Precision::Single)))
      return makeError("--check: the reference cannot evaluate this function");
    for (auto [index, name] : llvm::enumerate(resultNames)) {
      Comparison c = compare(exact[index], plain[index], results[index]);
      std::string type;
      llvm::raw_string_ostream(type) << results[index].elementType;
      report.checks.push_back({name, type, int64_t(exact[index].rows.size()), exact[index].total, c.maxError,
                               c.plainError, c.bound, describeWorst(c, results[index].shape), c.passed()});
    }
    return llvm::Error::success();
  }

  static std::string describeWorst(const Comparison &comparison, ArrayRef<int64_t> shape) {
    if (comparison.worst < 0)
      return "";
    std::string at;
    int64_t rest = comparison.worst;
    for (int64_t extent : llvm::reverse(shape)) {
      at = std::to_string(rest % extent) + (at.empty() ? "" : ", ") + at;
      rest /= extent;
    }
    std::string text;
    llvm::raw_string_ostream(text) << "[" << at << "]: " << comparison.got << " instead of " << comparison.expected;
    return text;
  }

  void describeTensors() {
    for (auto [name, tensor] : llvm::zip_equal(getArgumentNames(func), inputs))
      report.inputs.emplace_back(name, toString(tensor));
    for (auto [name, tensor] : llvm::zip_equal(resultNames, results))
      report.results.emplace_back(name, toString(tensor));
  }

  llvm::Error writeOutputs() {
    auto write = [&](ArrayRef<std::string> names, ArrayRef<HostTensor> tensors) -> llvm::Error {
      for (auto [name, tensor] : llvm::zip_equal(names, tensors))
        if (auto found = options.outputs.find(name); found != options.outputs.end())
          if (llvm::Error error = writeNpy(found->second, tensor))
            return error;
      return llvm::Error::success();
    };
    if (llvm::Error error = write(getArgumentNames(func), inputs))
      return error;
    return write(resultNames, results);
  }

  func::FuncOp func;
  const RunOptions &options;
  const InputOptions &inputOptions;
  RunReport report;
  llvm::SmallVector<std::string> resultNames;
  run::Arguments arguments;
  HostTensors &inputs = arguments.inputs, results;
};

} // namespace

bool RunReport::passed() const {
  return llvm::all_of(checks, [](const CheckReport &check) { return check.passed; });
}

llvm::Error runSpec(ModuleOp module, const RunOptions &options, llvm::function_ref<void(const RunReport &)> done) {
  llvm::Expected<func::FuncOp> func = findFunction(module, options.function);
  if (!func)
    return func.takeError();
  if (llvm::Error error = checkOptions(*func, options))
    return error;
  if (options.threads > 0)
    run::setNumThreads(options.threads);
  std::optional<Kernel> kernel;
  double compileSeconds = 0;
  if (!options.reference) {
    Clock::time_point start = Clock::now();
    llvm::Expected<Kernel> compiled = Kernel::compile(*func, options);
    if (!compiled)
      return compiled.takeError();
    kernel.emplace(std::move(*compiled));
    compileSeconds = secondsSince(start);
  }
  for (const InputOptions &inputs : options.inputs) {
    llvm::Expected<RunReport> report = Runner(*func, options, inputs).run(kernel ? &*kernel : nullptr);
    if (!report)
      return report.takeError();
    report->compileSeconds = compileSeconds;
    if (kernel && kernel->getDevice())
      report->emulation = kernel->getDevice()->takeReport();
    done(*report);
  }
  return llvm::Error::success();
}

} // namespace attn
