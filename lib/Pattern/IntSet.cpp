//===- IntSet.cpp - Unions of integer intervals ---------------------------===//

#include "IntSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace attn;

int64_t attn::floorDiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

int64_t attn::floorMod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r < 0 ? r + b : r;
}

IntSet IntSet::interval(int64_t lo, int64_t hi) {
  IntSet result;
  if (lo <= hi)
    result.set.push_back({lo, hi});
  return result;
}

bool IntSet::contains(int64_t value) const {
  return llvm::any_of(set, [&](const Piece &piece) { return piece.lo <= value && value <= piece.hi; });
}

/// Pieces come in the order of their lower ends; those that touch become one.
void IntSet::add(int64_t lo, int64_t hi) {
  if (lo > hi)
    return;
  if (!set.empty() && (set.back().hi == kGreatest || lo <= set.back().hi + 1)) {
    set.back().hi = std::max(set.back().hi, hi);
    return;
  }
  set.push_back({lo, hi});
}

IntSet IntSet::unite(const IntSet &other) const {
  llvm::SmallVector<Piece, 4> both(set.begin(), set.end());
  both.append(other.set.begin(), other.set.end());
  llvm::sort(both, [](const Piece &a, const Piece &b) { return a.lo < b.lo; });
  IntSet result;
  for (const Piece &piece : both)
    result.add(piece.lo, piece.hi);
  return result;
}

IntSet IntSet::complement() const {
  IntSet result;
  int64_t next = kLeast;
  for (const Piece &piece : set) {
    if (piece.lo != kLeast)
      result.add(next, piece.lo - 1);
    if (piece.hi == kGreatest)
      return result;
    next = piece.hi + 1;
  }
  result.add(next, kGreatest);
  return result;
}

IntSet IntSet::intersect(const IntSet &other) const {
  IntSet result;
  for (auto a = set.begin(), b = other.set.begin(); a != set.end() && b != other.set.end();) {
    result.add(std::max(a->lo, b->lo), std::min(a->hi, b->hi));
    (a->hi < b->hi ? a : b)++;
  }
  return result;
}

/// Ends move in 128 bits: an offset may push them out of range, where they mean "no bound" or an empty piece.
static IntSet::Piece divideEnds(__int128 lo, __int128 hi, int64_t factor, bool noLo, bool noHi) {
  auto floorOf = [](__int128 a, __int128 b) { return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0); };
  auto clamp = [](__int128 x) {
    return static_cast<int64_t>(std::clamp<__int128>(x, IntSet::kLeast, IntSet::kGreatest));
  };
  int64_t low = noLo ? IntSet::kLeast : clamp(-floorOf(-lo, factor));
  int64_t high = noHi ? IntSet::kGreatest : clamp(floorOf(hi, factor));
  return {low, high};
}

IntSet IntSet::preimage(int64_t factor, int64_t offset) const {
  llvm::SmallVector<Piece, 4> moved;
  for (const Piece &piece : set) {
    __int128 lo = static_cast<__int128>(piece.lo) - offset, hi = static_cast<__int128>(piece.hi) - offset;
    bool noLo = piece.lo == kLeast, noHi = piece.hi == kGreatest;
    moved.push_back(factor > 0 ? divideEnds(lo, hi, factor, noLo, noHi) : divideEnds(-hi, -lo, -factor, noHi, noLo));
  }
  llvm::sort(moved, [](const Piece &a, const Piece &b) { return a.lo < b.lo; });
  IntSet result;
  for (const Piece &piece : moved)
    result.add(piece.lo, piece.hi);
  return result;
}

IntSet IntSet::preimageOfFloorDiv(int64_t divisor) const {
  IntSet result;
  auto clamp = [](__int128 x) { return static_cast<int64_t>(std::clamp<__int128>(x, kLeast, kGreatest)); };
  for (const Piece &piece : set) {
    int64_t lo = piece.lo == kLeast ? kLeast : clamp(static_cast<__int128>(piece.lo) * divisor);
    int64_t hi = piece.hi == kGreatest ? kGreatest : clamp(static_cast<__int128>(piece.hi) * divisor + divisor - 1);
    result.add(lo, hi);
  }
  return result;
}
