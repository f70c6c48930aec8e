//===- StepsBlocks.cpp - Blocks of keys by score ------------------------------===//
#include "Steps.h"
#include <algorithm>
#include <limits>

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateBlockMeans(BlockMeansOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput());
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  int64_t tokens = input.shape[2], block = op.getBlock(), blocks = (tokens + block - 1) / block;
  Array<T> output({input.shape[0], input.shape[1], blocks, input.shape[3]});
  Array<double> sizes(output.shape);
  for (int64_t b = 0; b < output.shape[0]; ++b)
    for (int64_t h = 0; h < output.shape[1]; ++h)
      for (int64_t n = 0; n < tokens; ++n) {
        int64_t u = n / block, count = std::min((u + 1) * block, tokens) - u * block;
        for (int64_t d = 0; d < output.shape[3]; ++d) {
          output(b, h, u, d) += input(b, h, n, d) / T(count);
          sizes(b, h, u, d) += inputSizes(b, h, n, d) / double(count);
        }
      }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

/// Floor of a / b, b above 0.
static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }

template <typename T>
StepResults<T> evaluateTopBlocks(TopBlocksOp op, const Operands<T> &operands) {
  Array<T> scores = operands.numbers(op.getScores());
  int64_t queries = operands.numbers(op.getQuery()).shape[2], keys = operands.numbers(op.getKey()).shape[2];
  int64_t blocks = scores.shape[3], block = op.getBlock();
  Array<int64_t> table(scores.shape);
  for (int64_t b = 0; b < scores.shape[0]; ++b)
    for (int64_t g = 0; g < scores.shape[1]; ++g)
      for (int64_t u = 0; u < scores.shape[2]; ++u) {
        int64_t firstRow = u * int64_t(op.getQueries()),
                lastRow = std::min(firstRow + int64_t(op.getQueries()), queries) - 1;
        int64_t own = floorDiv(firstRow + keys - queries, block), lastOwn = floorDiv(lastRow + keys - queries, block);
        std::vector<int64_t> others;
        int64_t taken = 0;
        for (int64_t v = 0; v < blocks; ++v) {
          if (op.getCausal() && v > lastOwn)
            continue;
          bool isLocal = op.getLocal() > 0 && v > own - int64_t(op.getLocal()) && v <= lastOwn;
          if (v < int64_t(op.getFirst()) || isLocal)
            taken += table(b, g, u, v) = 1;
          else if (scores(b, g, u, v) > -std::numeric_limits<T>::infinity()) // no NaN
            others.push_back(v);
        }
        std::sort(others.begin(), others.end(), [&](int64_t v, int64_t w) {
          T x = scores(b, g, u, v), y = scores(b, g, u, w);
          return x > y || (x == y && v < w);
        });
        int64_t wanted = std::max<int64_t>(int64_t(op.getCount()) - taken, 0);
        for (int64_t v : ArrayRef(others).take_front(wanted))
          table(b, g, u, v) = 1;
      }
  return {StepResult<T>::ofIntegers(std::move(table))};
}

template StepResults<double> evaluateBlockMeans(BlockMeansOp, const Operands<double> &);
template StepResults<float> evaluateBlockMeans(BlockMeansOp, const Operands<float> &);
template StepResults<double> evaluateTopBlocks(TopBlocksOp, const Operands<double> &);
template StepResults<float> evaluateTopBlocks(TopBlocksOp, const Operands<float> &);

} // namespace attn::reference
