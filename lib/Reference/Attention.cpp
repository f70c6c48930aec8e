//===- Attention.cpp - One attention op, row by row -------------------------===//
#include "Attention.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {
namespace {

constexpr unsigned kMaskKey = 3, kScoreValue = 0, kScoreKey = 4; // block arguments (b, h, i, j) and (s, b, h, i, j)

/// A kept key and its score, which becomes its weight.
template <typename T>
struct Kept {
  int64_t key;
  T score;
};

/// Scores to weights exp(s - max); answers the maximum and the sum of the weights.
template <typename T>
std::pair<T, T> weigh(std::vector<Kept<T>> &kept) {
  T maximum = -std::numeric_limits<T>::infinity(), sum = 0;
  for (const Kept<T> &entry : kept)
    maximum = std::max(maximum, entry.score);
  for (Kept<T> &entry : kept) {
    entry.score = std::exp(entry.score - maximum);
    sum += entry.score;
  }
  return {maximum, sum};
}

LogicalResult checkShape(AttentionOp op, StringRef name, const HostTensor *tensor, ArrayRef<int64_t> shape) {
  if (tensor && llvm::equal(tensor->shape, shape))
    return success();
  InFlightDiagnostic diagnostic = op.emitOpError() << name << " should have shape [";
  llvm::interleaveComma(shape, diagnostic);
  diagnostic << "] beside the other operands, but has [";
  if (tensor)
    llvm::interleaveComma(tensor->shape, diagnostic);
  return diagnostic << "]";
}

} // namespace

FailureOr<Extents> getExtents(AttentionOp op, const Environment &environment) {
  const HostTensor *query = environment.tensors.lookup(op.getQuery()), *key = environment.tensors.lookup(op.getKey()),
                   *value = environment.tensors.lookup(op.getValue());
  if (!query || !key || !value || query->getRank() != 4 || key->getRank() != 4 || value->getRank() != 4)
    return op.emitOpError("needs query, key and value of rank 4");
  Extents e{query->shape[0], query->shape[1], key->shape[1],  query->shape[2],
            key->shape[2],   query->shape[3], value->shape[3]};
  if (failed(checkShape(op, "key", key, {e.batch, e.keyHeads, e.keys, e.headDim})) ||
      failed(checkShape(op, "value", value, {e.batch, e.keyHeads, e.keys, e.valueDim})))
    return failure();
  if (e.queryHeads != 0 && (e.keyHeads == 0 || e.queryHeads % e.keyHeads != 0))
    return op.emitOpError() << e.queryHeads << " query heads are not a multiple of " << e.keyHeads << " key heads";
  return e;
}

FailureOr<AttentionRows> AttentionRows::create(AttentionOp op, const Environment &environment, Precision precision) {
  AttentionRows rows;
  FailureOr<Extents> extents = reference::getExtents(op, environment);
  if (failed(extents))
    return failure();
  rows.extents = *extents;
  rows.precision = precision;
  rows.query = environment.tensors.lookup(op.getQuery());
  rows.key = environment.tensors.lookup(op.getKey());
  rows.value = environment.tensors.lookup(op.getValue());
  rows.scale = op.getScaleAttr() ? op.getScaleAttr().getValueAsDouble() : 1 / std::sqrt(double(extents->headDim));
  rows.offset = op.getAlign() == Align::BottomRight ? extents->keys - extents->queries : 0;
  auto translate = [&](Region &region, Rounding rounding, ArrayRef<unsigned> varying, std::optional<Program> &program) {
    if (region.empty())
      return success();
    FailureOr<Program> compiled = Program::compile(region.front(), environment, *extents, rounding, varying);
    if (succeeded(compiled))
      program = std::move(*compiled);
    return LogicalResult(compiled);
  };
  Rounding rounding = precision == Precision::Exact ? Rounding::Exact : Rounding::Typed;
  if (failed(translate(op.getMask(), Rounding::Typed, {kMaskKey}, rows.mask)) ||
      failed(translate(op.getScore(), rounding, {kScoreValue, kScoreKey}, rows.score)))
    return failure();
  return rows;
}

/// Tells the programs which row comes next.
AttentionRows::Position AttentionRows::begin(int64_t row) {
  Position at{row / (extents.queryHeads * extents.queries), row / extents.queries % extents.queryHeads,
              row % extents.queries + offset};
  auto set = [&](Program &program, unsigned first) {
    program.setIndex(first, at.b);
    program.setIndex(first + 1, at.h);
    program.setIndex(first + 2, at.i);
    program.runOnce();
  };
  if (mask)
    set(*mask, 0);
  if (score)
    set(*score, 1);
  return at;
}

bool AttentionRows::keeps(int64_t j) {
  if (!mask)
    return true;
  mask->setIndex(kMaskKey, j);
  return mask->runVarying().i != 0;
}

int64_t AttentionRows::countKept(int64_t row) {
  begin(row);
  int64_t count = 0;
  for (int64_t j = 0; j < extents.keys; ++j)
    count += keeps(j);
  return count;
}

/// The score of one pair: scaled product, then the score region. `keyRow` is the row of `key`.
template <typename T>
T AttentionRows::getScore(ArrayRef<T> queryRow, int64_t keyRow, int64_t j) {
  llvm::SmallVector<T, 576> row(extents.headDim);
  key->read(keyRow * extents.headDim, extents.headDim, row.data());
  T product = 0;
  for (int64_t d = 0; d < extents.headDim; ++d)
    product += queryRow[d] * row[d];
  T s = product * static_cast<T>(scale);
  if (score) {
    score->setFloat(kScoreValue, s);
    score->setIndex(kScoreKey, j);
    s = static_cast<T>(score->runVarying().f);
  }
  // A score is an f32 number, also where it is computed in double: beyond the range it is infinite, and +inf counts as
  // the largest finite number, -inf as masked.
  constexpr T most = std::numeric_limits<float>::max();
  return s > most ? most : s < -most ? -std::numeric_limits<T>::infinity() : s;
}

template <typename T>
void AttentionRows::evaluateIn(int64_t row, double *output, double &lse) {
  Position at = begin(row);
  int64_t firstKey = (at.b * extents.keyHeads + at.h / (extents.queryHeads / extents.keyHeads)) * extents.keys;
  std::vector<T> queryRow(extents.headDim), valueRow(extents.valueDim), sum(extents.valueDim);
  query->read(row * extents.headDim, extents.headDim, queryRow.data());
  std::vector<Kept<T>> kept;
  for (int64_t j = 0; j < extents.keys; ++j) {
    if (!keeps(j))
      continue;
    T s = getScore<T>(queryRow, firstKey + j, j);
    if (s != -std::numeric_limits<T>::infinity())
      kept.push_back({j, s});
  }
  auto [maximum, total] = weigh(kept);
  for (const Kept<T> &entry : kept) {
    value->read((firstKey + entry.key) * extents.valueDim, extents.valueDim, valueRow.data());
    for (int64_t d = 0; d < extents.valueDim; ++d)
      sum[d] += entry.score * valueRow[d];
  }
  for (int64_t d = 0; d < extents.valueDim; ++d)
    output[d] = kept.empty() ? 0 : sum[d] / total;
  lse = kept.empty() ? -std::numeric_limits<double>::infinity() : double(maximum + std::log(total));
}

template void AttentionRows::evaluateIn<double>(int64_t, double *, double &);
template void AttentionRows::evaluateIn<float>(int64_t, double *, double &);

} // namespace attn::reference
