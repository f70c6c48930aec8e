//===- Attention.cpp - One attention op, row by row -------------------------===//
#include "Attention.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {
namespace {

constexpr unsigned kMaskKey = 3, kScoreValue = 0, kScoreKey = 4; // block arguments (b, h, i, j) and (s, b, h, i, j)

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

/// Heads and queries of scores that stand in place of products.
LogicalResult readScoreExtents(AttentionOp op, const HostTensor *scores, Extents &e) {
  if (!scores || (scores->getRank() != 3 && scores->getRank() != 4))
    return op.emitOpError("needs scores of rank 3 or 4");
  ArrayRef<int64_t> shape = scores->shape;
  e.headDim = 0;
  e.queryHeads = shape[shape.size() - 3];
  e.queries = shape[shape.size() - 2];
  SmallVector<int64_t> wanted{e.queryHeads, e.queries, e.keys};
  if (scores->getRank() == 4)
    wanted.insert(wanted.begin(), e.batch);
  return checkShape(op, "scores", scores, wanted);
}

/// A list of rows, [batch, groups, rows], [batch, rows] or [rows], in place of `heads` and `rows` of what it numbers.
LogicalResult readListExtents(AttentionOp op, StringRef name, const HostTensor *list, int64_t batch, int64_t &heads,
                              int64_t &rows) {
  if (!list || list->getRank() < 1 || list->getRank() > 3)
    return op.emitOpError() << "needs " << name << " of rank 1 to 3";
  ArrayRef<int64_t> shape = list->shape;
  rows = shape.back();
  if (shape.size() < 3)
    return shape.size() == 1 ? success() : checkShape(op, name, list, {batch, rows});
  if (shape[0] != batch || (heads == 0 ? shape[1] != 0 : shape[1] % heads != 0))
    return checkShape(op, name, list, {batch, heads, rows});
  heads = shape[1];
  return success();
}

/// Entry `w` of the list of a group.
int64_t getEntry(const HostTensor &list, int64_t b, int64_t g, int64_t w) {
  ArrayRef<int64_t> shape = list.shape;
  return list.getInt(shape.size() == 1 ? w : shape.size() == 2 ? b * shape[1] + w : (b * shape[1] + g) * shape[2] + w);
}

} // namespace

/// Of what the operands are, without lists of rows.
static FailureOr<Extents> getTensorExtents(AttentionOp op, const Environment &environment) {
  const HostTensor *query = environment.tensors.lookup(op.getQuery()), *key = environment.tensors.lookup(op.getKey()),
                   *value = environment.tensors.lookup(op.getValue());
  if (op.getScores())
    query = key = value;
  if (!query || !key || !value || query->getRank() != 4 || key->getRank() != 4 || value->getRank() != 4)
    return op.emitOpError("needs query, key and value of rank 4");
  Extents e{query->shape[0], query->shape[1], key->shape[1],  query->shape[2],
            key->shape[2],   query->shape[3], value->shape[3]};
  if (op.getScores() && failed(readScoreExtents(op, environment.tensors.lookup(op.getScores()), e)))
    return failure();
  if ((key != value && failed(checkShape(op, "key", key, {e.batch, e.keyHeads, e.keys, e.headDim}))) ||
      failed(checkShape(op, "value", value, {e.batch, e.keyHeads, e.keys, e.valueDim})))
    return failure();
  return e;
}

