//===- StepsScatter.cpp - Rows of groups written back to tokens -------------===//
#include "Steps.h"

using namespace mlir;

namespace attn::reference {

template <typename T>
StepResults<T> evaluateInvertRows(InvertRowsOp op, const Operands<T> &operands) {
  Array<int64_t> rows = operands.integers(op.getRows());
  int64_t tokens = operands.numbers(op.getLike().front()).shape[2];
  Array<int64_t> places({rows.shape[0], rows.shape[1], tokens}, -1);
  for (int64_t b = 0; b < rows.shape[0]; ++b)
    for (int64_t g = 0; g < rows.shape[1]; ++g)
      for (int64_t w = 0; w < rows.shape[2]; ++w)
        if (int64_t row = rows(b, g, w); row >= 0 && row < tokens)
          places(b, g, row) = w;
  return {StepResult<T>::ofIntegers(std::move(places))};
}

template <typename T>
StepResults<T> evaluateScatterMean(ScatterMeanOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput());
  Array<int64_t> places = operands.integers(op.getPlaces());
  Array<double> inputSizes = operands.magnitudes(op.getInput());
  int64_t groups = op.getGroups(), width = input.shape[3];
  Array<T> output({input.shape[0], input.shape[1] / groups, places.shape[2], width});
  Array<double> sizes(output.shape);
  for (int64_t b = 0; b < output.shape[0]; ++b)
    for (int64_t h = 0; h < output.shape[1]; ++h)
      for (int64_t n = 0; n < output.shape[2]; ++n) {
        auto isThere = [&](int64_t g) { return places(b, g, n) >= 0 && places(b, g, n) < input.shape[2]; };
        int64_t count = 0;
        for (int64_t g = h * groups; g < (h + 1) * groups; ++g)
          count += isThere(g);
        T divisor = count + T(op.getEps().convertToDouble());
        for (int64_t g = h * groups; g < (h + 1) * groups; ++g)
          for (int64_t d = 0; d < width && isThere(g); ++d) {
            output(b, h, n, d) += input(b, g, places(b, g, n), d) / divisor;
            sizes(b, h, n, d) += inputSizes(b, g, places(b, g, n), d) / divisor;
          }
      }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

template <typename T>
StepResults<T> evaluateScatterRows(ScatterRowsOp op, const Operands<T> &operands) {
  Array<T> input = operands.numbers(op.getInput()), output = operands.numbers(op.getBase());
  Array<int64_t> places = operands.integers(op.getPlaces());
  Array<double> inputSizes = operands.magnitudes(op.getInput()), sizes = operands.magnitudes(op.getBase());
  int64_t heads = output.shape[1];
  for (int64_t b = 0; b < places.shape[0]; ++b)
    for (int64_t g = 0; g < places.shape[1]; ++g)
      for (int64_t n = 0, h = g / (places.shape[1] / heads); n < places.shape[2]; ++n)
        for (int64_t d = 0, w = places(b, g, n); w >= 0 && w < input.shape[2] && d < input.shape[3]; ++d) {
          output(b, h, n, d) = input(b, g, w, d);
          sizes(b, h, n, d) = inputSizes(b, g, w, d);
        }
  return {StepResult<T>(std::move(output), std::move(sizes.data))};
}

template StepResults<double> evaluateInvertRows(InvertRowsOp, const Operands<double> &);
template StepResults<float> evaluateInvertRows(InvertRowsOp, const Operands<float> &);
template StepResults<double> evaluateScatterMean(ScatterMeanOp, const Operands<double> &);
template StepResults<float> evaluateScatterMean(ScatterMeanOp, const Operands<float> &);
template StepResults<double> evaluateScatterRows(ScatterRowsOp, const Operands<double> &);
template StepResults<float> evaluateScatterRows(ScatterRowsOp, const Operands<float> &);

} // namespace attn::reference
