//===- Attention.h - One attention op, row by row ---------------------------===//
#ifndef ATTN_LIB_REFERENCE_ATTENTION_H
#define ATTN_LIB_REFERENCE_ATTENTION_H

#include "Program.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Reference.h"

namespace attn::reference {

/// The extents of `op` for the tensors in `environment`; emits an error where they disagree.
mlir::FailureOr<Extents> getExtents(AttentionOp op, const Environment &environment);

/// Evaluates rows (b, h, query) of an attention op.
class AttentionRows {
public:
  static mlir::FailureOr<AttentionRows> create(AttentionOp op, const Environment &environment, Precision precision);

  int64_t getNumRows() const { return extents.batch * extents.queryHeads * extents.queries; }
  const Extents &getExtents() const { return extents; }

  /// Products of a query that a score is made of: with a key, and with a distance.
  int64_t countProducts() const { return table ? 2 : 1; }

  /// Number of keys that the mask keeps for a row.
  int64_t countKept(int64_t row);

  /// Where the results of a row go, and their natural magnitudes (may be null): see RowSample.
  struct Result {
    double *output, *lse;
    double *outputMagnitude = nullptr, *lseMagnitude = nullptr;
  };
  void evaluate(int64_t row, const Result &result);

  /// What errors of computed operands are measured by; empty or null: their size.
  struct Sizes {
    const std::vector<double> *query = nullptr, *key = nullptr, *value = nullptr, *joined = nullptr,
                              *joinedLse = nullptr, *scores = nullptr;
  };
  void setSizes(const Sizes &known) { sizes = known; }

private:
  /// In place of a key: what is joined, and the sink.
  static constexpr int64_t kJoined = -1, kSink = -2;
  /// A kept key, its score, and its weight: exp(score - maximum), or what the normalizer makes of the score.
  template <typename T>
  struct Kept {
    int64_t key;
    T score, weight;
  };
  struct Position {
    int64_t b, h, i;
    int64_t query; // row of `query`; -1: there is none
  };
  Position begin(int64_t row);
  /// How often key j is kept.
  int64_t getCount(const Position &at, int64_t j);
  /// The position of key j of a row; -1: there is no such key.
  int64_t getKeyPosition(const Position &at, int64_t j) const;
  /// Row of `key` and `value` that holds key j of a row.
  int64_t getKeyRow(const Position &at, int64_t j) const;
  /// The element of the scores that are given for a pair.
  int64_t getScorePlace(int64_t row, int64_t j) const;
  /// The row of the table that key row j of a query is multiplied with, as far apart.
  int64_t getTableRow(int64_t row, int64_t j) const;
  template <typename T>
  T getScore(std::optional<Program> &score, int64_t row, const Position &at, int64_t j);
  template <typename T>
  std::vector<Kept<T>> collect(std::optional<Program> &score, int64_t row, const Position &at);
  template <typename T>
  T weigh(T score, T maximum) const;
  template <typename T>
  void readValue(int64_t entry, int64_t row, const Position &at, T *values) const;
  template <typename T>
  T getFactor(T weight) const;
  template <typename T>
  void evaluateIn(std::optional<Program> &score, int64_t row, const Result &result);
  template <typename T>
  void measure(llvm::ArrayRef<Kept<T>> kept, T total, int64_t row, const Position &at, const Result &result);
  double getChange(double share) const;
  double getScoreMagnitude(int64_t row, const Position &at, int64_t j) const;

  Extents extents;
  Extents tokens; // of the tensors that lists of rows number
  Precision precision;
  const HostTensor *query = nullptr, *key = nullptr, *value, *joinedOutput = nullptr, *joinedLse = nullptr,
                   *sink = nullptr, *table = nullptr, *bias = nullptr, *scores = nullptr, *queryIndices = nullptr,
                   *keyIndices = nullptr;
  Sizes sizes;
  Normalizer normalizer;
  double scale;
  int64_t offset;             // query position minus query row
  std::vector<Program> masks; // one for each value that the region yields
  std::optional<Program> exactScore, typedScore;
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_ATTENTION_H
