//===- GuardInteger.h - Integer ops that are always defined ---------*- C++ -*-===//
#ifndef ATTN_PATTERN_GUARDINTEGER_H
#define ATTN_PATTERN_GUARDINTEGER_H

#include "mlir/IR/Builders.h"

namespace attn {

/// An integer division or remainder without a result (by 0, or the least number by -1) traps on a CPU, and a shift by a
/// negative number, or by all bits and more, may be anything; in a region each is 0. Guards `op`, an op of arith or
/// index, against that and returns the value to use for its result; all uses are replaced. Other ops, and operands that
/// are known to be harmless, stay as they are.
mlir::Value guardInteger(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace attn

#endif // ATTN_PATTERN_GUARDINTEGER_H
