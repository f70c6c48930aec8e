//===- StepsLinear.cpp - Features, and recurrences over tokens --------------===//
#include "Steps.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {

namespace {

/// A number, and the size of the terms that it is the sum of.
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

/// A feature of `x`; its size has the slope of the map.
template <typename T>
Cell<T> mapFeature(FeatureKind kind, Cell<T> x) {
  T e = std::exp(kind == FeatureKind::Sigmoid ? -x.value : x.value);
  switch (kind) {
  case FeatureKind::EluPlusOne:
    return x.value > 0 ? Cell<T>{x.value + 1, x.size + 1} : Cell<T>{e, double(e) * (1 + x.size)};
  case FeatureKind::Relu:
    return {x.value > 0 || std::isnan(x.value) ? x.value : T(0), x.size + 1};
  case FeatureKind::Exp:
    return {e, double(e) * (1 + x.size)};
  case FeatureKind::Abs:
    return {std::abs(x.value), x.size};
  case FeatureKind::Square:
    return {x.value * x.value, (1 + 2 * x.size) * std::abs(double(x.value)) + x.size * x.size};
  case FeatureKind::Sigmoid: {
    T y = 1 / (1 + e);
    return {y, double(y) * (1 + x.size)};
  }
  case FeatureKind::Trigonometric:
    break; // two numbers
  }
  return {};
}

} // namespace

template <typename T>
StepResults<T> evaluateFeatureMap(FeatureMapOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput());
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  bool trigonometric = op.getMap() == FeatureKind::Trigonometric;
  int64_t width = input.shape[3], rows = input.shape[0] * input.shape[1] * input.shape[2];
  int64_t outputWidth = trigonometric ? 2 * width : width;
  std::vector<Cell<T>> exponents(rows);
  auto add = [&](Value tensor, T sign) {
    if (!tensor)
      return;
    Array<T> given = operands.numbers(tensor);
    Array<double> sizes = operands.magnitudes(tensor);
    for (int64_t row = 0; row < rows; ++row) {
      exponents[row].value += sign * given.data[row];
      exponents[row].size += sizes.data[row];
    }
  };
  add(op.getLogs(), 1);
  add(op.getSubtract(), -1);
  Array<T> output({input.shape[0], input.shape[1], input.shape[2], outputWidth});
  std::vector<double> sizes(output.data.size());
  T plus = op.getPlus() ? op.getPlus()->convertToFloat() : 0;
  auto write = [&](int64_t at, Cell<T> y) {
    output.data[at] = y.value + plus;
    sizes[at] = y.size + std::abs(plus);
  };
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t f = 0; f < width; ++f) {
      Cell<T> x{input.data[row * width + f], inputSizes.data[row * width + f]}, e = exponents[row];
      if (!trigonometric) {
        write(row * width + f, mapFeature<T>(op.getMap(), {x.value + e.value, x.size + e.size}));
        continue;
      }
      T factor = std::exp(e.value);
      double size = double(factor) * (1 + e.size + x.size);
      write(row * outputWidth + f, {factor * std::cos(x.value), size});
      write(row * outputWidth + width + f, {factor * std::sin(x.value), size});
    }
  return {StepResult<T>(std::move(output), std::move(sizes))};
}

template <typename T>
StepResults<T> evaluateRandomFeatures(RandomFeaturesOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), projection = operands.numbers(op.getProjection());
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  Array<double> projectionSizes = operands.magnitudes(op.getProjection());
  bool byHead = projection.shape.size() == 3, scaled = bool(op.getKind());
  bool softmax = op.getKind() == RandomKind::Softmax, trigonometric = op.getKind() == RandomKind::Trigonometric;
  int64_t dim = input.shape[3], features = projection.shape[byHead ? 1 : 0], heads = input.shape[1];
  int64_t rows = input.shape[0] * heads * input.shape[2];
  SmallVector<int64_t> shape{input.shape[0], heads, input.shape[2], features};
  constexpr T none = -std::numeric_limits<T>::infinity();
  Array<T> logs(shape), maxima(ArrayRef(shape).take_front(3), none);
  std::vector<double> sizes(logs.data.size()), maximumSizes(rows);
  T scale = scaled ? 1 / std::sqrt(std::sqrt(T(dim))) : T(1);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = byHead ? row / input.shape[2] % heads / (heads / projection.shape[0]) * features : 0;
    T length = 0;
    for (int64_t d = 0; scaled && d < dim; ++d)
      length += input.data[row * dim + d] * input.data[row * dim + d] * scale * scale / 2;
    for (int64_t f = 0; f < features; ++f) {
      T product = 0;
      double size = 0;
      for (int64_t d = 0; d < dim; ++d) {
        product += projection.data[(from + f) * dim + d] * input.data[row * dim + d];
        size += projectionSizes.data[(from + f) * dim + d] * inputSizes.data[row * dim + d];
      }
      logs.data[row * features + f] = softmax ? product * scale - length : product * scale;
      sizes[row * features + f] = softmax ? size * scale + length : size * scale;
      maxima.data[row] = std::max(maxima.data[row], product * scale);
      maximumSizes[row] = std::max(maximumSizes[row], size * scale);
    }
    if (trigonometric) {
      maxima.data[row] = length;
      maximumSizes[row] = length;
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

  size_t find(int64_t b, int64_t h, int64_t n, int64_t f, ArrayRef<int64_t> key) const {
    if (numbers.shape.size() == 1)
      return h;
    size_t token = (b * key[1] + h) * key[2] + n;
    return numbers.shape.size() == 3 ? token : token * key[3] + f;
  }

  Array<T> numbers{{}};
  Array<double> sizes{{}};
};

