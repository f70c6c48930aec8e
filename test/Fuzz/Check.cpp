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
constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
  void poison(const Variant &variant, const Attention &op, HostTensors &inputs);
  HostTensor *inputOf(llvm::StringRef name, HostTensors &inputs);
  bool evaluate(func::FuncOp func, const HostTensors &inputs, Samples &results, Precision precision) {
    return succeeded(evaluateRows(func, inputs, /*maxRows=*/-1, /*seed=*/0, results, precision));
  }
  bool makeSamples(const HostTensors &inputs, Samples &exact, std::vector<Samples> &plain, std::vector<Samples> &near);
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
  return llvm::StringRef(diagnostics).contains("(A14)") ? Outcome{"rejected", diagnostics}
                                                        : fail("canonicalize", "canonicalization fails\n");
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

/// Moves every element by about an ulp and a half, or every row by some more, up or down. An exponent that is summed up
/// from the negated reference on is rounded at the size of the reference, not at that of its terms.
void disturb(HostTensor &tensor, uint64_t seed, bool byRow) {
  double size = byRow ? 0x1p-21 : 0x1.8p-23;
  for (int64_t at = 0, e = tensor.getNumElements(); at < e; ++at) {
    if (!byRow || at % tensor.shape.back() == 0)
      seed = seed * 6364136223846793005u + 1442695040888963407u;
    tensor.setDouble(at, tensor.getDouble(at) * (1 + (seed >> 63 ? size : -size)));
  }
}

/// The exact results, straight f32 results with sums in two orders, and exact results for inputs a little off, which
/// say how much of an error no f32 implementation can avoid.
bool Checker::makeSamples(const HostTensors &inputs, Samples &exact, std::vector<Samples> &plain,
                          std::vector<Samples> &near) {
  plain.resize(1);
  if (!evaluate(func, inputs, exact, Precision::Exact) || !evaluate(func, inputs, plain[0], Precision::Single))
    return false;
  HostTensors reversed = inputs;
  if (drawn.ops.size() == 1) { // else an output would have to be reversed with them
    HostTensor *query = inputOf(drawn.ops[0].query, reversed), *key = inputOf(drawn.ops[0].key, reversed);
    if (drawn.ops[0].key != drawn.ops[0].value) {
      reverseRows(*query);
      reverseRows(*key);
      plain.resize(2);
      if (!evaluate(func, reversed, plain[1], Precision::Single))
        return false;
    }
  }
  for (uint64_t seed = 1; seed <= 2; ++seed) {
    HostTensors off = inputs;
    for (const Attention &op : drawn.ops)
      for (const std::string &name : {op.query, op.key})
        if (HostTensor *tensor = inputOf(name, off))
          disturb(*tensor, seed * 77, /*byRow=*/seed == 2);
    near.emplace_back();
    if (!evaluate(func, off, near.back(), Precision::Exact))
      return false;
  }
  return true;
}

/// Are two numbers of one kind: finite, NaN, the same infinity?
bool isAlike(double a, double b) {
  if (std::isfinite(a) || std::isfinite(b))
    return std::isfinite(a) && std::isfinite(b);
  return std::isnan(a) ? std::isnan(b) : a == b;
}

/// How far the other results are from the exact one, where all are finite.
double distance(const RowSample &exact, llvm::ArrayRef<const RowSample *> others, int64_t at) {
  double most = 0;
  for (const RowSample *other : others)
    if (std::isfinite(other->values[at]) && std::isfinite(exact.values[at]))
      most = std::max(most, std::abs(other->values[at] - exact.values[at]));
  return most;
}

/// The largest finite number among queries, keys and values.
double largestOperand(const HostTensors &inputs) {
  double largest = 0;
  for (const HostTensor &input : inputs)
    if (input.getRank() == 4 && input.isFloat())
      for (int64_t at = 0, e = input.getNumElements(); at < e; ++at)
        if (double size = std::abs(input.getDouble(at)); std::isfinite(size))
          largest = std::max(largest, size);
  return largest;
}

