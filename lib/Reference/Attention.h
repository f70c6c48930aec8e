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

  /// Number of keys that the mask keeps for a row.
  int64_t countKept(int64_t row);

  /// Writes the output row and its log-sum-exp.
  void evaluate(int64_t row, double *output, double &lse) {
    return precision == Precision::Exact ? evaluateIn<double>(row, output, lse) : evaluateIn<float>(row, output, lse);
  }

private:
  struct Position {
    int64_t b, h, i;
  };
  Position begin(int64_t row);
  bool keeps(int64_t j);
  template <typename T>
  void evaluateIn(int64_t row, double *output, double &lse);
  template <typename T>
  T getScore(llvm::ArrayRef<T> query, int64_t keyRow, int64_t j);

  Extents extents;
  Precision precision;
  const HostTensor *query, *key, *value;
  double scale;
  int64_t offset; // query position minus query row
  std::optional<Program> mask, score;
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_ATTENTION_H
