//===- StepsLinear.cpp - Features, and recurrences over tokens --------------===//
#include "Steps.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateFeatureMap(FeatureMapOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), output(input.shape);
  Array<double> inputSizes = operands.magnitudes(op.getInput()), sizes(input.shape);
  Array<T> subtract({int64_t(input.data.size())});
  Array<double> subtractSizes(subtract.shape);
  int64_t width = std::max<int64_t>(input.shape[3], 1);
  if (op.getSubtract()) {
    Array<T> given = operands.numbers(op.getSubtract());
    Array<double> givenSizes = operands.magnitudes(op.getSubtract());
    for (size_t i = 0; i < input.data.size(); ++i) {
      subtract.data[i] = given.data[i / width];
      subtractSizes.data[i] = givenSizes.data[i / width];
    }
  }
  T plus = op.getPlus() ? op.getPlus()->convertToFloat() : 0;
  for (size_t i = 0; i < input.data.size(); ++i) {
    T x = input.data[i] - subtract.data[i];
    double size = inputSizes.data[i] + subtractSizes.data[i];
    bool linear = op.getMap() == FeatureKind::Relu || (op.getMap() == FeatureKind::EluPlusOne && x > 0);
    T y = !linear ? std::exp(x) : op.getMap() == FeatureKind::Relu ? (x > 0 || std::isnan(x) ? x : T(0)) : x + 1;
    output.data[i] = y + plus;
    sizes.data[i] = std::abs(plus) + (linear ? size + 1 : double(y) * (1 + size));
  }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

template <typename T>
StepResults<T> evaluateRandomFeatures(RandomFeaturesOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), projection = operands.numbers(op.getProjection());
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  Array<double> projectionSizes = operands.magnitudes(op.getProjection());
  bool byHead = projection.shape.size() == 3, softmax = op.getSoftmax();
  int64_t dim = input.shape[3], features = projection.shape[byHead ? 1 : 0], heads = input.shape[1];
  int64_t rows = input.shape[0] * heads * input.shape[2];
  SmallVector<int64_t> shape{input.shape[0], heads, input.shape[2], features};
  constexpr T none = -std::numeric_limits<T>::infinity();
  Array<T> logs(shape), maxima(ArrayRef(shape).take_front(3), none);
  std::vector<double> sizes(logs.data.size()), maximumSizes(rows);
  T scale = softmax ? 1 / std::sqrt(std::sqrt(T(dim))) : T(1);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = byHead ? row / input.shape[2] % heads * features : 0;
    T length = 0;
    for (int64_t d = 0; softmax && d < dim; ++d)
      length += input.data[row * dim + d] * input.data[row * dim + d] * scale * scale / 2;
    for (int64_t f = 0; f < features; ++f) {
      T product = 0;
      double size = 0;
      for (int64_t d = 0; d < dim; ++d) {
        product += projection.data[(from + f) * dim + d] * input.data[row * dim + d];
        size += projectionSizes.data[(from + f) * dim + d] * inputSizes.data[row * dim + d];
      }
      logs.data[row * features + f] = product * scale - length;
      sizes[row * features + f] = size * scale + length;
      maxima.data[row] = std::max(maxima.data[row], product * scale);
      maximumSizes[row] = std::max(maximumSizes[row], size * scale);
    }
  }
  return {StepResult<T>(std::move(logs), std::move(sizes)), StepResult<T>(std::move(maxima), std::move(maximumSizes))};
}

