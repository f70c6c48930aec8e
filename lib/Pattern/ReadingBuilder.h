//===- ReadingBuilder.h - Numbers of an interval reading -------*- C++ -*-===//

#ifndef ATTN_LIB_PATTERN_READINGBUILDER_H
#define ATTN_LIB_PATTERN_READINGBUILDER_H

#include "LinearForm.h"
#include "attn/Dialect/Attn/IR/Interval.h"

namespace attn {

/// What reading a whole mask needs beside the arithmetic.
class ReadingBuilder : public IntervalBuilder {
public:
  /// Reads an op without a rule: exact where every operand is a single value and the op can be computed, else `whole`.
  virtual Interval readPoint(mlir::Operation *op, mlir::ArrayRef<Interval> operands, Bounds whole) = 0;
};

/// Numbers are 64-bit integers.
class ValueBuilder : public ReadingBuilder {
public:
  Num constant(int64_t value) final { return {value, {}}; }
  Num add(Num a, Num b) final {
    overflowed |= __builtin_add_overflow(a.constant, b.constant, &a.constant);
    return a;
  }
  Num sub(Num a, Num b) final {
    overflowed |= __builtin_sub_overflow(a.constant, b.constant, &a.constant);
    return a;
  }
  Num mul(Num a, Num b) final {
    overflowed |= __builtin_mul_overflow(a.constant, b.constant, &a.constant);
    return a;
  }
  Num floorDiv(Num a, Num b) final { return constant(attn::floorDiv(a.constant, b.constant)); }
  Num mod(Num a, Num b) final { return constant(floorMod(a.constant, b.constant)); }
  Num min(Num a, Num b) final { return a.constant < b.constant ? a : b; }
  Num max(Num a, Num b) final { return a.constant > b.constant ? a : b; }
  Num cmp(mlir::arith::CmpIPredicate predicate, Num a, Num b) final;
  Num select(Num condition, Num a, Num b) final { return condition.constant != 0 ? a : b; }

  Interval readPoint(mlir::Operation *op, mlir::ArrayRef<Interval> operands, Bounds whole) override;

protected:
  /// An addition, subtraction or product did not fit since this was last cleared.
  bool overflowed = false;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_READINGBUILDER_H
