//===- StepVerify.h - What the constraints of steps share -------*- C++ -*-===//
#ifndef ATTN_LIB_DIALECT_ATTN_IR_STEPVERIFY_H
#define ATTN_LIB_DIALECT_ATTN_IR_STEPVERIFY_H

#include "attn/Dialect/Attn/IR/AttnSteps.h"

namespace attn {

inline ExtentTie makeTie(llvm::StringRef name, llvm::ArrayRef<ExtentPlace> places) {
  ExtentTie tie{name.str(), {}, {}};
  for (ExtentPlace place : places)
    if (place.tensor)
      tie.places.push_back(place);
  return tie;
}

/// An extent that follows from another one.
inline ExtentTie makeTie(llvm::StringRef name, llvm::ArrayRef<ExtentPlace> places, ExtentRule rule) {
  ExtentTie tie = makeTie(name, places);
  tie.rule = rule;
  return tie;
}

/// The operand or result that `tensor` is, as messages call it.
std::string describeTensor(mlir::Operation *op, mlir::Value tensor);

/// Is `tensor` (null is fine) of rank `rank`? `constraint` is "(E4)".
mlir::LogicalResult verifyRank(mlir::Operation *op, mlir::Value tensor, int64_t rank, llvm::StringRef dims,
                               llvm::StringRef constraint);
/// Do both (null is fine) have one element type (E2)?
mlir::LogicalResult verifySameElements(mlir::Operation *op, mlir::Value a, mlir::Value b);
/// E1: static extents agree with the ties of the op. Ranks are right already.
mlir::LogicalResult verifyExtents(CompiledOpInterface op);

/// `tensors`, those that are there, are of f32.
mlir::LogicalResult verifyF32(mlir::Operation *op, llvm::ArrayRef<mlir::Value> tensors, llvm::StringRef constraint);
mlir::LogicalResult verifySameIntegers(mlir::Operation *op, mlir::Value a, mlir::Value b, llvm::StringRef constraint);
/// An attribute that prints as name(value).
mlir::LogicalResult verifyPositive(mlir::Operation *op, llvm::StringRef name, int64_t value,
                                   llvm::StringRef constraint);

/// An extent that an attribute gives: a type may leave it out, and then it follows from any extent, times 0.
ExtentTie makeFixedTie(llvm::StringRef name, ExtentPlace place, ExtentPlace any, int64_t extent);
mlir::LogicalResult verifyFixed(mlir::Operation *op, ExtentPlace place, int64_t extent, llvm::StringRef constraint);

/// Tensors [B, H, N, ...] of which only extents are read: they join the ties `batch` and `tokens`.
void appendLike(llvm::SmallVectorImpl<ExtentTie> &ties, mlir::ValueRange like, unsigned batch, unsigned tokens);
mlir::LogicalResult verifyLike(mlir::Operation *op, mlir::ValueRange like, llvm::StringRef constraint);

/// The operands and results that are rows of numbers, [..., tokens, head_dim]: these are read in vectors.
llvm::SmallVector<mlir::Value> rowsOfNumbers(mlir::Operation *op);

} // namespace attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_STEPVERIFY_H