FailureOr<Extents> getExtents(AttentionOp op, const Environment &environment) {
  FailureOr<Extents> tensors = getTensorExtents(op, environment);
  if (failed(tensors))
    return failure();
  Extents e = *tensors;
  if ((op.getQueryIndices() &&
       failed(readListExtents(op, "query_rows", environment.tensors.lookup(op.getQueryIndices()), e.batch, e.queryHeads,
                              e.queries))) ||
      (op.getKeyIndices() && failed(readListExtents(op, "key_rows", environment.tensors.lookup(op.getKeyIndices()),
                                                    e.batch, e.keyHeads, e.keys))))
    return failure();
  if (e.queryHeads != 0 && (e.keyHeads == 0 || e.queryHeads % e.keyHeads != 0))
    return op.emitOpError() << e.queryHeads << " query heads are not a multiple of " << e.keyHeads << " key heads";
  const HostTensor *output = op.getJoinedOutput() ? environment.tensors.lookup(op.getJoinedOutput()) : nullptr,
                   *lse = op.getJoinedLse() ? environment.tensors.lookup(op.getJoinedLse()) : nullptr;
  if (op.getJoinedOutput() &&
      (failed(checkShape(op, "joined output", output, {e.batch, e.queryHeads, e.queries, e.valueDim})) ||
       failed(checkShape(op, "joined lse", lse, {e.batch, e.queryHeads, e.queries}))))
    return failure();
  if (op.getSink() && failed(checkShape(op, "sink", environment.tensors.lookup(op.getSink()), {e.queryHeads})))
    return failure();
  const HostTensor *table = op.getTable() ? environment.tensors.lookup(op.getTable()) : nullptr;
  int64_t distances = table && table->getRank() == 3 ? table->shape[1] : 1;
  if (op.getTable() && failed(checkShape(op, "table", table, {e.queryHeads, distances, e.headDim})))
    return failure();
  if (distances == 0)
    return op.emitOpError("table of relative has no distance");
  if (op.getBias() &&
      failed(checkShape(op, "bias", environment.tensors.lookup(op.getBias()), {e.queryHeads, e.headDim})))
    return failure();
  return e;
}

FailureOr<AttentionRows> AttentionRows::create(AttentionOp op, const Environment &environment, Precision precision) {
  AttentionRows rows;
  FailureOr<Extents> extents = reference::getExtents(op, environment);
  if (failed(extents))
    return failure();
  rows.extents = *extents;
  rows.tokens = *getTensorExtents(op, environment);
  if (op.getQueryIndices())
    rows.queryIndices = environment.tensors.lookup(op.getQueryIndices());
  if (op.getKeyIndices())
    rows.keyIndices = environment.tensors.lookup(op.getKeyIndices());
  rows.precision = precision;
  if (op.getScores())
    rows.scores = environment.tensors.lookup(op.getScores());
  else
    rows.query = environment.tensors.lookup(op.getQuery()), rows.key = environment.tensors.lookup(op.getKey());
  rows.value = environment.tensors.lookup(op.getValue());
  if (op.getJoinedOutput()) {
    rows.joinedOutput = environment.tensors.lookup(op.getJoinedOutput());
    rows.joinedLse = environment.tensors.lookup(op.getJoinedLse());
  }
  if (op.getSink())
    rows.sink = environment.tensors.lookup(op.getSink());
  if (op.getTable())
    rows.table = environment.tensors.lookup(op.getTable());
  if (op.getBias())
    rows.bias = environment.tensors.lookup(op.getBias());
  rows.normalizer = op.getNormalizer();
  rows.scale = op.getScaleAttr() ? op.getScaleAttr().getValueAsDouble()
               : op.getScores()  ? 1
                                 : 1 / std::sqrt(double(extents->headDim));
  rows.offset = op.getAlign() == Align::BottomRight ? extents->keys - extents->queries : 0;
  auto translate = [&](Region &region, Rounding rounding, ArrayRef<unsigned> varying, std::optional<Program> &program) {
    if (region.empty())
      return success();
    FailureOr<Program> compiled = Program::compile(region.front(), environment, rows.tokens, rounding, varying);
    if (succeeded(compiled))
      program = std::move(*compiled);
    return LogicalResult(compiled);
  };
  for (unsigned member = 0; member < op.getMaskMembers().size(); ++member) {
    FailureOr<Program> program =
        Program::compile(*op.getMaskBlock(), environment, rows.tokens, Rounding::Typed, {kMaskKey}, member);
    if (failed(program))
      return failure();
    rows.masks.push_back(std::move(*program));
  }
  if (failed(translate(op.getScore(), Rounding::Exact, {kScoreValue, kScoreKey}, rows.exactScore)) ||
      failed(translate(op.getScore(), Rounding::Typed, {kScoreValue, kScoreKey}, rows.typedScore)))
    return failure();
  return rows;
}

