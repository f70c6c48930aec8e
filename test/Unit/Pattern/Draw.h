//===- Draw.h - Random masks with an evaluator of their own ----*- C++ -*-===//
//
// Masks drawn at random as text, each with a function that says for one pair whether it attends. The function follows
// the definitions in the documentation of the ops and shares nothing with the library.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_UNIT_PATTERN_DRAW_H
#define ATTN_TEST_UNIT_PATTERN_DRAW_H

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace attn::test {

/// A captured tensor: rows of equal length.
struct Grid {
  int64_t rows = 1, columns = 1;
  std::vector<int64_t> values;
  /// Reads the nearest element.
  int64_t at(int64_t row, int64_t column) const;
};

/// One attention: extents, data, and a mask that is read by the predicates drawn for it.
struct Problem {
  int64_t batches, heads, queries, keys;
  bool bottomRight;
  Grid len, doc, set, table, wide, bytes; // len is one row: batches

  int64_t queryOffset() const { return bottomRight ? keys - queries : 0; }
};

struct Pair {
  int64_t b, h, i, j;
};

using Predicate = std::function<bool(const Problem &, const Pair &)>;
using Number = std::function<int64_t(const Problem &, const Pair &)>;

/// A mask region as text, and what it keeps.
struct Draw {
  std::string mask;
  Predicate keep;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed) {}

  Problem drawProblem();
  /// Any mask: named predicates and arithmetic under and, or, not.
  Draw drawMask();
  /// One whose readings must be exact on every rectangle: conditions on one linear form of i and j.
  Draw drawAffineMask();
  /// One with a conjunct that a reindexing can use.
  Draw drawReindexedMask();

  int64_t below(int64_t count) { return static_cast<int64_t>(random() % static_cast<uint64_t>(count)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }

private:
  struct Truth {
    std::string name;
    Predicate keep;
  };
  struct Integer {
    std::string name;
    Number value;
  };

  void begin();
  Draw finish(const Truth &truth);
  std::string emit(const std::string &op);
  std::string constant(int64_t value, const std::string &type = "index");

  Truth drawTruth(int depth);
  Truth drawNamed();
  Truth drawDistance();
  Truth drawBlocks();
  Truth drawGrid();
  Truth drawTokens();
  Truth drawTables();
  Truth drawComparison(int depth);
  Truth combine(const Truth &a, const Truth &b, int64_t how);
  Truth invert(const Truth &a);
  Integer drawInteger(int depth);
  Integer drawBinary(int depth);
  Integer drawNarrow(int depth);
  Integer drawExtract(int depth);
  Truth drawAffine(int depth, int64_t family, int64_t a, int64_t b);
  Truth drawAffineLeaf(int64_t family, int64_t a, int64_t b);

  std::mt19937_64 random;
  std::string body;
  int64_t names = 0;
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_PATTERN_DRAW_H
