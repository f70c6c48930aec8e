//===- Check.cpp - Compile a case, run it, compare ------------------------===//
#include "Case.h"
#include "Kernel.h"
#include "Placement.h"
#include "attn/Reference/Npy.h"
#include "attn/Reference/Reference.h"
#include "attn/Register.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace attn::fuzz {
namespace {

using HostTensors = llvm::SmallVector<HostTensor>;
using Samples = llvm::SmallVector<RowSample>;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kLargest = std::numeric_limits<float>::max();

class Checker {
public:
  Checker(const Case &drawn, const std::string &folder) : drawn(drawn), folder(folder), context(makeRegistry()) {
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      llvm::raw_string_ostream(diagnostics) << diagnostic.getLocation() << ": " << diagnostic << "\n";
    });
  }

  Outcome run();

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    mlir::registerAllDialects(registry);
    attn::registerAllDialects(registry);
    attn::registerAllExtensions(registry);
    return registry;
  }

  Outcome fail(const char *kind, const std::string &message) { return {kind, message + diagnostics}; }
  OwningOpRef<ModuleOp> parse(const std::string &text);
  Outcome checkRoundTrip();
  Outcome canonicalize();
  Outcome runVariant(const run::Kernel &kernel, size_t number);
  HostTensors makeInputs(const Variant &variant);
  HostTensor makeInput(const Tensor &tensor, const Variant &variant, size_t number);
  void relate(const Attention &op, const Variant &variant, HostTensors &inputs);
  void enlarge(const Variant &variant, const Attention &op, HostTensors &inputs);
  void settle(const Attention &op, HostTensors &inputs);
  void poison(const Variant &variant, const Attention &op, HostTensors &inputs);
  HostTensor *inputOf(llvm::StringRef name, HostTensors &inputs);
  bool evaluate(func::FuncOp func, const HostTensors &inputs, Samples &results, Precision precision) {
    return succeeded(evaluateRows(func, inputs, /*maxRows=*/-1, /*seed=*/0, results, precision));
  }
  bool makeSamples(const HostTensors &inputs, Samples &exact, std::vector<Samples> &plain);
  Outcome compare(const HostTensors &inputs, const HostTensors &results, const Variant &variant,
                  const std::string &where);
  void write(const HostTensors &inputs, const Variant &variant);

  const Case &drawn;
  const std::string &folder;
  std::string diagnostics;
  MLIRContext context;
  OwningOpRef<ModuleOp> module, canonical;
  func::FuncOp func;
};

OwningOpRef<ModuleOp> Checker::parse(const std::string &text) {
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "spec"), llvm::SMLoc());
  return parseSpec(source, &context);
}

/// What is printed is parsed as the same again.
Outcome Checker::checkRoundTrip() {
  auto print = [](ModuleOp op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    op.print(os);
    return text;
  };
  std::string first = print(*module);
  OwningOpRef<ModuleOp> again = parse(first);
  if (!again)
    return fail("round trip", "what was printed cannot be parsed:\n" + first);
  std::string second = print(*again);
  return first == second ? Outcome() : fail("round trip", "printed as\n" + first + "\nthen as\n" + second);
}

Outcome Checker::canonicalize() {
  canonical = module->clone();
  PassManager pm(&context);
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (succeeded(pm.run(*canonical)))
    return {};
  return fail("canonicalize", "canonicalization fails\n");
}

HostTensor Checker::makeInput(const Tensor &tensor, const Variant &variant, size_t number) {
  llvm::SmallVector<int64_t> shape;
  for (const Extent &extent : tensor.dims)
    shape.push_back(extent.get(variant.variables));
  Type type = parseType(tensor.element, &context);
  HostTensor result = HostTensor::create(shape, type);
  Elements elements = fill(tensor, shape, variant.seed + number);
  for (int64_t at = 0, e = result.getNumElements(); at < e; ++at)
    if (result.isFloat())
      result.setDouble(at, elements.floats[at]);
    else
      result.setInt(at, elements.integers[at]);
  if (variant.layout == Layout::Broadcast && shape.size() == 4 && shape[0] > 0)
    for (int64_t b = 1, bytes = int64_t(result.data.size()) / shape[0]; b < shape[0]; ++b)
      std::copy_n(result.data.begin(), bytes, result.data.begin() + b * bytes);
  return result;
}

HostTensor *Checker::inputOf(llvm::StringRef name, HostTensors &inputs) {
  size_t at = 0;
  for (const Tensor &tensor : drawn.tensors) {
    if (tensor.constant)
      continue;
    if (tensor.name == name)
      return &inputs[at];
    ++at;
  }
  return nullptr;
}