/// Tells the programs which row comes next.
AttentionRows::Position AttentionRows::begin(int64_t row) {
  Position at{row / (extents.queryHeads * extents.queries), row / extents.queries % extents.queryHeads,
              row % extents.queries + offset, row};
  if (queryIndices) {
    at.i = getEntry(*queryIndices, at.b, at.h, at.i);
    int64_t head = at.h / (extents.queryHeads / tokens.queryHeads);
    at.query = at.i >= 0 && at.i < tokens.queries ? (at.b * tokens.queryHeads + head) * tokens.queries + at.i : -1;
  }
  auto set = [&](Program &program, unsigned first) {
    program.setIndex(first, at.b);
    program.setIndex(first + 1, at.h);
    program.setIndex(first + 2, at.i);
    program.runOnce();
  };
  for (Program &mask : masks)
    set(mask, 0);
  if (exactScore) {
    set(*exactScore, 1);
    set(*typedScore, 1);
  }
  return at;
}

int64_t AttentionRows::getCount(const Position &at, int64_t j) {
  int64_t position = getKeyPosition(at, j);
  if (at.query < 0 || position < 0)
    return 0;
  int64_t count = masks.empty();
  for (Program &mask : masks) {
    mask.setIndex(kMaskKey, position);
    count += mask.runVarying().i != 0;
  }
  return count;
}

int64_t AttentionRows::countKept(int64_t row) {
  Position at = begin(row);
  int64_t count = 0;
  for (int64_t j = 0; j < extents.keys; ++j)
    count += getCount(at, j) > 0;
  return count;
}

int64_t AttentionRows::getKeyPosition(const Position &at, int64_t j) const {
  if (!keyIndices)
    return j;
  int64_t position = getEntry(*keyIndices, at.b, at.h / (extents.queryHeads / extents.keyHeads), j);
  return position >= 0 && position < tokens.keys ? position : -1;
}

int64_t AttentionRows::getKeyRow(const Position &at, int64_t j) const {
  int64_t head = at.h / (extents.queryHeads / tokens.keyHeads);
  return (at.b * tokens.keyHeads + head) * tokens.keys + getKeyPosition(at, j);
}

/// A score is an f32 number, also where it is computed in double: beyond the range it is infinite.
template <typename T>
static T toScore(T s) {
  constexpr T most = std::numeric_limits<float>::max();
  return std::abs(s) > most ? std::copysign(std::numeric_limits<T>::infinity(), s) : s;
}

int64_t AttentionRows::getTableRow(int64_t row, int64_t j) const {
  int64_t distance = row % extents.queries + offset - j;
  int64_t head = row / extents.queries % extents.queryHeads;
  return head * table->shape[1] + std::clamp<int64_t>(distance, 0, table->shape[1] - 1);
}

int64_t AttentionRows::getScorePlace(int64_t row, int64_t j) const {
  return (scores->getRank() == 4 ? row : row % (extents.queryHeads * extents.queries)) * extents.keys + j;
}

/// The score of one pair: scaled product, then the score region. +inf counts as the largest finite number.
template <typename T>
T AttentionRows::getScore(std::optional<Program> &score, int64_t row, const Position &at, int64_t j) {
  llvm::SmallVector<T, 128> q(extents.headDim), k(extents.headDim);
  T product = 0;
  if (scores) {
    scores->read(getScorePlace(row, j), 1, &product);
  } else {
    query->read(at.query * extents.headDim, extents.headDim, q.data());
    key->read(getKeyRow(at, j) * extents.headDim, extents.headDim, k.data());
  }
  for (int64_t d = 0; d < extents.headDim; ++d)
    product += q[d] * k[d];
  if (table) {
    table->read(getTableRow(row, j) * extents.headDim, extents.headDim, k.data());
    llvm::SmallVector<T, 128> more(extents.headDim);
    if (bias)
      bias->read(row / extents.queries % extents.queryHeads * extents.headDim, extents.headDim, more.data());
    for (int64_t d = 0; d < extents.headDim; ++d)
      product += (q[d] + more[d]) * k[d];
  }
  T s = toScore(product * static_cast<T>(scale));
  if (score) {
    score->setFloat(kScoreValue, s);
    score->setIndex(kScoreKey, getKeyPosition(at, j));
    s = toScore(static_cast<T>(score->runVarying().f));
  }
  constexpr T most = std::numeric_limits<float>::max();
  return s > most ? most : s;
}

