//===- Tune.cpp - Search tile sizes by timing them ------------------------===//
#include "attn/Run/Tune.h"
#include "Arguments.h"
#include "Kernel.h"
#include "attn/Support/Errors.h"
#include "attn/Target/Report.h"
#include "llvm/ADT/StringExtras.h"
#include <chrono>

using namespace mlir;

namespace attn {
namespace {

using run::Kernel;
using Clock = std::chrono::steady_clock;

/// What a choice has to save to be taken: times of one kernel differ by as much.
constexpr double kGain = 0.98;
constexpr size_t kLeastRounds = 5;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// One choice after the other, the others kept: query tile, key tile, group, least keys of a part.
class Tuner {
public:
  Tuner(func::FuncOp func, const RunOptions &options, double seconds, llvm::function_ref<void(const TuneStep &)> told)
      : func(func), options(options), seconds(seconds), told(told) {}

  llvm::Expected<TuneResult> run();

private:
  llvm::Error start();
  llvm::Error tryAll(const char *name, int64_t ScheduleOverrides::*choice, ArrayRef<int64_t> values);
  llvm::Expected<Kernel> compile(const ScheduleOverrides &choices);
  llvm::Expected<double> compare(const Kernel &candidate);
  llvm::Expected<double> time(const Kernel &kernel);

  func::FuncOp func;
  const RunOptions &options;
  double seconds;
  llvm::function_ref<void(const TuneStep &)> told;
  TargetModel target;
  run::Arguments arguments;
  std::vector<const DLTensor *> in, out;
  std::optional<Kernel> best;
  TuneResult result;
};

llvm::Expected<Kernel> Tuner::compile(const ScheduleOverrides &choices) {
  RunOptions own = options;
  own.schedule = choices;
  return Kernel::compile(func, own);
}

llvm::Expected<double> Tuner::time(const Kernel &kernel) {
  Clock::time_point start = Clock::now();
  if (llvm::Error error = kernel.call(in, out))
    return std::move(error);
  return secondsSince(start);
}

/// The time of a kernel over that of the best so far: the median of rounds in which both run.
llvm::Expected<double> Tuner::compare(const Kernel &candidate) {
  std::vector<double> ratios;
  for (const Kernel *kernel : {static_cast<const Kernel *>(&*best), &candidate}) // pages and caches
    if (auto once = time(*kernel); !once)
      return once.takeError();
  Clock::time_point start = Clock::now();
  while (ratios.size() < kLeastRounds || secondsSince(start) < seconds) {
    auto own = time(candidate);
    if (!own)
      return own.takeError();
    auto other = time(*best);
    if (!other)
      return other.takeError();
    ratios.push_back(*own / *other);
  }
  llvm::sort(ratios);
  return ratios[ratios.size() / 2];
}

llvm::Error Tuner::start() {
  std::string message;
  FailureOr<TargetModel> model = TargetModel::get(options.cpu, /*triple=*/"", message);
  if (failed(model))
    return makeError("--cpu=", options.cpu, ": ", message);
  target = *model;
  AttentionOp op;
  func.walk([&](AttentionOp found) { op = op ? op : found; });
  if (!op)
    return makeError("'", func.getName(), "' has no attn.attention, whose tiles could be tuned");
  if (op.getScheduleAttr())
    return makeError("'", func.getName(), "' says its schedule itself; leave it out to have it tuned");
  ScheduleAttr chosen = chooseSchedule(op, target, options.schedule).schedule;
  result.choices = options.schedule;
  result.choices.queryTile = chosen.getQueryTile();
  result.choices.keyTile = chosen.getKeyTile();
  result.choices.group = chosen.getGroup();
  result.choices.split = chosen.getSplit();
  auto made = run::Arguments::make(func, options, options.inputs.front());
  if (!made)
    return made.takeError();
  arguments = std::move(*made);
  if (llvm::Error error = arguments.place(func, options))
    return error;
  in = run::getPointers(arguments.placedInputs), out = run::getPointers(arguments.placedResults);
  llvm::Expected<Kernel> kernel = compile(options.schedule);
  if (!kernel)
    return kernel.takeError();
  best.emplace(std::move(*kernel));
  return llvm::Error::success();
}

llvm::Error Tuner::tryAll(const char *name, int64_t ScheduleOverrides::*choice, ArrayRef<int64_t> values) {
  for (int64_t value : values) {
    ScheduleOverrides choices = result.choices;
    if (value < 1 || choices.*choice == value)
      continue;
    choices.*choice = value;
    llvm::Expected<Kernel> kernel = compile(choices);
    if (!kernel)
      return kernel.takeError();
    llvm::Expected<double> ratio = compare(*kernel);
    if (!ratio)
      return ratio.takeError();
    bool taken = *ratio < kGain;
    told({name, value, *ratio, taken});
    if (!taken)
      continue;
    result.choices = choices;
    result.overDefault *= *ratio;
    best.reset();
    best.emplace(std::move(*kernel));
  }
  return llvm::Error::success();
}

llvm::Expected<TuneResult> Tuner::run() {
  if (llvm::Error error = start())
    return std::move(error);
  int64_t keys = result.choices.keyTile, group = result.choices.group, split = result.choices.split;
  SmallVector<int64_t> queryTiles;
  for (int64_t vectors = 1; vectors <= 4; ++vectors)
    queryTiles.push_back(vectors * target.lanes);
  auto whole = [](int64_t rows) { return rows / 32 * 32; }; // blocks in which tiles of bf16 take keys
  if (llvm::Error error = tryAll("query-tile", &ScheduleOverrides::queryTile, queryTiles))
    return std::move(error);
  if (llvm::Error error =
          tryAll("key-tile", &ScheduleOverrides::keyTile, {whole(keys / 2), whole(keys * 3 / 2), keys * 2}))
    return std::move(error);
  if (llvm::Error error = tryAll("group", &ScheduleOverrides::group, {group / 4, group / 2, group * 2, group * 4}))
    return std::move(error);
  if (split)
    if (llvm::Error error = tryAll("split", &ScheduleOverrides::split, {split / 2, split * 2}))
      return std::move(error);
  return std::move(result);
}

} // namespace

std::string TuneResult::flags() const {
  std::string text;
  auto add = [&](const char *name, int64_t value) {
    if (value)
      text += std::string("--") + name + "=" + std::to_string(value) + "\n";
  };
  add("query-tile", choices.queryTile);
  add("key-tile", choices.keyTile);
  add("group", choices.group);
  add("split", choices.split);
  return text;
}

llvm::Expected<TuneResult> tuneSpec(ModuleOp module, const RunOptions &options, double seconds,
                                    llvm::function_ref<void(const TuneStep &)> told) {
  if (options.gpu)
    return makeError("--tune times kernels on this CPU; leave out --target");
  llvm::Expected<func::FuncOp> func = findFunction(module, options.function);
  if (!func)
    return func.takeError();
  if (options.threads > 0)
    run::setNumThreads(options.threads);
  return Tuner(*func, options, seconds, told).run();
}

} // namespace attn
