//===- Check.cpp - Our result against the exact one -------------------------===//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Reference.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn {
namespace {

/// Infinite where one side is not finite and the other is not the same.
double getError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double error = std::abs(got - expected);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

/// What f32 makes of an element, or has to expect there; an implementation that overflows is no measure.
double getPlainError(const RowSample &plain, size_t index, double expected) {
  double error = getError(plain.values[index], expected), spread = plain.spread.empty() ? 0 : plain.spread[index];
  return std::max(std::isfinite(error) ? error : 0, std::isfinite(spread) ? spread : 0);
}

} // namespace

Comparison compare(const RowSample &exact, const RowSample &plain, const HostTensor &actual) {
  Comparison result;
  std::vector<double> row(exact.width);
  for (auto [k, number] : llvm::enumerate(exact.rows)) {
    actual.read(number * exact.width, exact.width, row.data());
    for (int64_t d = 0; d < exact.width; ++d) {
      double expected = exact.values[k * exact.width + d], error = getError(row[d], expected);
      result.plainError = std::max(result.plainError, getPlainError(plain, k * exact.width + d, expected));
      if (result.worst >= 0 && error <= result.maxError)
        continue;
      result.maxError = error;
      result.worst = number * exact.width + d;
      result.got = row[d];
      result.expected = expected;
    }
  }
  result.bound = 2 * result.plainError;
  return result;
}

int64_t chooseRows(func::FuncOp func, ArrayRef<HostTensor> inputs, double seconds) {
  // Pairs a second that the loops manage in both precisions, by head_dim; measured generously.
  double pairs = 1;
  func.walk([&](AttentionOp op) {
    auto argument = dyn_cast<BlockArgument>(op.getKey());
    if (!argument || argument.getArgNumber() >= inputs.size() || inputs[argument.getArgNumber()].getRank() != 4)
      return;
    const HostTensor &key = inputs[argument.getArgNumber()];
    pairs += double(key.shape[2]) * (80 + 6 * double(key.shape[3])); // nanoseconds a row
  });
  return std::max<int64_t>(16, int64_t(seconds * 1e9 / pairs));
}

} // namespace attn
