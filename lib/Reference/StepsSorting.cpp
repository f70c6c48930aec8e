//===- StepsSorting.cpp - Tokens hashed and sorted, blocks mixed ------------===//
#include "Steps.h"
#include <algorithm>
#include <limits>

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateLshBuckets(LshBucketsOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), rotations = operands.numbers(op.getRotations());
  int64_t rounds = rotations.shape[1], half = rotations.shape[3];
  Array<int64_t> buckets({input.shape[0], input.shape[1] * rounds, input.shape[2]});
  for (int64_t b = 0; b < buckets.shape[0]; ++b)
    for (int64_t g = 0; g < buckets.shape[1]; ++g)
      for (int64_t n = 0; n < buckets.shape[2]; ++n) {
        std::vector<T> turned(2 * half);
        for (int64_t f = 0; f < half; ++f) {
          for (int64_t d = 0; d < input.shape[3]; ++d)
            turned[f] += input(b, g / rounds, n, d) * rotations(g / rounds, g % rounds, d, f);
          turned[half + f] = -turned[f];
        }
        T largest = -std::numeric_limits<T>::infinity();
        for (int64_t f = 0; f < 2 * half; ++f)
          if (turned[f] > largest) {
            largest = turned[f];
            buckets(b, g, n) = f;
          }
      }
  return {StepResult<T>::ofIntegers(std::move(buckets))};
}

template <typename T>
StepResults<T> evaluateSort(SortOp op, const Operands<T> &operands) {
  Array<int64_t> keys = operands.integers(op.getKeys());
  int64_t tokens = keys.shape[2], buckets = op.getBuckets();
  Array<int64_t> order(keys.shape), places(keys.shape), starts({keys.shape[0], keys.shape[1], buckets});
  for (int64_t b = 0; b < keys.shape[0]; ++b)
    for (int64_t g = 0; g < keys.shape[1]; ++g) {
      auto key = [&](int64_t n) { return std::clamp<int64_t>(keys(b, g, n), 0, buckets - 1); };
      std::vector<std::pair<int64_t, int64_t>> pairs;
      for (int64_t n = 0; n < tokens; ++n)
        pairs.push_back({key(n), n});
      std::sort(pairs.begin(), pairs.end());
      for (int64_t place = 0; place < tokens; ++place) {
        order(b, g, place) = pairs[place].second;
        places(b, g, pairs[place].second) = place;
      }
      for (int64_t bucket = 0; bucket < buckets; ++bucket)
        starts(b, g, bucket) = llvm::count_if(pairs, [&](auto pair) { return pair.first < bucket; });
    }
  StepResults<T> results;
  for (Array<int64_t> *result : {&order, &places, &starts})
    results.push_back(StepResult<T>::ofIntegers(std::move(*result)));
  return results;
}

template <typename T>
StepResults<T> evaluateLookBack(LookBackOp op, const Operands<T> &operands) {
  Array<int64_t> rows = operands.integers(op.getRows());
  int64_t chunk = op.getChunk(), ring = op.getGroups(), tokens = rows.shape[2];
  Array<int64_t> output({rows.shape[0], rows.shape[1], chunk + tokens}, -1);
  for (int64_t b = 0; b < rows.shape[0]; ++b)
    for (int64_t g = 0; g < rows.shape[1]; ++g) {
      int64_t before = g % ring ? g - 1 : g + ring - 1, chunks = (tokens + chunk - 1) / chunk;
      for (int64_t n = 0; n < tokens; ++n)
        output(b, g, chunk + n) = rows(b, g, n);
      for (int64_t n = std::max<int64_t>(chunks - 1, 0) * chunk, w = 0; n < tokens; ++n, ++w)
        output(b, g, w) = rows(b, before, n);
    }
  return {StepResult<T>::ofIntegers(std::move(output))};
}