template <typename T>
StepResults<T> evaluateRunningMax(RunningMaxOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), maxima(input.shape), decays(input.shape);
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  int64_t tokens = input.shape[2], heads = input.shape[0] * input.shape[1];
  constexpr T none = -std::numeric_limits<T>::infinity();
  Array<T> last(ArrayRef(input.shape).take_front(2), none);
  std::vector<double> sizes(input.data.size()), decaySizes(input.data.size()), lastSizes(heads);
  if (op.getState()) {
    last = operands.numbers(op.getState());
    lastSizes = operands.magnitudes(op.getState()).data;
    for (double &size : lastSizes)
      size = std::isfinite(size) ? size : 0; // -inf: nothing yet
  }
  for (int64_t head = 0; head < heads; ++head) {
    auto take = [&](int64_t n) {
      last.data[head] = std::max(last.data[head], input.data[head * tokens + n]);
      lastSizes[head] = std::max(lastSizes[head], inputSizes.data[head * tokens + n]);
    };
    for (int64_t n = 0; n < tokens && !op.getCausal(); ++n)
      take(n);
    for (int64_t n = 0; n < tokens; ++n) {
      T before = last.data[head];
      double sizeBefore = lastSizes[head];
      if (op.getCausal())
        take(n);
      int64_t at = head * tokens + n;
      maxima.data[at] = last.data[head];
      sizes[at] = lastSizes[head];
      decays.data[at] = before == none ? T(0) : before - last.data[head];
      decaySizes[at] = before == none ? 0 : sizeBefore + lastSizes[head];
    }
  }
  return {StepResult<T>(std::move(maxima), std::move(sizes)), StepResult<T>(std::move(decays), std::move(decaySizes)),
          StepResult<T>(std::move(last), std::move(lastSizes))};
}

namespace {

/// The factors of a recurrence, and the sizes of their logarithms.
template <typename T>
struct Decay {
  Decay(Value decay, const Operands<T> &operands) {
    if (!decay)
      return;
    numbers = operands.numbers(decay);
    sizes = operands.magnitudes(decay);
  }

  size_t find(int64_t b, int64_t h, int64_t n, int64_t f, const Array<T> &key) const {
    if (numbers.shape.size() == 1)
      return h;
    size_t token = (b * key.shape[1] + h) * key.shape[2] + n;
    return numbers.shape.size() == 3 ? token : token * key.shape[3] + f;
  }

  Array<T> numbers{{}};
  Array<double> sizes{{}};
};

/// One number of a state.
template <typename T>
struct Cell {
  T value = 0;
  double size = 0;

  /// Adds a product; an error of one factor counts as much as the other factor is large.
  void add(Cell x, Cell y) {
    value += x.value * y.value;
    double xSize = std::abs(double(x.value));
    size += x.size * std::abs(double(y.value)) + xSize * std::max(0.0, y.size - std::abs(double(y.value)));
  }

  void decay(T log, double logSize) {
    T factor = std::exp(std::min<T>(log, 0));
    size = factor * (size + std::abs(double(value)) * logSize);
    value *= factor;
  }
};

/// State columns of every head: a token adds key times value, and a query asks for its product with the state.
template <typename T>
class Recurrence {
public:
  template <typename Op>
  Recurrence(Op op, const Operands<T> &operands)
      : query(operands.numbers(op.getQuery())), key(operands.numbers(op.getKey())),
        querySizes(operands.magnitudes(op.getQuery())), keySizes(operands.magnitudes(op.getKey())),
        decays(op.getDecay(), operands), hasDecay(bool(op.getDecay())), causal(op.getCausal()) {}

  /// `value(token, column)` and `read(token, column, product)` count tokens over batches and heads.
  template <typename ValueAt, typename Read>
  void run(int64_t columns, std::vector<Cell<T>> &state, ValueAt value, Read read) {
    int64_t heads = key.shape[1], tokens = key.shape[2], features = key.shape[3];
    for (int64_t head = 0; head < key.shape[0] * heads; ++head)
      for (int64_t c = 0; c < columns; ++c) {
        auto cell = [&](int64_t f) -> Cell<T> & { return state[(head * features + f) * columns + c]; };
        auto take = [&](int64_t n) {
          Cell<T> v = value(head * tokens + n, c);
          for (int64_t f = 0; f < features; ++f) {
            size_t at = (head * tokens + n) * features + f;
            if (hasDecay) {
              size_t from = decays.find(head / heads, head % heads, n, f, key);
              cell(f).decay(decays.numbers.data[from], decays.sizes.data[from]);
            }
            cell(f).add({key.data[at], keySizes.data[at]}, v);
          }
        };
        for (int64_t n = 0; !causal && n < tokens; ++n)
          take(n);
        for (int64_t n = 0; n < tokens; ++n) {
          if (causal)
            take(n);
          Cell<T> product;
          for (int64_t f = 0; f < features; ++f) {
            size_t at = (head * tokens + n) * features + f;
            product.add({query.data[at], querySizes.data[at]}, cell(f));
          }
          read(head * tokens + n, c, product);
        }
      }
  }

