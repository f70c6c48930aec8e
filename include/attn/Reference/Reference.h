//===- Reference.h - The meaning of attn ops, in plain loops ----------------===//
//
// The oracle: evaluates a function of attn ops from their definitions, in double, sharing no code with the compiler
// below the dialect. The same loops in f32 say what error a straight implementation makes, which is the yard-stick of
// `Comparison`.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_REFERENCE_REFERENCE_H
#define ATTN_REFERENCE_REFERENCE_H

#include "attn/Reference/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

enum class Precision {
  Exact,  // everything in double; intermediate tensors too
  Single, // two-pass softmax in f32, sums in order; where inputs are f16 or bf16, weights are rounded to that before
          // they meet the values, and so are results
};

/// Some rows (along the last dimension; of an [B, H, N] log-sum-exp, single elements) of a tensor.
struct RowSample {
  llvm::SmallVector<int64_t> shape; // of the whole tensor
  int64_t width = 1;                // elements of a row
  int64_t total = 0;                // rows of the whole tensor
  std::vector<int64_t> rows;        // which, ascending
  std::vector<double> values;       // rows.size() * width
  /// Exact, of results of attention: how an element responds to errors of its weights and scores in proportion to
  /// their size, and of products in proportion to their terms (docs/Spec.md, Numerics).
  std::vector<double> magnitudes;
  /// What errors of an element are measured by: its magnitude, or its size; 0 where neither is finite.
  double getMagnitude(size_t index) const;
};

/// Evaluates `func` on `inputs`. Float results have f64 elements in Exact precision, else the type they are declared
/// with. Where inputs do not fit the function, or it holds an op outside the reference's reach, an error is emitted.
mlir::LogicalResult evaluate(mlir::func::FuncOp func, llvm::ArrayRef<HostTensor> inputs,
                             llvm::SmallVectorImpl<HostTensor> &results, Precision precision = Precision::Exact);

/// The same for about `maxRows` rows of every attention result, spread over all batches, heads and queries, always with
/// the first and the last. A result that further ops read is evaluated whole. `seed` picks the rows.
mlir::LogicalResult evaluateRows(mlir::func::FuncOp func, llvm::ArrayRef<HostTensor> inputs, int64_t maxRows,
                                 uint64_t seed, llvm::SmallVectorImpl<RowSample> &results,
                                 Precision precision = Precision::Exact);

/// What the masks of a function leave to do, counted on some rows.
struct Work {
  double pairs = 0;     // query-key pairs of all attention ops
  double kept = 0;      // of these, estimated from the counted rows
  bool sampled = false; // are there more rows than were counted?
  double flops = 0;     // 2 (D + Dv) for each kept pair
};
mlir::FailureOr<Work> measureWork(mlir::func::FuncOp func, llvm::ArrayRef<HostTensor> inputs, int64_t maxRows,
                                  uint64_t seed);

/// How many rows keep the cost of evaluating `func` on `inputs` to about `seconds`, at least 16.
int64_t chooseRows(mlir::func::FuncOp func, llvm::ArrayRef<HostTensor> inputs, double seconds);

/// Our result against the exact one. Errors count by the natural magnitude of their element, so that one large element
/// does not excuse all others. Straight f32 may be lucky where there are few elements, hence the floor.
struct Comparison {
  /// 4 ulp of f32: of rows with few keys, whose plain error may be small by luck.
  static constexpr double kFloor = 0x1p-21;
  /// Smaller numbers may count as 0.
  static constexpr double kSmallest = 0x1p-100;
  double allowed = kFloor;      // by magnitude: twice the largest error of straight f32, or the floor
  double maxError = 0;          // absolute; infinite where one is not finite and the other differs
  double plainError = 0;        // of straight f32 at that magnitude
  double bound = 0;             // of maxError
  int64_t worst = -1;           // flat index of the element with the largest error by its bound: the four above are its
  double got = 0, expected = 0; // there
  bool passed() const { return maxError <= bound; }
};
Comparison compare(const RowSample &exact, const RowSample &plain, const HostTensor &actual);

} // namespace attn

#endif // ATTN_REFERENCE_REFERENCE_H