Outcome Checker::compare(const HostTensors &inputs, const HostTensors &results, const Variant &variant,
                         const std::string &where) {
  Samples exact, folded;
  std::vector<Samples> plain, near;
  if (!makeSamples(inputs, exact, plain, near))
    return fail("reference", where + "the reference fails\n");
  if (!evaluate(*canonical->getOps<func::FuncOp>().begin(), inputs, folded, Precision::Exact))
    return fail("reference", where + "the reference fails on the canonical form\n");
  double largest = largestOperand(inputs);
  // Equal weights are all rounded the same way in a sum; the first reference is a product, and exponents of scores that
  // are something else may be as large as 2^60 can take.
  double roundings = 16;
  for (const Attention &op : drawn.ops)
    roundings += 0.25 * double(op.keys.get(variant.variables)) + (op.score ? 48 : 0);
  for (auto [number, result] : llvm::enumerate(results)) {
    const RowSample &wanted = exact[number];
    llvm::SmallVector<const RowSample *> others;
    for (const Samples &sample : llvm::concat<const Samples>(plain, near))
      others.push_back(&sample[number]);
    double unavoidable = 0; // of the whole result
    for (int64_t at = 0; at < int64_t(wanted.values.size()); ++at)
      unavoidable = std::max(unavoidable, distance(wanted, others, at));
    for (int64_t row = 0; row < int64_t(wanted.rows.size()); ++row) {
      int64_t begin = row * wanted.width, end = begin + wanted.width;
      double inRow = 0, size = result.getRank() == 4 ? largest : 1; // a logarithm of a sum near 1 has its error
      for (int64_t at = begin; at < end; ++at) {
        inRow = std::max(inRow, distance(wanted, others, at));
        size = std::max(size, std::isfinite(wanted.values[at]) ? std::abs(wanted.values[at]) : 0);
      }
      double allowed = std::max(4 * inRow, 2 * unavoidable) + roundings * 0x1p-24 * size;
      for (int64_t at = begin; at < end; ++at) {
        double value = wanted.values[at], got = result.getDouble(at), fold = folded[number].values[at];
        std::string text;
        llvm::raw_string_ostream os(text);
        os << where << "result " << number << " (" << toString(result) << "), element " << at << ": ";
        if (!isAlike(value, fold) || std::abs(value - fold) > allowed) { // constants are folded in f32
          os << "the canonical form means " << fold << " instead of " << value << "\n";
          return fail("canonical form", text);
        }
        auto fits = [&](double value) {
          return isAlike(got, value) && (!std::isfinite(value) || std::abs(got - value) <= allowed);
        };
        // Where f32 overflows on the way and double does not, either is right.
        auto overflows = [&](const RowSample *plain) {
          return !isAlike(value, plain->values[at]) && fits(plain->values[at]);
        };
        // A weight too small for f32 may or may not carry a NaN or infinity of its value into the row.
        bool poisoned = (variant.poisonEvery || drawn.ops.size() > 1) && !std::isfinite(value);
        if (fits(value) || poisoned || llvm::any_of(others, overflows))
          continue;
        os << got << " instead of " << value << ", plain f32 " << plain[0][number].values[at] << ", allowed " << allowed
           << "\n";
        return fail("mismatch", text);
      }
    }
  }
  return {};
}

void Checker::write(const HostTensors &inputs, const Variant &variant) {
  static const char *const layouts[] = {"contiguous", "bshd", "padded", "broadcast", "far", "transposed"};
  static const char *const guards[] = {"none", "after", "before"};
  std::error_code error = llvm::sys::fs::create_directories(folder);
  std::string command = "attn-run " + folder + "/spec.mlir --check --cpu=" + drawn.cpu +
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
  for (auto &shape : *shapes)
    outputs.push_back(llvm::cantFail(
        run::PlacedTensor::create(shape, Float32Type::get(&context), false, variant.layout, variant.guard)));
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
    return llvm::StringRef(diagnostics).contains("(A14)") ? Outcome{"rejected", diagnostics} : fail("parse", "");
  if (Outcome outcome = checkRoundTrip(); outcome.failed())
    return outcome;
  if (Outcome outcome = canonicalize(); !outcome.kind.empty())
    return outcome;
  func = *module->getOps<func::FuncOp>().begin();
  RunOptions options;
  options.cpu = drawn.cpu;
  options.schedule = drawn.schedule;
  llvm::Expected<run::Kernel> kernel = run::Kernel::compile(func, options);
  if (!kernel) {
    std::string message = toString(kernel.takeError());
    if (llvm::StringRef(message).contains("cannot run it"))
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