/// Queries that point along keys or against them: scores that grow, or are hugely negative.
void Checker::relate(const Attention &op, const Variant &variant, HostTensors &inputs) {
  HostTensor *query = inputOf(op.query, inputs), *key = inputOf(op.key, inputs);
  if (!query)
    return;
  int64_t width = query->shape[3], rows = query->shape[2];
  for (int64_t at = 0, e = query->getNumElements(); at < e; ++at) {
    double value = query->getDouble(at);
    int64_t row = at / width % rows, head = at / width / rows % query->shape[1],
            batch = at / width / rows / query->shape[1];
    if (key && variant.relation != Relation::Free && key->shape[2] > 0) {
      int64_t keyHead = head / (query->shape[1] / key->shape[1]), token = std::min(row, key->shape[2] - 1);
      value = key->getDouble(((batch * key->shape[1] + keyHead) * key->shape[2] + token) * width + at % width);
      value *= variant.relation == Relation::Same       ? 3
               : variant.relation == Relation::Opposite ? -3
                                                        : 0.05 * double(row % 60);
    }
    query->setDouble(at, value * variant.factor);
  }
}

/// Products near the limits of f32 or beyond. There is one huge term in each, so that no order of terms is another sum,
/// and no query overflows by its scale.
void Checker::enlarge(const Variant &variant, const Attention &op, HostTensors &inputs) {
  if (!variant.hugeEvery)
    return;
  double scale = 1, parsed;
  for (const Attention &any : drawn.ops)
    if (!llvm::StringRef(any.scale).getAsDouble(parsed))
      scale = std::max(scale, std::abs(parsed));
  for (bool isQuery : {false, true}) {
    HostTensor *tensor = inputOf(isQuery ? op.query : op.key, inputs);
    if (!tensor || !(isQuery ? variant.hugeQueries : variant.hugeKeys))
      continue;
    int64_t width = tensor->shape[3], rows = tensor->shape[1] * tensor->shape[2]; // alike in all batches
    for (int64_t at = 0, e = tensor->getNumElements(); at < e; at += width)
      if (int64_t row = at / width % rows; row % variant.hugeEvery == variant.hugeEvery - 1) {
        double sign = (row / variant.hugeEvery * 2654435761u >> 7) % 2 ? -1 : 1;
        tensor->setDouble(at, sign * variant.huge / (isQuery ? scale : 1));
      }
  }
}

/// On a GPU the scale comes behind the product. Keys whose product with a query is infinite without the scale only
/// become infinite themselves.
void Checker::settle(const Attention &op, HostTensors &inputs) {
  HostTensor *query = inputOf(op.query, inputs), *key = inputOf(op.key, inputs);
  if (drawn.chip.empty() || !query || !key || query->getNumElements() == 0)
    return;
  double scale = 1 / std::sqrt(double(query->shape[3]));
  llvm::StringRef(op.scale).getAsDouble(scale);
  int64_t width = query->shape[3], rows = query->shape[2], tokens = key->shape[2],
          pairs = query->shape[0] * query->shape[1], group = query->shape[1] / key->shape[1];
  for (int64_t pair = 0; pair < pairs; ++pair)
    for (int64_t token = 0; token < tokens; ++token) {
      int64_t at = (pair / group * tokens + token) * width;
      double first = key->getDouble(at);
      for (int64_t row = 0; row < rows && std::isfinite(first); ++row) {
        double product = std::abs(first * query->getDouble((pair * rows + row) * width));
        if (product > 0.99 * kLargest && product * std::abs(scale) < 1.01 * kLargest)
          key->setDouble(at, first = std::copysign(kInfinity, first));
      }
    }
}

/// Some keys hold NaN, their values NaN or infinities; rows that mask them must not notice.
void Checker::poison(const Variant &variant, const Attention &op, HostTensors &inputs) {
  if (!variant.poisonEvery)
    return;
  for (const std::string &name : {op.key, op.value}) {
    HostTensor *tensor = inputOf(name, inputs);
    if (!tensor)
      continue;
    for (int64_t at = 0, e = tensor->getNumElements(); at < e; ++at)
      if (at / tensor->shape[3] % tensor->shape[2] % variant.poisonEvery == variant.poisonEvery - 1)
        tensor->setDouble(at, name == op.key || !variant.poisonInfinite ? std::nan("")
                              : at % 2                                  ? kInfinity
                                                                        : -kInfinity);
  }
}

HostTensors Checker::makeInputs(const Variant &variant) {
  HostTensors inputs;
  for (auto [number, tensor] : llvm::enumerate(drawn.tensors))
    if (!tensor.constant)
      inputs.push_back(makeInput(tensor, variant, number));
  for (const Attention &op : drawn.ops)
    relate(op, variant, inputs);
  for (const Attention &op : drawn.ops)
    enlarge(variant, op, inputs);
  for (const Attention &op : drawn.ops)
    settle(op, inputs);
  for (const Attention &op : drawn.ops)
    poison(variant, op, inputs);
  return inputs;
}

