//===- Interval.h - Interval arithmetic over mask regions --------*- C++ -*-===//
//
// A mask region is read over a rectangle of positions by giving every value an interval. How numbers are represented is
// left to the builder: one implementation computes with 64-bit integers, another emits the same computation as IR.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_DIALECT_ATTN_IR_INTERVAL_H
#define ATTN_DIALECT_ATTN_IR_INTERVAL_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Value.h"
#include "mlir/Support/LLVM.h"

namespace attn {

/// A number of a builder; only the builder that made it looks inside.
struct Num {
  int64_t constant = 0;
  mlir::Value value;
};

/// All values v with lo <= v <= hi, signed. For i1 the bounds are 0 or 1: `lo` says that all are true, `hi` that any
/// may be.
struct Interval {
  Num lo, hi;
};

/// The arithmetic that an interval reading is made of.
class IntervalBuilder {
public:
  virtual ~IntervalBuilder() = default;

  virtual Num constant(int64_t value) = 0;
  virtual Num add(Num a, Num b) = 0;
  virtual Num sub(Num a, Num b) = 0;
  virtual Num mul(Num a, Num b) = 0;
  /// Rounds towards negative infinity; the divisor is positive.
  virtual Num floorDiv(Num a, Num b) = 0;
  /// a - floorDiv(a, b) * b; the divisor is positive.
  virtual Num mod(Num a, Num b) = 0;
  virtual Num min(Num a, Num b) = 0;
  virtual Num max(Num a, Num b) = 0;
  /// 1 where the comparison holds, else 0.
  virtual Num cmp(mlir::arith::CmpIPredicate predicate, Num a, Num b) = 0;
  /// `a` where the condition is not 0, else `b`.
  virtual Num select(Num condition, Num a, Num b) = 0;

  virtual Num numQueries() = 0;
  virtual Num numKeys() = 0;

  /// The least and greatest element that `op` (tensor.extract or attn.contains) reads in the box of these indices; for
  /// attn.contains the last index is the looked-up value. Failure: the table is not known.
  virtual mlir::FailureOr<Interval> range(mlir::Operation *op, mlir::ArrayRef<Interval> indices) = 0;

  Interval point(Num n) { return {n, n}; }
  Interval point(int64_t value) { return point(constant(value)); }
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_INTERVAL_H
