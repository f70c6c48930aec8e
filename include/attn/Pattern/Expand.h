//===- Expand.h - Masks spelt out in basic ops -----------------*- C++ -*-===//
//
// The pointwise reading of a mask: its region with every named predicate expanded.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PATTERN_EXPAND_H
#define ATTN_PATTERN_EXPAND_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>

namespace mlir {
class ModuleOp;
namespace tensor {
class DimOp;
} // namespace tensor
} // namespace mlir

namespace attn {

struct Reindexing;

/// A private copy of a mask region with every predicate expanded to basic ops: arith, index, tensor.extract,
/// tensor.dim, attn.contains, attn.num_keys and attn.num_queries. It refers to nothing outside, so it outlives the
/// attention op.
class ExpandedMask {
public:
  /// An attention without a mask region keeps all. Predicates for which `keep` says so are not expanded.
  explicit ExpandedMask(AttentionOp op, llvm::function_ref<bool(MaskOpInterface)> keep = {});

  /// Its arguments are b, h, i, j and then the captured tensors in the order of tensors().
  mlir::Block &getBlock() const;
  /// The i1 that the region yields, or whether any does: an op result or argument of the block.
  mlir::Value getResult() const { return result; }
  /// All that it yields, and of several whether exactly one holds (else null).
  mlir::ArrayRef<mlir::Value> getMembers() const { return members; }
  mlir::Value getOnce() const { return once; }
  /// The values of the attention's surroundings that stand behind the arguments from the fifth on.
  mlir::ArrayRef<mlir::Value> getTensors() const { return tensors; }

  /// The least query position: 0, or far below where queries are aligned with the last key.
  int64_t getLeastQuery() const { return leastQuery; }

  /// Makes true every conjunct that holds for all pairs of one class of `reindexing`.
  void dropConjuncts(const Reindexing &reindexing);

private:
  mlir::Value importValue(mlir::OpBuilder &builder, mlir::Value outside);
  void combineMembers(mlir::OpBuilder &builder);
  void removeDeadOps();

  mlir::OwningOpRef<mlir::ModuleOp> holder;
  mlir::Value result, once;
  mlir::SmallVector<mlir::Value, 1> members;
  mlir::SmallVector<mlir::Value> tensors;
  int64_t leastQuery;
};

/// What expandMaskInto puts in place of values of the attention.
struct ExpandOptions {
  /// Replace attn.num_queries and attn.num_keys; where null the ops stay.
  mlir::Value numQueries, numKeys;
  /// Gives the value to use for a captured tensor of the surroundings; absent: the tensor itself.
  std::function<mlir::Value(mlir::Value)> capture;
  /// Drop the conjuncts that hold for all pairs of one class of this reindexing.
  const Reindexing *reindexing = nullptr;
  /// Where the values go that a mask region yields, each for itself; may be null.
  mlir::SmallVectorImpl<mlir::Value> *members = nullptr;
};

/// Clones the region of `maskBlock`, a mask block of an attention, with all predicates expanded to the insertion point
/// of `builder`, and returns the i1 value for the query and key `bhij` = (b, h, i, j), four index values.
mlir::Value expandMaskInto(mlir::OpBuilder &builder, mlir::Block &maskBlock, mlir::ValueRange bhij,
                           const ExpandOptions &options = {});

/// The same for a score block, which holds no predicates: the f32 value for `score` and `bhij`. No reindexing is read.
mlir::Value cloneScoreInto(mlir::OpBuilder &builder, mlir::Block &scoreBlock, mlir::Value score, mlir::ValueRange bhij,
                           const ExpandOptions &options = {});

/// Whether a region can know this extent without the tensor: a static one, or the number of queries or keys.
bool isKnownExtent(mlir::tensor::DimOp dim, AttentionOp attention);

} // namespace attn

#endif // ATTN_PATTERN_EXPAND_H