/// Reverses the order of the elements of every row: sums over them are rounded differently.
void reverseRows(HostTensor &tensor) {
  HostTensor old = tensor;
  int64_t width = tensor.shape.back();
  for (int64_t at = 0, e = tensor.getNumElements(); at < e; ++at)
    tensor.setDouble(at, old.getDouble(at / width * width + width - 1 - at % width));
}

/// The exact results, and straight f32 results with sums in two orders.
bool Checker::makeSamples(const HostTensors &inputs, Samples &exact, std::vector<Samples> &plain) {
  plain.resize(1);
  if (!evaluate(func, inputs, exact, Precision::Exact) || !evaluate(func, inputs, plain[0], Precision::Single))
    return false;
  if (drawn.ops.size() > 1 || drawn.ops[0].key == drawn.ops[0].value) // an output would have to be reversed as well
    return true;
  HostTensors reversed = inputs;
  reverseRows(*inputOf(drawn.ops[0].query, reversed));
  reverseRows(*inputOf(drawn.ops[0].key, reversed));
  plain.emplace_back();
  return evaluate(func, reversed, plain[1], Precision::Single);
}

/// Are two numbers of one kind: finite, NaN, the same infinity?
bool isAlike(double a, double b) {
  if (std::isfinite(a) || std::isfinite(b))
    return std::isfinite(a) && std::isfinite(b);
  return std::isnan(a) ? std::isnan(b) : a == b;
}

Outcome Checker::compare(const HostTensors &inputs, const HostTensors &results, const Variant &variant,
                         const std::string &where) {
  Samples exact, folded;
  std::vector<Samples> plain;
  if (!makeSamples(inputs, exact, plain))
    return fail("reference", where + "the reference fails\n");
  if (!evaluate(*canonical->getOps<func::FuncOp>().begin(), inputs, folded, Precision::Exact))
    return fail("reference", where + "the reference fails on the canonical form\n");
  for (size_t number = 0; number < results.size(); ++number) {
    const HostTensor &result = results[number];
    const RowSample &wanted = exact[number];
    double part = 0; // of the natural magnitude, that an error may be
    for (const Samples &sample : plain)
      part = std::max(part, attn::compare(wanted, sample[number], result).allowed);
    // Weights of 16 bits and their sum are rounded apart, then the result; where all weights of plain f32 are 0 or 1 it
    // has no error to compare with.
    if (!drawn.chip.empty() && !result.elementType.isF32())
      part = std::max(part, result.elementType.isF16() ? 0x1p-10 : 0x1p-7);
    if (drawn.ops.size() > 1) // one op multiplies the errors of another by its scores
      part *= 16;
    for (int64_t at = 0; at < result.getNumElements(); ++at) {
      double value = wanted.values[at], got = result.getDouble(at), fold = folded[number].values[at],
             allowed = part * wanted.getMagnitude(at) + Comparison::kSmallest;
      std::string text;
      llvm::raw_string_ostream os(text);
      os << where << "result " << number << " (" << toString(result) << "), element " << at << ": ";
      auto fits = [&](double value) {
        return isAlike(got, value) && (!std::isfinite(value) || std::abs(got - value) <= allowed);
      };
      if (!isAlike(value, fold) || std::abs(value - fold) > allowed) { // constants are folded in f32
        os << "the canonical form means " << fold << " instead of " << value << "\n";
        return fail("canonical form", text);
      }
      // Where f32 overflows on the way and double does not, either is right.
      auto overflows = [&](const Samples &plain) {
        return !isAlike(value, plain[number].values[at]) && fits(plain[number].values[at]);
      };
      // A weight too small for f32 may or may not carry a NaN or infinity of its value into the row.
      bool poisoned = (variant.poisonEvery || drawn.ops.size() > 1) && !std::isfinite(value);
      if (fits(value) || poisoned || llvm::any_of(plain, overflows))
        continue;
      os << got << " instead of " << value << ", plain f32 " << plain[0][number].values[at] << ", allowed " << allowed
         << "\n";
      return fail("mismatch", text);
    }
  }
  return {};
}

void Checker::write(const HostTensors &inputs, const Variant &variant) {
  static const char *const layouts[] = {"contiguous", "bshd", "padded", "broadcast", "far", "transposed"};
  static const char *const guards[] = {"none", "after", "before"};
  std::error_code error = llvm::sys::fs::create_directories(folder);
  std::string command = "attn-run " + folder + "/spec.mlir --check --cpu=" + drawn.cpu +
                        (drawn.chip.empty() ? "" : " --target=cuda-emulated --chip=" + drawn.chip) +
                        " --strides=" + layouts[int(variant.layout)] +
                        (variant.guard == Guard::None ? "" : std::string(" --guard=") + guards[int(variant.guard)]) +
                        " --threads=" + std::to_string(variant.threads);
  llvm::raw_fd_ostream(folder + "/spec.mlir", error) << render(drawn);
  for (auto [name, tensor] : llvm::zip(getArgumentNames(func), inputs)) {
    llvm::consumeError(writeNpy(folder + "/" + name + ".npy", tensor));
    command += " --input=" + name + "=" + folder + "/" + name + ".npy";
  }
  llvm::raw_fd_ostream(folder + "/command", error) << command << "\n";
}