/// The keys that take part in a row.
template <typename T>
std::vector<AttentionRows::Kept<T>> AttentionRows::collect(std::optional<Program> &score, int64_t row,
                                                           const Position &at) {
  std::vector<Kept<T>> kept;
  for (int64_t j = 0; j < extents.keys; ++j) {
    int64_t count = getCount(at, j);
    if (count == 0)
      continue;
    T s = getScore<T>(score, row, at, j);
    if (count > 1)
      s += std::log(static_cast<T>(count));
    if (s != -std::numeric_limits<T>::infinity())
      kept.push_back({j, s, 0});
  }
  auto add = [&](int64_t entry, const HostTensor *logits, int64_t element) {
    T logit = -std::numeric_limits<T>::infinity();
    if (logits)
      logits->read(element, 1, &logit);
    logit = std::min<T>(logit, std::numeric_limits<float>::max());
    if (logit != -std::numeric_limits<T>::infinity())
      kept.push_back({entry, logit, 0});
  };
  add(kJoined, joinedLse, row);
  add(kSink, sink, at.h);
  return kept;
}

template <typename T>
T AttentionRows::weigh(T score, T maximum) const {
  if (normalizer == Normalizer::None)
    return score;
  return normalizer == Normalizer::Sigmoid ? 1 / (1 + std::exp(-score)) : std::exp(score - maximum);
}

/// The value that an entry weighs: of a key, the output that is joined, or 0 of a sink.
template <typename T>
void AttentionRows::readValue(int64_t entry, int64_t row, const Position &at, T *values) const {
  if (entry == kJoined)
    joinedOutput->read(row * extents.valueDim, extents.valueDim, values);
  else if (entry == kSink)
    std::fill_n(values, extents.valueDim, 0);
  else
    value->read(getKeyRow(at, entry) * extents.valueDim, extents.valueDim, values);
}

/// A weight as the product with the values takes it: a product has both factors in the type of the inputs, and sums
/// in f32.
template <typename T>
T AttentionRows::getFactor(T weight) const {
  if constexpr (std::is_same_v<T, float>)
    return static_cast<float>(roundToType(weight, value->elementType));
  return weight;
}

template <typename T>
void AttentionRows::evaluateIn(std::optional<Program> &score, int64_t row, const Result &result) {
  Position at = begin(row);
  std::vector<Kept<T>> kept = collect<T>(score, row, at);
  T maximum = -std::numeric_limits<T>::infinity(), total = 0;
  for (const Kept<T> &entry : kept)
    maximum = std::max(maximum, entry.score);
  for (Kept<T> &entry : kept)
    total += entry.weight = weigh(entry.score, maximum);
  if (normalizer != Normalizer::Softmax)
    total = 1;
  std::vector<T> v(extents.valueDim), sum(extents.valueDim);
  for (const Kept<T> &entry : kept) {
    readValue(entry.key, row, at, v.data());
    T factor = entry.key < 0 ? entry.weight : getFactor(entry.weight);
    for (int64_t d = 0; d < extents.valueDim; ++d)
      sum[d] += factor * v[d];
  }
  for (int64_t d = 0; d < extents.valueDim; ++d)
    result.output[d] = kept.empty() ? 0 : sum[d] / total;
  *result.lse = kept.empty() ? -std::numeric_limits<double>::infinity() : double(maximum + std::log(total));
  if (result.outputMagnitude)
    measure<T>(kept, total, row, at, result);
}

/// Raises the numbers from `first` on to what their errors are measured by.
static void raise(MutableArrayRef<double> numbers, const std::vector<double> *sizes, int64_t first) {
  for (auto [d, x] : llvm::enumerate(numbers)) {
    x = std::abs(x);
    if (sizes && first + d < sizes->size())
      x = std::max(x, (*sizes)[first + d]);
  }
}

