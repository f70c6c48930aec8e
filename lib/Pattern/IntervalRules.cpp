//===- IntervalRules.cpp - Interval arithmetic ----------------------------===//

#include "IntervalRules.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

Interval rules::guard(IntervalBuilder &b, Num condition, Interval interval, Bounds bounds) {
  return {b.select(condition, interval.lo, b.constant(bounds.lo)),
          b.select(condition, interval.hi, b.constant(bounds.hi))};
}

Interval rules::select(IntervalBuilder &builder, Interval condition, Interval a, Interval b) {
  Interval hull = {builder.min(a.lo, b.lo), builder.max(a.hi, b.hi)};
  Interval notAll = {builder.select(condition.hi, hull.lo, b.lo), builder.select(condition.hi, hull.hi, b.hi)};
  return {builder.select(condition.lo, a.lo, notAll.lo), builder.select(condition.lo, a.hi, notAll.hi)};
}

//===----------------------------------------------------------------------===//
// Sums and products
//===----------------------------------------------------------------------===//

Interval rules::add(IntervalBuilder &b, Interval x, Interval y) { return {b.add(x.lo, y.lo), b.add(x.hi, y.hi)}; }

Interval rules::sub(IntervalBuilder &b, Interval x, Interval y) { return {b.sub(x.lo, y.hi), b.sub(x.hi, y.lo)}; }

/// The least and greatest of a function that is monotone in each operand, in whatever direction.
static Interval corners(IntervalBuilder &b, Interval x, Interval y, llvm::function_ref<Num(Num, Num)> f) {
  Num ll = f(x.lo, y.lo), lh = f(x.lo, y.hi), hl = f(x.hi, y.lo), hh = f(x.hi, y.hi);
  return {b.min(b.min(ll, lh), b.min(hl, hh)), b.max(b.max(ll, lh), b.max(hl, hh))};
}

Interval rules::mul(IntervalBuilder &b, Interval x, Interval y) {
  return corners(b, x, y, [&](Num p, Num q) { return b.mul(p, q); });
}

Interval rules::scale(IntervalBuilder &b, Interval x, int64_t factor) {
  if (factor == 1)
    return x;
  Num f = b.constant(factor);
  Num lo = b.mul(x.lo, f), hi = b.mul(x.hi, f);
  return factor < 0 ? Interval{hi, lo} : Interval{lo, hi};
}

Interval rules::min(IntervalBuilder &b, Interval x, Interval y) { return {b.min(x.lo, y.lo), b.min(x.hi, y.hi)}; }

Interval rules::max(IntervalBuilder &b, Interval x, Interval y) { return {b.max(x.lo, y.lo), b.max(x.hi, y.hi)}; }

//===----------------------------------------------------------------------===//
// Quotients
//===----------------------------------------------------------------------===//

Interval rules::floorDiv(IntervalBuilder &b, Interval x, Interval divisor) {
  return corners(b, x, divisor, [&](Num p, Num q) { return b.floorDiv(p, q); });
}

/// Towards zero: for a negative number, floor((x + divisor - 1) / divisor).
static Num truncQuotient(IntervalBuilder &b, Num x, Num divisor) {
  Num raised = b.add(b.min(x, b.constant(0)), b.sub(divisor, b.constant(1)));
  return b.select(b.cmp(Predicate::slt, x, b.constant(0)), b.floorDiv(raised, divisor), b.floorDiv(x, divisor));
}

Interval rules::truncDiv(IntervalBuilder &b, Interval x, Interval divisor) {
  return corners(b, x, divisor, [&](Num p, Num q) { return truncQuotient(b, p, q); });
}

/// Within one block of a known divisor the remainder grows with the number.
Interval rules::mod(IntervalBuilder &b, Interval x, Interval divisor) {
  Num size = divisor.lo, block = b.floorDiv(x.lo, size);
  Num one = b.min(b.cmp(Predicate::eq, block, b.floorDiv(x.hi, size)), b.cmp(Predicate::eq, divisor.lo, divisor.hi));
  Num start = b.mul(block, size);
  return {b.select(one, b.sub(x.lo, start), b.constant(0)),
          b.select(one, b.sub(x.hi, start), b.sub(divisor.hi, b.constant(1)))};
}

Interval rules::rem(IntervalBuilder &b, Interval x, Interval divisor) {
  Num zero = b.constant(0), size = divisor.lo, most = b.sub(divisor.hi, b.constant(1));
  Num first = truncQuotient(b, x.lo, size), last = truncQuotient(b, x.hi, size);
  Num oneSign = b.max(b.cmp(Predicate::sge, x.lo, zero), b.cmp(Predicate::sle, x.hi, zero));
  Num one = b.min(oneSign, b.min(b.cmp(Predicate::eq, first, last), b.cmp(Predicate::eq, divisor.lo, divisor.hi)));
  Interval mixed = {b.max(b.min(x.lo, zero), b.sub(zero, most)), b.min(b.max(x.hi, zero), most)};
  Num start = b.mul(first, size);
  return {b.select(one, b.sub(x.lo, start), mixed.lo), b.select(one, b.sub(x.hi, start), mixed.hi)};
}

