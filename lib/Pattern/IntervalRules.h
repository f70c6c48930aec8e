//===- IntervalRules.h - Interval arithmetic -------------------*- C++ -*-===//
//
// The rules that readings of a mask share. Each gives an interval that holds every result, and only the result where
// the operands are single values.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_INTERVALRULES_H
#define ATTN_LIB_PATTERN_INTERVALRULES_H

#include "LinearForm.h"
#include "attn/Dialect/Attn/IR/Interval.h"

namespace attn::rules {

/// `interval` where `condition` is 1, else everything in `bounds`.
Interval guard(IntervalBuilder &b, Num condition, Interval interval, Bounds bounds);
/// Either of two intervals: `a` where all of the condition hold, `b` where none do, else both.
Interval select(IntervalBuilder &builder, Interval condition, Interval a, Interval b);

Interval add(IntervalBuilder &b, Interval x, Interval y);
Interval sub(IntervalBuilder &b, Interval x, Interval y);
Interval mul(IntervalBuilder &b, Interval x, Interval y);
Interval scale(IntervalBuilder &b, Interval x, int64_t factor);
Interval min(IntervalBuilder &b, Interval x, Interval y);
Interval max(IntervalBuilder &b, Interval x, Interval y);

/// Division and remainder; divisors are at least 1.
Interval floorDiv(IntervalBuilder &b, Interval x, Interval divisor);
Interval truncDiv(IntervalBuilder &b, Interval x, Interval divisor);
Interval mod(IntervalBuilder &b, Interval x, Interval divisor);
Interval rem(IntervalBuilder &b, Interval x, Interval divisor);

/// Keeps the low `width` bits, read as a signed number.
Interval wrap(IntervalBuilder &b, Interval x, unsigned width);
/// Reads a signed number of `width` bits, less than 64, as an unsigned one.
Interval zeroExtend(IntervalBuilder &b, Interval x, unsigned width);

Interval compare(IntervalBuilder &b, mlir::arith::CmpIPredicate predicate, Interval x, Interval y);

/// Of i1.
Interval negate(IntervalBuilder &b, Interval x);
Interval both(IntervalBuilder &b, Interval x, Interval y);
Interval either(IntervalBuilder &b, Interval x, Interval y);
Interval exclusive(IntervalBuilder &b, Interval x, Interval y);
/// Whether a number is in a set.
Interval contains(IntervalBuilder &b, const IntSet &set, Interval x);

} // namespace attn::rules

#endif // ATTN_LIB_PATTERN_INTERVALRULES_H