/// The sizes of the terms of a product, whatever the product itself: it is rounded at these.
double AttentionRows::getScoreMagnitude(int64_t row, const Position &at, int64_t j) const {
  if (scores) {
    double given;
    int64_t place = getScorePlace(row, j);
    scores->read(place, 1, &given);
    raise(given, sizes.scores, place);
    return given * std::abs(scale);
  }
  llvm::SmallVector<double, 128> q(extents.headDim), k(extents.headDim);
  int64_t keyRow = getKeyRow(at, j);
  query->read(at.query * extents.headDim, extents.headDim, q.data());
  key->read(keyRow * extents.headDim, extents.headDim, k.data());
  raise(q, sizes.query, at.query * extents.headDim);
  raise(k, sizes.key, keyRow * extents.headDim);
  double sum = 0;
  for (int64_t d = 0; d < extents.headDim; ++d)
    sum += q[d] * k[d];
  if (table) {
    table->read(getTableRow(row, j) * extents.headDim, extents.headDim, k.data());
    llvm::SmallVector<double, 128> more(extents.headDim);
    if (bias)
      bias->read(row / extents.queries % extents.queryHeads * extents.headDim, extents.headDim, more.data());
    for (int64_t d = 0; d < extents.headDim; ++d)
      sum += (q[d] + std::abs(more[d])) * std::abs(k[d]);
  }
  return sum * std::abs(scale);
}

/// How much the part of a weight in an output changes with its score.
double AttentionRows::getChange(double share) const {
  if (normalizer == Normalizer::None)
    return 1;
  return normalizer == Normalizer::Sigmoid ? share * (1 - share) : share;
}

/// What an element changes by where every weight and every score is off by a part of itself, all to the same side, and
/// every product by a part of its terms, to any side; per that part.
template <typename T>
void AttentionRows::measure(ArrayRef<Kept<T>> kept, T total, int64_t row, const Position &at, const Result &result) {
  std::vector<double> v(extents.valueDim), vSizes(extents.valueDim), squares(extents.valueDim);
  double lseSquares = 0;
  std::fill_n(result.outputMagnitude, extents.valueDim, 0);
  *result.lseMagnitude = kept.empty() ? 0 : 1;
  for (const Kept<T> &entry : kept) {
    // A score at the end of the range is there by clamping, not by rounding.
    bool isClamped = entry.score == std::numeric_limits<float>::max();
    double share = std::abs(entry.weight / total), score = std::abs(entry.score), change = getChange(share);
    if (!(share > 0))
      continue;
    bool isJoined = entry.key == kJoined, isProduct = !isClamped && entry.key >= 0;
    if (isJoined && sizes.joinedLse && size_t(row) < sizes.joinedLse->size())
      score = std::max(score, (*sizes.joinedLse)[row]);
    double product = isProduct ? change * getScoreMagnitude(row, at, entry.key) : 0;
    readValue(entry.key, row, at, v.data());
    vSizes = v;
    if (entry.key != kSink)
      raise(vSizes, isJoined ? sizes.joined : sizes.value,
            (isJoined ? row : getKeyRow(at, entry.key)) * extents.valueDim);
    *result.lseMagnitude += share * score;
    lseSquares += product * product;
    for (int64_t d = 0; d < extents.valueDim; ++d) {
      double distance = normalizer == Normalizer::Softmax ? std::abs(v[d] - result.output[d]) : std::abs(v[d]);
      result.outputMagnitude[d] += share * vSizes[d] + (isClamped ? 0 : change * score * distance);
      squares[d] += product * distance * product * distance;
    }
  }
  *result.lseMagnitude += std::sqrt(lseSquares);
  for (int64_t d = 0; d < extents.valueDim; ++d)
    result.outputMagnitude[d] += std::sqrt(squares[d]);
}

void AttentionRows::evaluate(int64_t row, const Result &result) {
  if (precision == Precision::Exact)
    evaluateIn<double>(exactScore, row, result);
  else
    evaluateIn<float>(typedScore, row, result);
}

} // namespace attn::reference
