//===- StepsRows.cpp - Rows moved, parts merged -----------------------------===//
#include "Steps.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateGatherRows(GatherRowsOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput());
  Array<int64_t> rows = operands.integers(op.getRows());
  int64_t width = input.shape.size() == 4 ? input.shape[3] : 1, heads = input.shape[1], tokens = input.shape[2];
  int64_t rank = rows.shape.size(), groups = rank == 3 ? rows.shape[1] : heads, count = rows.shape.back();
  SmallVector<int64_t> shape{input.shape[0], groups, count};
  if (input.shape.size() == 4)
    shape.push_back(width);
  Array<T> output(shape);
  Array<double> inputSizes = operands.magnitudes(op.getInput()), sizes(shape);
  for (int64_t b = 0; b < shape[0]; ++b)
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t w = 0; w < count; ++w) {
        int64_t row = rank == 3 ? rows(b, g, w) : rank == 2 ? rows(b, w) : rows(w), h = g / (groups / heads);
        for (int64_t d = 0; d < width && row >= 0 && row < tokens; ++d) {
          int64_t to = ((b * groups + g) * count + w) * width + d, from = ((b * heads + h) * tokens + row) * width + d;
          output.data[to] = input.data[from];
          sizes.data[to] = inputSizes.data[from];
        }
      }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

template <typename T>
StepResults<T> evaluateMerge(MergeOp op, const Operands<T> &operands) {
  Array<T> parts = operands.numbers(op.getOutputs()), lses = operands.numbers(op.getLses());
  int64_t groups = op.getGroups(), batches = parts.shape[0], heads = parts.shape[1] / groups, rows = parts.shape[2];
  int64_t width = parts.shape[3];
  Array<double> partSizes = operands.magnitudes(op.getOutputs()), lsePartSizes = operands.magnitudes(op.getLses());
  constexpr T none = -std::numeric_limits<T>::infinity();
  Array<T> output({batches, heads, rows, width}), lse({batches, heads, rows}, none);
  std::vector<double> sizes(output.data.size()), lseSizes(lse.data.size());
  for (int64_t row = 0; row < batches * heads * rows; ++row) {
    int64_t b = row / (heads * rows), h = row / rows % heads, n = row % rows;
    T top = none, sum = 0;
    auto partLse = [&](int64_t r) {
      return std::min<T>(lses(b, h * groups + r, n), std::numeric_limits<float>::max());
    };
    for (int64_t r = 0; r < groups; ++r)
      top = std::max(top, partLse(r));
    if (top == none)
      continue;
    for (int64_t r = 0; r < groups; ++r)
      sum += std::exp(partLse(r) - top);
    lse(b, h, n) = top + std::log(sum);
    auto shareOf = [&](int64_t r) { return std::exp(partLse(r) - top) / sum; };
    auto lseSize = [&](int64_t r) { return shareOf(r) > 0 ? 1 + lsePartSizes(b, h * groups + r, n) : 0; };
    for (int64_t r = 0; r < groups; ++r)
      lseSizes[row] += shareOf(r) * lseSize(r);
    for (int64_t r = 0; r < groups; ++r)
      for (int64_t d = 0; d < width && partLse(r) != none; ++d) {
        T share = shareOf(r), value = parts(b, h * groups + r, n, d);
        output(b, h, n, d) += share * value;
        sizes[row * width + d] += share * (partSizes(b, h * groups + r, n, d) + std::abs(value) * lseSize(r));
      }
  }
  StepResults<T> results{StepResult<T>(std::move(output), std::move(sizes))};
  if (op.getLse())
    results.push_back(StepResult<T>(std::move(lse), std::move(lseSizes)));
  return results;
}

template StepResults<double> evaluateGatherRows(GatherRowsOp, const Operands<double> &);
template StepResults<float> evaluateGatherRows(GatherRowsOp, const Operands<float> &);
template StepResults<double> evaluateMerge(MergeOp, const Operands<double> &);
template StepResults<float> evaluateMerge(MergeOp, const Operands<float> &);

} // namespace attn::reference
