//===- Reference.cpp - Functions of attn ops, op by op ----------------------===//
#include "attn/Reference/Reference.h"
#include "Attention.h"
#include "Steps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/Parallel.h"
#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>

using namespace mlir;

namespace attn {
namespace {

using reference::AttentionRows;
using reference::Environment;
using reference::Extents;

/// Rows that stand for all `total` of them: one of every stretch of equal length, the first and the last among them.
std::vector<int64_t> pickRows(int64_t total, int64_t maxRows, uint64_t seed) {
  std::vector<int64_t> rows;
  int64_t count = maxRows < 0 ? total : std::min(total, maxRows);
  std::mt19937_64 random(seed);
  for (int64_t k = 0; k < count; ++k) {
    int64_t begin = total * k / count, end = total * (k + 1) / count;
    rows.push_back(k == 0 ? 0 : k == count - 1 ? total - 1 : begin + int64_t(random() % uint64_t(end - begin)));
  }
  return rows;
}

/// The elements of a dense constant; nothing for another attribute.
std::optional<HostTensor> readConstant(Attribute attribute) {
  auto elements = dyn_cast<ElementsAttr>(attribute);
  if (!elements || !HostTensor::isSupported(elements.getElementType()))
    return std::nullopt;
  HostTensor tensor = HostTensor::create(elements.getShapedType().getShape(), elements.getElementType());
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attribute)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob || blob->getData().size() != tensor.data.size())
      return std::nullopt;
    if (!tensor.data.empty())
      std::memcpy(tensor.data.data(), blob->getData().data(), tensor.data.size());
    return tensor;
  }
  auto dense = dyn_cast<DenseElementsAttr>(attribute);
  if (!dense)
    return std::nullopt;
  int64_t index = 0;
  if (tensor.isFloat()) {
    for (const APFloat &value : dense.getValues<APFloat>())
      tensor.setDouble(index++, FloatAttr::get(tensor.elementType, value).getValueAsDouble());
    return tensor;
  }
  for (const APInt &value : dense.getValues<APInt>())
    tensor.setInt(index++, value.getBitWidth() == 1 ? value.getZExtValue() : value.getSExtValue());
  return tensor;
}

/// Calls `visit(rows, k)` for k below `count`, on all cores; `rows` is a copy of `prototype` that no other core uses.
template <typename Visit>
void forEachRow(const AttentionRows &prototype, int64_t count, Visit visit) {
  const int64_t stretch = std::max<int64_t>(1, count / 256);
  llvm::parallelFor(0, llvm::divideCeil(count, stretch), [&](size_t number) {
    AttentionRows rows = prototype;
    for (int64_t k = number * stretch, end = std::min(count, k + stretch); k < end; ++k)
      visit(rows, k);
  });
}

/// Walks the body of one function.
class Evaluator {
public:
  Evaluator(Precision precision, int64_t maxRows, uint64_t seed) : precision(precision), maxRows(maxRows), seed(seed) {}

  LogicalResult run(func::FuncOp func, ArrayRef<HostTensor> inputs) {
    if (failed(bindArguments(func, inputs)))
      return failure();
    for (Operation &op : func.front().without_terminator())
      if (failed(evaluate(&op)))
        return failure();
    for (Value result : func.front().getTerminator()->getOperands())
      if (failed(addResult(result)))
        return failure();
    return success();
  }

  /// Only counts from now on: results of attention are zeros.
  void countInto(Work &total) { work = &total; }

