//===- Division.h - Integer division that is always defined -----*- C++ -*-===//
#ifndef ATTN_PATTERN_DIVISION_H
#define ATTN_PATTERN_DIVISION_H

#include "mlir/IR/Builders.h"

namespace attn {

/// An integer division or remainder without a result (by 0, or the least number by -1) traps on a CPU; in a region it
/// is 0. Guards `op`, an op of arith or index, against that and returns the value to use for its result; all uses are
/// replaced. Other ops, and divisors that are known to be harmless, stay as they are.
mlir::Value guardDivision(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace attn

#endif // ATTN_PATTERN_DIVISION_H
