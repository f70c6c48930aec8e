//===- OpReader.h - From ops to linear forms and conditions ----*- C++ -*-===//

#ifndef ATTN_LIB_PATTERN_OPREADER_H
#define ATTN_LIB_PATTERN_OPREADER_H

#include "MaskAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace attn {

/// Gives the results of the ops of a mask, in order, their forms and conditions.
class OpReader {
public:
  explicit OpReader(MaskAnalysis &analysis)
      : analysis(analysis), atoms(analysis.atoms), conditions(analysis.conditions) {}

  void read(mlir::Operation *op);
  unsigned getTruth(mlir::Value value);

private:
  using Predicate = mlir::arith::CmpIPredicate;

  LinearForm getForm(mlir::Value value);
  Bounds getRange(mlir::Value value) { return *atoms.getRange(getForm(value)); }
  bool isNonNegative(mlir::Value value) { return getRange(value).lo >= 0; }

  std::optional<LinearForm> readLinear(mlir::Operation *op);
  std::optional<LinearForm> readCast(mlir::Operation *op, bool isUnsigned);
  std::optional<LinearForm> readProduct(mlir::Value a, mlir::Value b);
  std::optional<LinearForm> readDivision(mlir::Operation *op);
  std::optional<LinearForm> readExtremum(mlir::Operation *op);
  std::optional<LinearForm> readSelect(mlir::arith::SelectOp op);
  std::optional<int64_t> getPositiveConstant(mlir::Value value);

  std::optional<unsigned> readTruth(mlir::Operation *op);
  std::optional<unsigned> compare(Predicate predicate, mlir::Value a, mlir::Value b);
  std::optional<unsigned> compareSigned(Predicate predicate, const LinearForm &a, const LinearForm &b);
  std::optional<unsigned> compareUnsigned(Predicate predicate, mlir::Value a, mlir::Value b);

  mlir::Value findTwin(mlir::Operation *op);
  bool areSame(mlir::Value a, mlir::Value b);
  bool needsPoints(mlir::Operation *op);
  Bounds readLeaf(mlir::Operation *op);

  MaskAnalysis &analysis;
  AtomTable &atoms;
  ConditionTable &conditions;
  llvm::SmallVector<mlir::Operation *> leaves;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_OPREADER_H