  Array<T> query, key;

private:
  Array<double> querySizes, keySizes;
  Decay<T> decays;
  bool hasDecay, causal;
};

template <typename T>
std::vector<Cell<T>> startState(Value given, size_t count, const Operands<T> &operands) {
  std::vector<Cell<T>> state(count);
  if (!given)
    return state;
  Array<T> numbers = operands.numbers(given);
  Array<double> sizes = operands.magnitudes(given);
  for (size_t i = 0; i < count; ++i)
    state[i] = {numbers.data[i], sizes.data[i]};
  return state;
}

/// Cells as a result of `shape`.
template <typename T>
StepResult<T> toResult(ArrayRef<int64_t> shape, const std::vector<Cell<T>> &cells) {
  Array<T> numbers(shape);
  std::vector<double> sizes(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) {
    numbers.data[i] = cells[i].value;
    sizes[i] = cells[i].size;
  }
  return StepResult<T>(std::move(numbers), std::move(sizes));
}

} // namespace

template <typename T>
StepResults<T> evaluateLinearWeights(LinearWeightsOp op, const Operands<T> &operands) {
  Recurrence<T> recurrence(op, operands);
  ArrayRef<int64_t> shape = recurrence.key.shape;
  std::vector<Cell<T>> weights(shape[0] * shape[1] * shape[2]);
  std::vector<Cell<T>> sums = startState(op.getState(), shape[0] * shape[1] * shape[3], operands);
  recurrence.run(
      1, sums, [](int64_t, int64_t) { return Cell<T>{1, 1}; },
      [&](int64_t token, int64_t, Cell<T> product) { weights[token] = product; });
  return {toResult(shape.take_front(3), weights), toResult({shape[0], shape[1], shape[3]}, sums)};
}

template <typename T>
StepResults<T> evaluateLinearAttention(LinearAttentionOp op, const Operands<T> &operands) {
  Recurrence<T> recurrence(op, operands);
  ArrayRef<int64_t> shape = recurrence.key.shape;
  Array<T> value = operands.numbers(op.getValue());
  Array<double> valueSizes = operands.magnitudes(op.getValue());
  int64_t columns = value.shape[3];
  std::vector<Cell<T>> weights, output(value.data.size());
  if (op.getDivide())
    weights = startState(op.getDivide(), shape[0] * shape[1] * shape[2], operands);
  std::vector<Cell<T>> sums = startState(op.getState(), shape[0] * shape[1] * shape[3] * columns, operands);
  auto valueAt = [&](int64_t token, int64_t c) {
    return Cell<T>{value.data[token * columns + c], valueSizes.data[token * columns + c]};
  };
  T scale = op.getScale() ? op.getScale()->convertToFloat() : 1;
  auto read = [&](int64_t token, int64_t c, Cell<T> product) {
    product = {product.value * scale, product.size * std::abs(double(scale))};
    if (op.getDivide()) {
      Cell<T> weight = weights[token];
      T quotient = weight.value == 0 ? T(0) : product.value / weight.value;
      double over = std::abs(double(weight.value));
      product = {quotient, over == 0 ? 0 : (product.size + std::abs(double(quotient)) * weight.size) / over};
    }
    output[token * columns + c] = product;
  };
  recurrence.run(columns, sums, valueAt, read);
  return {toResult(value.shape, output), toResult({shape[0], shape[1], shape[3], columns}, sums)};
}

template StepResults<double> evaluateFeatureMap(FeatureMapOp, const Operands<double> &);
template StepResults<float> evaluateFeatureMap(FeatureMapOp, const Operands<float> &);
template StepResults<double> evaluateRandomFeatures(RandomFeaturesOp, const Operands<double> &);
template StepResults<float> evaluateRandomFeatures(RandomFeaturesOp, const Operands<float> &);
template StepResults<double> evaluateRunningMax(RunningMaxOp, const Operands<double> &);
template StepResults<float> evaluateRunningMax(RunningMaxOp, const Operands<float> &);
template StepResults<double> evaluateLinearWeights(LinearWeightsOp, const Operands<double> &);
template StepResults<float> evaluateLinearWeights(LinearWeightsOp, const Operands<float> &);
template StepResults<double> evaluateLinearAttention(LinearAttentionOp, const Operands<double> &);
template StepResults<float> evaluateLinearAttention(LinearAttentionOp, const Operands<float> &);

} // namespace attn::reference