  llvm::SmallVector<RowSample> takeResults() { return std::move(results); }

private:
  LogicalResult bindArguments(func::FuncOp func, ArrayRef<HostTensor> inputs) {
    if (func.isExternal() || !func.getBody().hasOneBlock())
      return func.emitOpError("should have a body of one block to be evaluated");
    if (inputs.size() != func.getNumArguments())
      return func.emitOpError() << "takes " << func.getNumArguments() << " inputs, " << inputs.size() << " were given";
    for (auto [argument, tensor] : llvm::zip_equal(func.getArguments(), inputs)) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getElementType() != tensor.elementType ||
          failed(verifyCompatibleShape(type.getShape(), tensor.shape)))
        return func.emitOpError() << "argument " << argument.getArgNumber() << " is " << argument.getType()
                                  << ", which an input of " << toString(tensor) << " does not fit";
      environment.tensors[argument] = &tensor;
    }
    return success();
  }

  LogicalResult evaluate(Operation *op) {
    if (auto attention = dyn_cast<AttentionOp>(op))
      return evaluateAttention(attention);
    if (isa<CompiledOpInterface>(op))
      return precision == Precision::Exact ? evaluateStep<double>(op) : evaluateStep<float>(op);
    if (auto cast = dyn_cast<tensor::CastOp>(op)) {
      if (const HostTensor *source = environment.tensors.lookup(cast.getSource()))
        environment.tensors[cast.getResult()] = source;
      return success();
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && isa<TensorType>(constant.getType())) {
      std::optional<HostTensor> tensor = readConstant(constant.getValue());
      if (!tensor)
        return op->emitOpError("holds elements that the reference cannot read");
      addTensor(constant.getResult(), std::move(*tensor));
      return success();
    }
    FailureOr<reference::Slot> value = reference::Program::evaluate(op, environment);
    if (succeeded(value))
      environment.scalars[op->getResult(0)] = *value;
    return LogicalResult(value);
  }

  template <typename T>
  LogicalResult evaluateStep(Operation *op) {
    std::optional<reference::StepResults<T>> results = reference::evaluateStep<T>(op, environment, magnitudes);
    if (!results)
      return op->emitOpError("is outside the reference's reach");
    for (auto [value, result] : llvm::zip_equal(op->getResults(), *results)) {
      Type type = cast<RankedTensorType>(value.getType()).getElementType();
      if (result.isInteger) {
        addTensor(value, result.integers.toTensor(type));
        continue;
      }
      addTensor(value,
                result.numbers.toTensor(precision == Precision::Exact ? Float64Type::get(op->getContext()) : type));
      if (precision == Precision::Exact)
        magnitudes[value] = std::move(result.magnitudes);
    }
    return success();
  }

  void addTensor(Value value, HostTensor tensor) {
    storage.push_back(std::move(tensor));
    environment.tensors[value] = &storage.back();
  }

  static bool isOnlyReturned(Operation *op) {
    return llvm::all_of(op->getUsers(), [](Operation *user) { return isa<func::ReturnOp>(user); });
  }

  LogicalResult evaluateAttention(AttentionOp op) {
    FailureOr<AttentionRows> rows = AttentionRows::create(op, environment, precision);
    if (failed(rows))
      return failure();
    auto sizesOf = [&](Value tensor) {
      auto found = tensor ? magnitudes.find(tensor) : magnitudes.end();
      return found == magnitudes.end() ? nullptr : &found->second;
    };
    rows->setSizes({sizesOf(op.getQuery()), sizesOf(op.getKey()), sizesOf(op.getValue()), sizesOf(op.getJoinedOutput()),
                    sizesOf(op.getJoinedLse()), sizesOf(op.getScores())});
    bool whole = !isOnlyReturned(op);
    RowSample output, lse;
    const Extents &e = rows->getExtents();
    output.shape = {e.batch, e.queryHeads, e.queries, e.valueDim};
    lse.shape = {e.batch, e.queryHeads, e.queries};
    output.width = e.valueDim;
    output.total = lse.total = rows->getNumRows();
    output.rows = lse.rows = pickRows(output.total, whole && !work ? -1 : maxRows, seed);
    output.values.resize(output.rows.size() * output.width);
    lse.values.resize(lse.rows.size());
    if (precision == Precision::Exact && !work) {
      output.magnitudes.resize(output.values.size());
      lse.magnitudes.resize(lse.values.size());
    }
    if (work)
      count(*rows, output.rows);
    else
      forEachRow(*rows, output.rows.size(), [&](AttentionRows &local, int64_t k) {
        AttentionRows::Result result{output.values.data() + k * output.width, &lse.values[k]};
        if (!lse.magnitudes.empty()) {
          result.outputMagnitude = output.magnitudes.data() + k * output.width;
          result.lseMagnitude = &lse.magnitudes[k];
        }
        local.evaluate(output.rows[k], result);
      });
    keep(op.getOutput(), std::move(output), whole);
    if (op.getLse())
      keep(op.getLse(), std::move(lse), whole);
    return success();
  }

  /// Adds what the mask keeps, judged by some rows.
  void count(const AttentionRows &rows, ArrayRef<int64_t> sample) {
    std::vector<int64_t> kept(sample.size());
    forEachRow(rows, sample.size(), [&](AttentionRows &local, int64_t k) { kept[k] = local.countKept(sample[k]); });
    const Extents &e = rows.getExtents();
    double all =
        std::accumulate(kept.begin(), kept.end(), 0.0) * double(rows.getNumRows()) / std::max<size_t>(1, kept.size());
    work->pairs += double(rows.getNumRows()) * double(e.keys);
    work->kept += all;
    work->sampled |= int64_t(kept.size()) < rows.getNumRows();
    work->flops += all * 2 * double(rows.countProducts() * e.headDim + e.valueDim);
  }

  /// Remembers a result: as a tensor where further ops read it, as a sample where it is only returned.
  void keep(Value value, RowSample sample, bool whole) {
    Type type = cast<RankedTensorType>(value.getType()).getElementType();
    if (precision == Precision::Exact)
      type = Float64Type::get(value.getContext());
    for (double &element : sample.values)
      element = roundToType(element, type);
    if (!whole) {
      samples[value] = std::move(sample);
      return;
    }
    HostTensor tensor = HostTensor::create(sample.shape, type);
    for (auto [index, element] :
         llvm::enumerate(ArrayRef<double>(sample.values).take_front(work ? 0 : sample.values.size())))
      tensor.setDouble(index, element);
    addTensor(value, std::move(tensor));
    magnitudes[value] = std::move(sample.magnitudes);
  }

  LogicalResult addResult(Value value) {
    if (auto found = samples.find(value); found != samples.end()) {
      results.push_back(found->second);
      return success();
    }
    const HostTensor *tensor = environment.tensors.lookup(value);
    if (!tensor)
      return emitError(value.getLoc(), "the reference only returns tensors");
    RowSample sample;
    sample.shape = tensor->shape;
    sample.width = tensor->getRank() == 0 ? 1 : tensor->shape.back();
    sample.total = sample.width ? tensor->getNumElements() / sample.width : 0;
    sample.rows = pickRows(sample.total, -1, seed);
    sample.values.resize(tensor->getNumElements());
    tensor->read(0, tensor->getNumElements(), sample.values.data());
    sample.magnitudes = magnitudes.lookup(value);
    results.push_back(std::move(sample));
    return success();
  }

  Precision precision;
  int64_t maxRows;
  uint64_t seed;
  Work *work = nullptr;
  Environment environment;
  std::deque<HostTensor> storage;
  DenseMap<Value, RowSample> samples;
  reference::Magnitudes magnitudes; // of whole tensors
  llvm::SmallVector<RowSample> results;
};

} // namespace

