//===- StepsRouting.cpp - Rows scored, and the best of them -----------------===//
#include "Steps.h"
#include <algorithm>
#include <limits>

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateNormalizeRows(NormalizeRowsOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), output(input.shape);
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  std::vector<double> sizes(output.data.size());
  int64_t width = input.shape[3];
  for (size_t row = 0; width && row < input.data.size() / width; ++row) {
    const T *x = &input.data[row * width];
    T mean = 0, squares = 0;
    double largest = 0; // the errors of all elements, through the mean
    for (int64_t d = 0; d < width; ++d) {
      mean += op.getCentered() ? x[d] / width : 0;
      largest = std::max(largest, inputSizes.data[row * width + d]);
    }
    for (int64_t d = 0; d < width; ++d)
      squares += (x[d] - mean) * (x[d] - mean);
    T root = std::sqrt(squares / width + T(op.getEps().convertToDouble()));
    for (int64_t d = 0; d < width && root != 0; ++d) {
      output.data[row * width + d] = (x[d] - mean) / root;
      sizes[row * width + d] = largest / root;
    }
  }
  return {StepResult<T>(std::move(output), std::move(sizes))};
}

template <typename T>
StepResults<T> evaluateRowScores(RowScoresOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), centroids = operands.numbers(op.getCentroids());
  Array<double> inputSizes = operands.magnitudes(op.getInput()), centroidSizes = operands.magnitudes(op.getCentroids());
  int64_t count = centroids.shape[1];
  Array<T> scores({input.shape[0], input.shape[1] * count, input.shape[2]});
  Array<double> sizes(scores.shape);
  for (int64_t b = 0; b < scores.shape[0]; ++b)
    for (int64_t g = 0; g < scores.shape[1]; ++g)
      for (int64_t n = 0; n < scores.shape[2]; ++n)
        for (int64_t d = 0, h = g / count, c = g % count; d < input.shape[3]; ++d) {
          scores(b, g, n) += input(b, h, n, d) * centroids(h, c, d);
          sizes(b, g, n) += inputSizes(b, h, n, d) * centroidSizes(h, c, d);
        }
  return {StepResult<T>(std::move(scores), std::move(sizes.data))};
}

template <typename T>
StepResults<T> evaluateTopRows(TopRowsOp op, const Operands<T> &operands) {
  Array<T> scores = operands.numbers(op.getScores());
  int64_t count = op.getCount(), tokens = scores.shape[2], taken = std::min(count, tokens);
  Array<int64_t> rows({scores.shape[0], scores.shape[1], count}, -1);
  for (int64_t b = 0; b < scores.shape[0]; ++b)
    for (int64_t g = 0; g < scores.shape[1]; ++g) {
      auto score = [&](int64_t n) {
        T x = scores(b, g, n);
        return std::isnan(x) ? -std::numeric_limits<T>::infinity() : x;
      };
      std::vector<int64_t> order(tokens);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](int64_t m, int64_t n) { return score(m) > score(n) || (score(m) == score(n) && m < n); });
      std::sort(order.begin(), order.begin() + taken);
      for (int64_t w = 0; w < taken; ++w)
        rows(b, g, w) = order[w];
    }
  return {StepResult<T>::ofIntegers(std::move(rows))};
}

template StepResults<double> evaluateNormalizeRows(NormalizeRowsOp, const Operands<double> &);
template StepResults<float> evaluateNormalizeRows(NormalizeRowsOp, const Operands<float> &);
template StepResults<double> evaluateRowScores(RowScoresOp, const Operands<double> &);
template StepResults<float> evaluateRowScores(RowScoresOp, const Operands<float> &);
template StepResults<double> evaluateTopRows(TopRowsOp, const Operands<double> &);
template StepResults<float> evaluateTopRows(TopRowsOp, const Operands<float> &);

} // namespace attn::reference