//===----------------------------------------------------------------------===//
// Widths
//===----------------------------------------------------------------------===//

Interval rules::wrap(IntervalBuilder &b, Interval x, unsigned width) {
  if (width >= 64)
    return x;
  Num size = b.constant(int64_t(1) << width), half = b.constant(width == 1 ? 0 : int64_t(1) << (width - 1));
  auto low = [&](Num n) { return b.sub(b.mod(b.add(n, half), size), half); };
  Num same = b.cmp(Predicate::eq, b.floorDiv(b.add(x.lo, half), size), b.floorDiv(b.add(x.hi, half), size));
  Bounds bounds = {width == 1 ? 0 : -(int64_t(1) << (width - 1)), width == 1 ? 1 : (int64_t(1) << (width - 1)) - 1};
  return guard(b, same, {low(x.lo), low(x.hi)}, bounds);
}

Interval rules::zeroExtend(IntervalBuilder &b, Interval x, unsigned width) {
  Num size = b.constant(int64_t(1) << width), zero = b.constant(0);
  Num above = b.cmp(Predicate::sge, x.lo, zero), below = b.cmp(Predicate::slt, x.hi, zero);
  Interval raised = {b.add(x.lo, size), b.add(x.hi, size)};
  Interval crossing = guard(b, below, raised, {0, (int64_t(1) << width) - 1});
  return {b.select(above, x.lo, crossing.lo), b.select(above, x.hi, crossing.hi)};
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

/// In unsigned order, where an interval that crosses 0 is everything.
static Interval asUnsigned(IntervalBuilder &b, Interval x) {
  Num crosses = b.min(b.cmp(Predicate::slt, x.lo, b.constant(0)), b.cmp(Predicate::sge, x.hi, b.constant(0)));
  return {b.select(crosses, b.constant(0), x.lo), b.select(crosses, b.constant(-1), x.hi)};
}

static Predicate getOpposite(Predicate predicate) {
  switch (predicate) {
  case Predicate::sgt:
    return Predicate::slt;
  case Predicate::sge:
    return Predicate::sle;
  case Predicate::ugt:
    return Predicate::ult;
  case Predicate::uge:
    return Predicate::ule;
  default:
    return predicate;
  }
}

Interval rules::compare(IntervalBuilder &b, Predicate predicate, Interval x, Interval y) {
  switch (predicate) {
  case Predicate::eq: // crosswise, equal ends leave a single value
    return {b.min(b.cmp(predicate, x.lo, y.hi), b.cmp(predicate, x.hi, y.lo)),
            b.min(b.cmp(Predicate::sle, x.lo, y.hi), b.cmp(Predicate::sle, y.lo, x.hi))};
  case Predicate::ne:
    return negate(b, compare(b, Predicate::eq, x, y));
  case Predicate::slt:
  case Predicate::sle:
    return {b.cmp(predicate, x.hi, y.lo), b.cmp(predicate, x.lo, y.hi)};
  case Predicate::ult:
  case Predicate::ule: {
    Interval p = asUnsigned(b, x), q = asUnsigned(b, y);
    return {b.cmp(predicate, p.hi, q.lo), b.cmp(predicate, p.lo, q.hi)};
  }
  default:
    return compare(b, getOpposite(predicate), y, x);
  }
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

static Num opposite(IntervalBuilder &b, Num x) { return b.sub(b.constant(1), x); }

Interval rules::negate(IntervalBuilder &b, Interval x) { return {opposite(b, x.hi), opposite(b, x.lo)}; }

Interval rules::both(IntervalBuilder &b, Interval x, Interval y) { return min(b, x, y); }

Interval rules::either(IntervalBuilder &b, Interval x, Interval y) { return max(b, x, y); }

Interval rules::exclusive(IntervalBuilder &b, Interval x, Interval y) {
  Interval notX = negate(b, x), notY = negate(b, y);
  Num differ = b.max(b.min(x.lo, notY.lo), b.min(notX.lo, y.lo)),
      agree = b.max(b.min(x.lo, y.lo), b.min(notX.lo, notY.lo));
  return {differ, opposite(b, agree)};
}

Interval rules::contains(IntervalBuilder &b, const IntSet &set, Interval x) {
  Interval result = b.point(int64_t(0));
  for (const IntSet::Piece &piece : set.pieces()) {
    Interval in = b.point(int64_t(1));
    if (piece.lo != IntSet::kLeast)
      in = both(b, in, compare(b, Predicate::sle, b.point(piece.lo), x));
    if (piece.hi != IntSet::kGreatest)
      in = both(b, in, compare(b, Predicate::sle, x, b.point(piece.hi)));
    result = either(b, result, in);
  }
  return result;
}
