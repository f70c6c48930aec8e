//===- LowerMath.h - Math functions without a math library ------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_MATH_LOWERMATH_H
#define ATTN_LIB_CODEGEN_MATH_LOWERMATH_H

#include "mlir/IR/PatternMatch.h"

namespace attn {

/// Replaces math functions below `root` by polynomials, after `own` patterns of the target. A math op that is left, is
/// not inline on every target and not in `instructions` (names of ops that the target has) is an error that says what
/// may stand in a region; `target` is "a CPU" or the like.
mlir::LogicalResult lowerMath(mlir::Operation *root, mlir::RewritePatternSet own,
                              llvm::ArrayRef<llvm::StringRef> instructions, llvm::StringRef target);

} // namespace attn

#endif // ATTN_LIB_CODEGEN_MATH_LOWERMATH_H