/// Queries or keys of a recurrence, as features.
template <typename T>
struct Features {
  Features(Value tensor, std::optional<FeatureKind> map, const Operands<T> &operands) {
    Array<T> numbers = operands.numbers(tensor);
    Array<double> sizes = operands.magnitudes(tensor);
    shape.assign(numbers.shape.begin(), numbers.shape.end());
    for (auto [value, size] : llvm::zip_equal(numbers.data, sizes.data))
      cells.push_back(map ? mapFeature<T>(*map, {value, size}) : Cell<T>{value, size});
  }
  Cell<T> at(int64_t head, int64_t n, int64_t f) const { return cells[(head * shape[2] + n) * shape[3] + f]; }

  SmallVector<int64_t> shape;
  std::vector<Cell<T>> cells;
};

/// State columns of every key head: a token adds key times value, and queries ask for their product with the state.
template <typename T>
class Recurrence {
public:
  template <typename Op>
  Recurrence(Op op, const Operands<T> &operands)
      : query(op.getQuery(), op.getFeature(), operands), key(op.getKey(), op.getFeature(), operands),
        decays(op.getDecay(), operands), hasDecay(bool(op.getDecay())), causal(op.getCausal()) {}

  int64_t queryRows() const { return query.shape[0] * query.shape[1] * query.shape[2]; }

  /// `value(token, column)` counts tokens over batches and key heads, `read(token, column, product)` over query heads.
  template <typename ValueAt, typename Read>
  void run(int64_t columns, std::vector<Cell<T>> &state, ValueAt value, Read read) {
    int64_t heads = key.shape[1], tokens = key.shape[2], features = key.shape[3];
    int64_t group = heads ? query.shape[1] / heads : 0;
    for (int64_t head = 0; head < key.shape[0] * heads; ++head)
      for (int64_t c = 0; c < columns; ++c) {
        auto cell = [&](int64_t f) -> Cell<T> & { return state[(head * features + f) * columns + c]; };
        auto take = [&](int64_t n) {
          Cell<T> v = value(head * tokens + n, c);
          for (int64_t f = 0; f < features; ++f) {
            if (hasDecay) {
              size_t from = decays.find(head / heads, head % heads, n, f, key.shape);
              cell(f).decay(decays.numbers.data[from], decays.sizes.data[from]);
            }
            cell(f).add(key.at(head, n, f), v);
          }
        };
        for (int64_t n = 0; !causal && n < tokens; ++n)
          take(n);
        for (int64_t n = 0; n < tokens; ++n) {
          if (causal)
            take(n);
          for (int64_t from = head * group; from < (head + 1) * group; ++from) {
            Cell<T> product;
            for (int64_t f = 0; f < features; ++f)
              product.add(query.at(from, n, f), cell(f));
            read(from * tokens + n, c, product);
          }
        }
      }
  }

  /// The sums of keys, from `sums` on, and the products of queries with them.
  std::vector<Cell<T>> weigh(std::vector<Cell<T>> &sums) {
    std::vector<Cell<T>> weights(queryRows());
    run(
        1, sums, [](int64_t, int64_t) { return Cell<T>{1, 1}; },
        [&](int64_t token, int64_t, Cell<T> product) { weights[token] = product; });
    return weights;
  }

  Features<T> query, key;

private:
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
  ArrayRef<int64_t> key = recurrence.key.shape, query = recurrence.query.shape;
  std::vector<Cell<T>> sums = startState(op.getState(), key[0] * key[1] * key[3], operands);
  std::vector<Cell<T>> weights = recurrence.weigh(sums);
  return {toResult(query.take_front(3), weights), toResult({key[0], key[1], key[3]}, sums)};
}

template <typename T>
StepResults<T> evaluateLinearAttention(LinearAttentionOp op, const Operands<T> &operands) {
  Recurrence<T> recurrence(op, operands);
  ArrayRef<int64_t> key = recurrence.key.shape, query = recurrence.query.shape;
  Array<T> value = operands.numbers(op.getValue());
  Array<double> valueSizes = operands.magnitudes(op.getValue());
  int64_t columns = value.shape[3];
  bool divides = op.getDivide() || op.getNormalize();
  std::vector<Cell<T>> weights, keySums, output(recurrence.queryRows() * columns);
  if (op.getDivide())
    weights = startState(op.getDivide(), recurrence.queryRows(), operands);
  if (op.getNormalize()) {
    keySums = startState(op.getKeyState(), key[0] * key[1] * key[3], operands);
    weights = recurrence.weigh(keySums);
  }
  std::vector<Cell<T>> sums = startState(op.getState(), key[0] * key[1] * key[3] * columns, operands);
  auto valueAt = [&](int64_t token, int64_t c) {
    return Cell<T>{value.data[token * columns + c], valueSizes.data[token * columns + c]};
  };
  T scale = op.getScale() ? op.getScale()->convertToFloat() : 1;
  auto read = [&](int64_t token, int64_t c, Cell<T> product) {
    product = {product.value * scale, product.size * std::abs(double(scale))};
    if (divides) {
      Cell<T> weight = weights[token];
      T quotient = weight.value == 0 ? T(0) : product.value / weight.value;
      double over = std::abs(double(weight.value));
      product = {quotient, over == 0 ? 0 : (product.size + std::abs(double(quotient)) * weight.size) / over};
    }
    output[token * columns + c] = product;
  };
  recurrence.run(columns, sums, valueAt, read);
  StepResults<T> results{toResult({query[0], query[1], query[2], columns}, output),
                         toResult({key[0], key[1], key[3], columns}, sums)};
  if (op.getNormalize())
    results.push_back(toResult({key[0], key[1], key[3]}, keySums));
  return results;
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
