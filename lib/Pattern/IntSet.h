//===- IntSet.h - Unions of integer intervals ------------------*- C++ -*-===//
//
// The values of one linear form for which a condition holds.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_INTSET_H
#define ATTN_LIB_PATTERN_INTSET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>

namespace attn {

/// A sorted union of disjoint integer intervals with a gap between any two of them. The ends kLeast and kGreatest mean
/// "no bound".
class IntSet {
public:
  struct Piece {
    int64_t lo, hi;
    bool operator==(const Piece &other) const { return lo == other.lo && hi == other.hi; }
  };
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();

  static IntSet empty() { return IntSet(); }
  static IntSet all() { return interval(kLeast, kGreatest); }
  /// Empty where lo > hi.
  static IntSet interval(int64_t lo, int64_t hi);

  llvm::ArrayRef<Piece> pieces() const { return set; }
  bool isEmpty() const { return set.empty(); }
  bool contains(int64_t value) const;
  bool operator==(const IntSet &other) const { return set == other.set; }

  IntSet unite(const IntSet &other) const;
  IntSet intersect(const IntSet &other) const;
  IntSet complement() const;

  /// { x : factor * x + offset in this set }, factor not zero.
  IntSet preimage(int64_t factor, int64_t offset) const;
  /// { x : x floordiv divisor in this set }, divisor > 0.
  IntSet preimageOfFloorDiv(int64_t divisor) const;

private:
  void add(int64_t lo, int64_t hi);

  llvm::SmallVector<Piece, 2> set;
};

int64_t floorDiv(int64_t a, int64_t b); // b > 0
int64_t floorMod(int64_t a, int64_t b); // b > 0

} // namespace attn

#endif // ATTN_LIB_PATTERN_INTSET_H