LogicalResult evaluateRows(func::FuncOp func, ArrayRef<HostTensor> inputs, int64_t maxRows, uint64_t seed,
                           SmallVectorImpl<RowSample> &results, Precision precision) {
  Evaluator evaluator(precision, maxRows, seed);
  if (failed(evaluator.run(func, inputs)))
    return failure();
  llvm::append_range(results, evaluator.takeResults());
  return success();
}

FailureOr<Work> measureWork(func::FuncOp func, ArrayRef<HostTensor> inputs, int64_t maxRows, uint64_t seed) {
  Work work;
  Evaluator evaluator(Precision::Single, maxRows, seed);
  evaluator.countInto(work);
  if (failed(evaluator.run(func, inputs)))
    return failure();
  return work;
}

LogicalResult evaluate(func::FuncOp func, ArrayRef<HostTensor> inputs, SmallVectorImpl<HostTensor> &results,
                       Precision precision) {
  llvm::SmallVector<RowSample> samples;
  if (failed(evaluateRows(func, inputs, /*maxRows=*/-1, /*seed=*/0, samples, precision)))
    return failure();
  for (auto [sample, type] : llvm::zip_equal(samples, func.getResultTypes())) {
    Type elementType = cast<TensorType>(type).getElementType();
    if (precision == Precision::Exact && isa<FloatType>(elementType))
      elementType = Float64Type::get(func.getContext());
    HostTensor tensor = HostTensor::create(sample.shape, elementType);
    for (auto [index, value] : llvm::enumerate(sample.values))
      tensor.setDouble(index, value);
    results.push_back(std::move(tensor));
  }
  return success();
}

} // namespace attn
