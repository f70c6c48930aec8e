//===- Check.cpp - Our result against the exact one -------------------------===//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Reference.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn {
namespace {

constexpr double kSmallest = Comparison::kSmallest;

/// Infinite where one side is not finite and the other is not the same.
double getError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double error = std::abs(got - expected);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

/// The largest error of straight f32 by magnitude; an implementation that overflows is no measure.
double getPlainError(const RowSample &exact, const RowSample &plain) {
  double largest = 0;
  for (size_t index = 0; index < exact.values.size(); ++index)
    if (double error = getError(plain.values[index], exact.values[index]); error >= kSmallest && std::isfinite(error))
      largest = std::max(largest, error / (exact.getMagnitude(index) + kSmallest));
  return largest;
}

} // namespace

double RowSample::getMagnitude(size_t index) const {
  double size = std::abs(values[index]);
  if (!magnitudes.empty() && std::isfinite(magnitudes[index]))
    size = std::max(std::isfinite(size) ? size : 0, magnitudes[index]);
  return std::isfinite(size) ? size : 0;
}

Comparison compare(const RowSample &exact, const RowSample &plain, const HostTensor &actual) {
  Comparison result;
  double relative = getPlainError(exact, plain), worst = -1;
  result.allowed = std::max(2 * relative, Comparison::kFloor);
  std::vector<double> row(exact.width);
  for (auto [k, number] : llvm::enumerate(exact.rows)) {
    actual.read(number * exact.width, exact.width, row.data());
    for (int64_t d = 0; d < exact.width; ++d) {
      size_t index = k * exact.width + d;
      double expected = exact.values[index], error = getError(row[d], expected), magnitude = exact.getMagnitude(index);
      double bound = result.allowed * magnitude + kSmallest;
      if (error / bound <= worst)
        continue;
      worst = error / bound;
      result.maxError = error;
      result.plainError = relative * magnitude;
      result.bound = bound;
      result.worst = number * exact.width + d;
      result.got = row[d];
      result.expected = expected;
    }
  }
  return result;
}

int64_t chooseRows(func::FuncOp func, ArrayRef<HostTensor> inputs, double seconds) {
  // Pairs a second that the loops manage in both precisions, by head_dim; measured generously.
  double pairs = 1;
  func.walk([&](AttentionOp op) {
    auto argument = dyn_cast<BlockArgument>(op.getKeyRows());
    if (!argument || argument.getArgNumber() >= inputs.size() || inputs[argument.getArgNumber()].getRank() != 4)
      return;
    const HostTensor &key = inputs[argument.getArgNumber()];
    pairs += double(key.shape[2]) * (80 + 6 * double(key.shape[3])); // nanoseconds a row
  });
  return std::max<int64_t>(16, int64_t(seconds * 1e9 / pairs));
}

} // namespace attn
