//===- MaskAnalysis.h - Linear forms and conditions of a mask --*- C++ -*-===//
//
// What is known of the values of an expanded mask without a rectangle: every integer as a linear form, every i1 as a
// condition.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_MASKANALYSIS_H
#define ATTN_LIB_PATTERN_MASKANALYSIS_H

#include "Condition.h"
#include "attn/Pattern/Expand.h"
#include "attn/Pattern/Mask.h"

namespace attn {

class MaskAnalysis {
public:
  explicit MaskAnalysis(const ExpandedMask &mask);
  MaskAnalysis(const MaskAnalysis &) = delete;

  const AtomTable &getAtoms() const { return atoms; }
  const ConditionTable &getConditions() const { return conditions; }
  /// The condition that the mask is.
  unsigned getRoot() const { return root; }
  /// The form or condition of a value; values that are neither integer nor i1 have none.
  const LinearForm *findForm(mlir::Value value) const;
  std::optional<unsigned> findCondition(mlir::Value value) const;
  /// Ops without an interval rule that holds for them: only single values can be computed.
  bool isPointOnly(mlir::Operation *op) const { return pointOnly.contains(op); }

  /// The reindexings that conjuncts of the mask ask for.
  llvm::SmallVector<Reindexing> findReindexings() const;
  /// Whether the truth value is true for all pairs of a class of `reindexing`.
  bool holdsInClasses(mlir::Value conjunct, const Reindexing &reindexing) const;

private:
  friend class OpReader;

  std::optional<Reindexing> matchReindexing(unsigned condition) const;

  AtomTable atoms;
  ConditionTable conditions{atoms};
  llvm::DenseMap<mlir::Value, LinearForm> forms;
  llvm::DenseMap<mlir::Value, unsigned> truths;
  llvm::SmallPtrSet<mlir::Operation *, 4> pointOnly;
  mlir::Value query, key;
  unsigned root;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_MASKANALYSIS_H