Outcome Checker::runVariant(const run::Kernel &kernel, size_t number) {
  const Variant &variant = drawn.variants[number];
  std::string where = "run " + std::to_string(number) + ": ";
  HostTensors inputs = makeInputs(variant), results;
  if (!folder.empty())
    write(inputs, variant);
  std::vector<run::PlacedTensor> placed, outputs;
  std::vector<const DLTensor *> in, out;
  for (const HostTensor &input : inputs) {
    placed.push_back(
        llvm::cantFail(run::PlacedTensor::create(input.shape, input.elementType, true, variant.layout, variant.guard)));
    placed.back().write(input);
  }
  auto shapes = getResultShapes(func, inputs);
  if (!shapes)
    return fail("extents", where + toString(shapes.takeError()) + "\n");
  for (auto [shape, type] : llvm::zip_equal(*shapes, func.getResultTypes()))
    outputs.push_back(llvm::cantFail(run::PlacedTensor::create(shape, cast<RankedTensorType>(type).getElementType(),
                                                               false, variant.layout, variant.guard)));
  for (auto &tensor : placed)
    in.push_back(tensor.getDLTensor());
  for (auto &tensor : outputs)
    out.push_back(tensor.getDLTensor());
  run::setNumThreads(variant.threads);
  if (llvm::Error error = kernel.call(in, out))
    return fail("refused", where + toString(std::move(error)) + "\n");
  for (auto &tensor : outputs) {
    results.push_back(tensor.read());
    if (!tensor.isSurroundingIntact())
      return fail("surroundings", where + "the kernel wrote between elements\n");
  }
  if (Outcome outcome = compare(inputs, results, variant, where); outcome.failed())
    return outcome;
  // Once more with a plan of its own and another number of threads: the same bits.
  run::setNumThreads(variant.threads % 3 + 1);
  llvm::Expected<attn_plan *> plan = kernel.plan(in);
  if (!plan)
    return fail("plan", where + toString(plan.takeError()) + "\n");
  llvm::Error error = kernel.run(*plan, in, out);
  kernel.free(*plan);
  if (error)
    return fail("plan", where + toString(std::move(error)) + "\n");
  for (auto [number, result] : llvm::enumerate(results)) {
    HostTensor again = outputs[number].read();
    for (int64_t at = 0; at < result.getNumElements(); ++at) {
      double before = result.getDouble(at), now = again.getDouble(at);
      if (std::memcmp(&before, &now, sizeof(double)) == 0)
        continue;
      std::string text;
      llvm::raw_string_ostream(text) << where << "result " << number << " (" << toString(result) << "), element " << at
                                     << ": " << now << " with a plan and other threads, " << before << " without\n";
      return fail("threads", text);
    }
  }
  return {};
}

Outcome Checker::run() {
  std::string text = render(drawn);
  module = parse(text);
  if (!module)
    return llvm::StringRef(diagnostics).contains("the mask keeps nothing") ? Outcome{"rejected", diagnostics}
                                                                           : fail("parse", "");
  if (Outcome outcome = checkRoundTrip(); outcome.failed())
    return outcome;
  if (Outcome outcome = canonicalize(); !outcome.kind.empty())
    return outcome;
  func = *module->getOps<func::FuncOp>().begin();
  RunOptions options;
  options.cpu = drawn.cpu;
  options.schedule = drawn.schedule;
  if (!drawn.chip.empty()) {
    std::string error;
    FailureOr<GPUModel> gpu = GPUModel::get(drawn.chip, error);
    if (failed(gpu))
      return fail("chip", error + "\n");
    options.gpu = *gpu;
  }
  llvm::Expected<run::Kernel> kernel = run::Kernel::compile(func, options);
  if (!kernel) {
    std::string message = toString(kernel.takeError());
    for (const char *reason : {"cannot run it", "has no GPU code", "of shared memory for the smallest tiles"})
      if (llvm::StringRef(message).contains(reason))
        return {"rejected", message};
    return fail("compile", message + "\n");
  }
  for (size_t number = 0; number < drawn.variants.size(); ++number)
    if (Outcome outcome = runVariant(*kernel, number); outcome.failed())
      return outcome;
  return {};
}

} // namespace

Outcome check(const Case &drawn, const std::string &folder) { return Checker(drawn, folder).run(); }

} // namespace attn::fuzz