/// x[i] less the logarithm of the sum of exp(x[0]) to exp(x[i]), or of all of them.
template <typename T>
static void normalize(std::vector<T> &x, bool soFar) {
  constexpr T none = -std::numeric_limits<T>::infinity();
  std::vector<T> logs(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    auto end = soFar ? x.begin() + i + 1 : x.end();
    T top = *std::max_element(x.begin(), end), sum = 0;
    for (auto at = x.begin(); at != end && top != none; ++at)
      sum += std::exp(*at - top);
    logs[i] = top == none ? 0 : top + std::log(sum);
  }
  for (size_t i = 0; i < x.size(); ++i)
    x[i] -= logs[i];
}

template <typename T>
StepResults<T> evaluateSinkhorn(SinkhornOp op, const Operands<T> &operands) {
  Array<T> x = operands.numbers(op.getLogits());
  int64_t size = x.shape[2];
  double largest = 1;
  for (T &logit : x.data) {
    int64_t at = &logit - x.data.data(), u = at / size % size, v = at % size;
    if (op.getCausal() && v >= u)
      logit = -std::numeric_limits<T>::infinity();
    if (std::isfinite(logit))
      largest = std::max<double>(largest, std::abs(logit));
  }
  std::vector<T> line(size);
  for (int64_t matrix = 0; size && matrix < int64_t(x.data.size()) / (size * size); ++matrix)
    for (int64_t k = 0; k < 2 * int64_t(op.getIterations()); ++k)
      for (int64_t number = 0; number < size; ++number) {
        bool column = k % 2;
        T *first = &x.data[matrix * size * size + number * (column ? 1 : size)];
        for (int64_t i = 0; i < size; ++i)
          line[i] = first[i * (column ? size : 1)];
        normalize(line, column && op.getCausal());
        for (int64_t i = 0; i < size; ++i)
          first[i * (column ? size : 1)] = line[i];
      }
  std::vector<double> sizes;
  for (T &logarithm : x.data) {
    logarithm = std::exp(logarithm);
    sizes.push_back(logarithm * (1 + largest)); // an error of a logarithm is one of its weight
  }
  return {StepResult<T>(std::move(x), std::move(sizes))};
}

template <typename T>
StepResults<T> evaluateMixBlocks(MixBlocksOp op, const Operands<T> &operands) {
  Array<T> weights = operands.numbers(op.getWeights()), input = operands.numbers(op.getInput());
  Array<double> weightSizes = operands.magnitudes(op.getWeights()), inputSizes = operands.magnitudes(op.getInput());
  int64_t block = op.getBlock(), mixed = weights.shape[2], tokens = input.shape[2], width = input.shape[3];
  Array<T> output({input.shape[0], input.shape[1], mixed * block, width});
  Array<double> sizes(output.shape);
  for (int64_t b = 0; b < input.shape[0]; ++b)
    for (int64_t h = 0; h < input.shape[1]; ++h)
      for (int64_t row = 0; row < mixed * block; ++row)
        for (int64_t v = 0, n = row % block; n < tokens; ++v, n += block)
          for (int64_t d = 0; d < width && weights(b, h, row / block, v) != 0; ++d) {
            output(b, h, row, d) += weights(b, h, row / block, v) * input(b, h, n, d);
            sizes(b, h, row, d) += weightSizes(b, h, row / block, v) * inputSizes(b, h, n, d);
          }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

template StepResults<double> evaluateLshBuckets(LshBucketsOp, const Operands<double> &);
template StepResults<float> evaluateLshBuckets(LshBucketsOp, const Operands<float> &);
template StepResults<double> evaluateSort(SortOp, const Operands<double> &);
template StepResults<float> evaluateSort(SortOp, const Operands<float> &);
template StepResults<double> evaluateLookBack(LookBackOp, const Operands<double> &);
template StepResults<float> evaluateLookBack(LookBackOp, const Operands<float> &);
template StepResults<double> evaluateSinkhorn(SinkhornOp, const Operands<double> &);
template StepResults<float> evaluateSinkhorn(SinkhornOp, const Operands<float> &);
template StepResults<double> evaluateMixBlocks(MixBlocksOp, const Operands<double> &);
template StepResults<float> evaluateMixBlocks(MixBlocksOp, const Operands<float> &);

} // namespace attn::reference
