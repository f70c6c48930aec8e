//===- Draw.cpp - Random masks with an evaluator of their own -------------===//

#include "Draw.h"
#include <algorithm>

using namespace attn::test;

static int64_t div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
static int64_t mod(int64_t a, int64_t b) { return a - div(a, b) * b; }
static int64_t clamp(int64_t value, int64_t count) { return std::max<int64_t>(0, std::min(value, count - 1)); }
static int64_t wrapped(uint64_t value) { return static_cast<int64_t>(value); }

int64_t Grid::at(int64_t row, int64_t column) const {
  return values[clamp(row, rows) * columns + clamp(column, columns)];
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

Problem Generator::drawProblem() {
  Problem p;
  p.batches = between(1, 2);
  p.heads = between(1, 2);
  p.queries = between(1, 40);
  p.keys = between(1, 40);
  p.bottomRight = below(2);
  auto grid = [&](int64_t rows, int64_t columns, const std::function<int64_t()> &value) {
    Grid g{rows, columns, {}};
    for (int64_t k = 0; k < rows * columns; ++k)
      g.values.push_back(value());
    return g;
  };
  p.len = grid(1, p.batches, [&] { return between(-2, p.keys + 2); });
  p.doc = grid(p.batches, between(1, 48), [&] { return below(4); });
  if (below(2)) // documents one after the other
    std::sort(p.doc.values.begin(), p.doc.values.end());
  p.set = grid(between(1, 3), between(1, 5), [&] { return between(-1, 24); });
  p.table = grid(between(1, 8), between(1, 8), [&] { return below(2); });
  p.wide = grid(p.batches, between(1, 24), [&] {
    int64_t extremes[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, -1, 0};
    return below(4) ? between(-50, 50) : extremes[below(5)];
  });
  p.bytes = grid(p.batches, between(1, 24), [&] { return between(-128, 127); });
  return p;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

void Generator::begin() {
  body.clear();
  names = 0;
}

Draw Generator::finish(const Truth &truth) {
  return {"mask {\n^bb0(%b: index, %h: index, %i: index, %j: index):\n" + body + "attn.yield " + truth.name + " : i1 }",
          truth.keep};
}

std::string Generator::emit(const std::string &op) {
  std::string name = "%x" + std::to_string(names++);
  body += name + " = " + op + "\n";
  return name;
}

std::string Generator::constant(int64_t value, const std::string &type) {
  return emit("arith.constant " + std::to_string(value) + " : " + type);
}

static std::string integer(const std::string &key, int64_t value) {
  return key + " = " + std::to_string(value) + " : i64";
}

static std::string array(const std::string &key, int64_t a, int64_t b) {
  return key + " = array<i64: " + std::to_string(a) + ", " + std::to_string(b) + ">";
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

Draw Generator::drawMask() {
  begin();
  return finish(drawTruth(between(0, 3)));
}

Generator::Truth Generator::drawTruth(int depth) {
  if (depth == 0)
    return below(3) ? drawNamed() : drawComparison(between(0, 3));
  if (below(5) == 0)
    return invert(drawTruth(depth - 1));
  Truth a = drawTruth(depth - 1);
  return combine(a, drawTruth(below(depth)), below(8));
}

Generator::Truth Generator::invert(const Truth &a) {
  std::string one = emit("arith.constant true");
  Predicate x = a.keep;
  return {emit("arith.xori " + a.name + ", " + one + " : i1"),
          [=](const Problem &p, const Pair &at) { return !x(p, at); }};
}

Generator::Truth Generator::combine(const Truth &a, const Truth &b, int64_t how) {
  Predicate x = a.keep, y = b.keep;
  if (how == 0)
    return {emit("arith.xori " + a.name + ", " + b.name + " : i1"),
            [=](const Problem &p, const Pair &at) { return x(p, at) != y(p, at); }};
  if (how == 1)
    return {emit("arith.select " + a.name + ", " + b.name + ", " + invert(b).name + " : i1"),
            [=](const Problem &p, const Pair &at) { return x(p, at) ? y(p, at) : !y(p, at); }};
  if (how == 2)
    return {emit("arith.cmpi eq, " + a.name + ", " + b.name + " : i1"),
            [=](const Problem &p, const Pair &at) { return x(p, at) == y(p, at); }};
  if (how < 6)
    return {emit("arith.andi " + a.name + ", " + b.name + " : i1"),
            [=](const Problem &p, const Pair &at) { return x(p, at) && y(p, at); }};
  return {emit("arith.ori " + a.name + ", " + b.name + " : i1"),
          [=](const Problem &p, const Pair &at) { return x(p, at) || y(p, at); }};
}

Generator::Truth Generator::drawNamed() {
  switch (below(5)) {
  case 0:
    return drawDistance();
  case 1:
    return drawBlocks();
  case 2:
    return drawGrid();
  case 3:
    return drawTokens();
  default:
    return drawTables();
  }
}

Generator::Truth Generator::drawDistance() {
  int64_t left = below(12), right = below(12), size = between(1, 7);
  switch (below(5)) {
  case 0:
    return {emit("attn.causal %i, %j"), [](const Problem &, const Pair &at) { return at.j <= at.i; }};
  case 1:
    return {emit("attn.window %i, %j {" + integer("left", left) + "}"),
            [=](const Problem &, const Pair &at) { return at.i - left <= at.j; }};
  case 2:
    return {emit("attn.window %i, %j {" + integer("left", left) + ", " + integer("right", right) + "}"),
            [=](const Problem &, const Pair &at) { return at.i - left <= at.j && at.j <= at.i + right; }};
  case 3:
    return {emit("attn.dilated_window %i, %j {" + integer("left", left) + ", " + integer("right", right) + ", " +
                 integer("dilation", size) + "}"),
            [=](const Problem &, const Pair &at) {
              return mod(at.i - at.j, size) == 0 && at.i - left * size <= at.j && at.j <= at.i + right * size;
            }};
  default:
    return {emit("attn.stride %i, %j {" + integer("size", size) + "}"),
            [=](const Problem &, const Pair &at) { return mod(at.i - at.j, size) == 0; }};
  }
}

Generator::Truth Generator::drawBlocks() {
  int64_t size = between(1, 12), before = below(12), after = below(12), count = between(1, size);
  switch (below(4)) {
  case 0:
    return {emit("attn.same_block %i, %j {" + integer("size", size) + "}"),
            [=](const Problem &, const Pair &at) { return div(at.i, size) == div(at.j, size); }};
  case 1:
    before %= 3;
    return {emit("attn.chunk_lookback %i, %j {" + integer("size", size) + ", " + integer("before", before) + "}"),
            [=](const Problem &, const Pair &at) {
              int64_t distance = div(at.i, size) - div(at.j, size);
              return 0 <= distance && distance <= before;
            }};
  case 2:
    return {emit("attn.local_blocks %i, %j {" + integer("size", size) + ", " + integer("before", before) + ", " +
                 integer("after", after) + "}"),
            [=](const Problem &, const Pair &at) {
              int64_t q = div(at.i, size);
              return q * size - before <= at.j && at.j < (q + 1) * size + after;
            }};
  default:
    return {emit("attn.last_columns %j {" + integer("block", size) + ", " + integer("count", count) + "}"),
            [=](const Problem &, const Pair &at) { return mod(at.j, size) >= size - count; }};
  }
}

static bool inNeighborhood(int64_t x, int64_t y, int64_t extent, int64_t size) {
  int64_t start = std::max<int64_t>(std::min(x - size / 2, extent - size), 0);
  return start <= y && y < start + size;
}

static bool inWidened(int64_t x, int64_t y, int64_t block, int64_t flange) {
  int64_t p = div(x, block);
  return p * block - flange <= y && y < (p + 1) * block + flange;
}

Generator::Truth Generator::drawGrid() {
  int64_t width = between(1, 9), h = between(1, 4), w = between(1, 4), fh = below(3), fw = below(3);
  switch (below(5)) {
  case 0:
    return {emit("attn.same_row %i, %j {" + integer("width", width) + "}"),
            [=](const Problem &, const Pair &at) { return div(at.i, width) == div(at.j, width); }};
  case 1:
    return {emit("attn.same_column %i, %j {" + integer("width", width) + "}"),
            [=](const Problem &, const Pair &at) { return mod(at.i, width) == mod(at.j, width); }};
  case 2:
    return {emit("attn.local_blocks_2d %i, %j {" + integer("width", width) + ", " + array("block", h, w) + ", " +
                 array("flange", fh, fw) + "}"),
            [=](const Problem &, const Pair &at) {
              return inWidened(div(at.i, width), div(at.j, width), h, fh) &&
                     inWidened(mod(at.i, width), mod(at.j, width), w, fw);
            }};
  case 3:
    return {emit("attn.neighborhood %i, %j {" + integer("size", width) + "}"),
            [=](const Problem &p, const Pair &at) { return inNeighborhood(at.i, at.j, p.keys, width); }};
  default:
    return {emit("attn.neighborhood_2d %i, %j {" + integer("width", width) + ", " + array("size", h, w) + "}"),
            [=](const Problem &p, const Pair &at) {
              return inNeighborhood(div(at.i, width), div(at.j, width), div(p.keys, width), h) &&
                     inNeighborhood(mod(at.i, width), mod(at.j, width), width, w);
            }};
  }
}

Generator::Truth Generator::drawTokens() {
  int64_t length = between(1, 40), other = below(40);
  switch (below(6)) {
  case 0:
    return {emit("attn.prefix %j {" + integer("length", length) + "}"),
            [=](const Problem &, const Pair &at) { return at.j < length; }};
  case 1:
    return {emit("attn.key_length %b, %j, %len : tensor<?xi32>"),
            [=](const Problem &p, const Pair &at) { return at.j < p.len.at(0, at.b); }};
  case 2:
    length = length % 6 + 1;
    return {emit("attn.global %i, %j {" + integer("count", length) + "}"), [=](const Problem &, const Pair &at) {
              return (0 <= at.i && at.i < length) || (0 <= at.j && at.j < length);
            }};
  case 3:
    return {emit("attn.global %i, %j {" + array("tokens", length, other) + "}"), [=](const Problem &, const Pair &at) {
              return at.i == length || at.i == other || at.j == length || at.j == other;
            }};
  case 4:
    length = length % 3 + 1, other %= length;
    return {emit("attn.heads %h {" + integer("period", length) + ", " + integer("index", other) + "}"),
            [=](const Problem &, const Pair &at) { return mod(at.h, length) == other; }};
  default:
    return {emit("attn.same_document %b, %i, %j, %doc : tensor<?x?xi32>"),
            [=](const Problem &p, const Pair &at) { return p.doc.at(at.b, at.i) == p.doc.at(at.b, at.j); }};
  }
}

static bool isMember(const Grid &set, int64_t row, int64_t value) {
  for (int64_t k = 0; k < set.columns; ++k)
    if (value >= 0 && set.at(row, k) == value)
      return true;
  return false;
}

Generator::Truth Generator::drawTables() {
  int64_t size = between(1, 9);
  if (below(2))
    return {emit("attn.block_mask %b, %h, %i, %j, %table {" + integer("size", size) + "} : tensor<?x?xi1>"),
            [=](const Problem &p, const Pair &at) { return p.table.at(div(at.i, size), div(at.j, size)) != 0; }};
  Integer row = drawInteger(below(2)), value = drawInteger(below(2));
  Number r = row.value, v = value.value;
  return {emit("attn.contains %set[" + row.name + "], " + value.name + " : tensor<?x?xi32>"),
          [=](const Problem &p, const Pair &at) { return isMember(p.set, r(p, at), v(p, at)); }};
}

static const char *const kComparisons[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};

static bool compare(int64_t predicate, int64_t a, int64_t b) {
  uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  bool answers[] = {a == b, a != b, a<b, a <= b, a> b, a >= b, x<y, x <= y, x> y, x >= y};
  return answers[predicate];
}

Generator::Truth Generator::drawComparison(int depth) {
  int64_t predicate = below(10);
  Integer a = drawInteger(depth), b = drawInteger(below(depth + 1));
  Number x = a.value, y = b.value;
  bool index = below(2);
  std::string text = std::string(kComparisons[predicate]) + ", " + a.name + ", " + b.name;
  std::string lower = std::string(kComparisons[predicate]) + "(" + a.name + ", " + b.name + ")";
  return {emit(index ? "index.cmp " + lower : "arith.cmpi " + text + " : index"),
          [=](const Problem &p, const Pair &at) { return compare(predicate, x(p, at), y(p, at)); }};
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

Generator::Integer Generator::drawInteger(int depth) {
  if (depth > 0) {
    switch (below(8)) {
    case 0:
      return drawNarrow(depth);
    case 1:
      return drawExtract(depth);
    case 2: {
      Truth t = drawTruth(0);
      Integer a = drawInteger(depth - 1), b = drawInteger(depth - 1);
      Number x = a.value, y = b.value;
      Predicate c = t.keep;
      return {emit("arith.select " + t.name + ", " + a.name + ", " + b.name + " : index"),
              [=](const Problem &p, const Pair &at) { return c(p, at) ? x(p, at) : y(p, at); }};
    }
    default:
      return drawBinary(depth);
    }
  }
  switch (below(11)) {
  case 10:
    return {emit("tensor.dim %doc, " + constant(1) + " : tensor<?x?xi32>"),
            [](const Problem &p, const Pair &) { return p.doc.columns; }};
  case 0: {
    int64_t value = between(-20, 40);
    return {constant(value), [=](const Problem &, const Pair &) { return value; }};
  }
  case 1:
    return {"%b", [](const Problem &, const Pair &at) { return at.b; }};
  case 2:
    return {"%h", [](const Problem &, const Pair &at) { return at.h; }};
  case 3:
    return {emit("attn.num_keys"), [](const Problem &p, const Pair &) { return p.keys; }};
  case 4:
    return {emit("attn.num_queries"), [](const Problem &p, const Pair &) { return p.queries; }};
  case 5:
  case 6:
    return {"%j", [](const Problem &, const Pair &at) { return at.j; }};
  default:
    return {"%i", [](const Problem &, const Pair &at) { return at.i; }};
  }
}

Generator::Integer Generator::drawBinary(int depth) {
  Integer a = drawInteger(depth - 1), b = drawInteger(below(depth));
  Number x = a.value, y = b.value;
  int64_t c = between(1, 9), wide = below(12) ? between(-4, 4) : int64_t(1) << 61;
  std::string lhs = " " + a.name + ", ";
  auto binary = [&](const std::string &name, const std::string &rhs, const Number &value) -> Integer {
    return {emit(name + lhs + rhs + (name[0] == 'a' ? " : index" : "")), value};
  };
  auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  switch (below(16)) {
  case 0:
  case 1:
    return binary("arith.addi", b.name, [=](auto &p, auto &at) { return wrapped(u(x(p, at)) + u(y(p, at))); });
  case 2:
  case 3:
    return binary("index.sub", b.name, [=](auto &p, auto &at) { return wrapped(u(x(p, at)) - u(y(p, at))); });
  case 4:
    return binary("arith.muli", constant(wide), [=](auto &p, auto &at) { return wrapped(u(x(p, at)) * u(wide)); });
  case 5:
    return binary("arith.muli", b.name, [=](auto &p, auto &at) { return wrapped(u(x(p, at)) * u(y(p, at))); });
  case 6:
    return binary("arith.floordivsi", constant(c), [=](auto &p, auto &at) {
      int64_t v = x(p, at);
      return v / c - (v % c < 0);
    });
  case 7:
    return binary("arith.remsi", constant(c), [=](auto &p, auto &at) { return x(p, at) % c; });
  case 8:
    return binary("index.divs", constant(c), [=](auto &p, auto &at) { return x(p, at) / c; });
  case 9:
    return binary("arith.remui", constant(c), [=](auto &p, auto &at) { return wrapped(u(x(p, at)) % u(c)); });
  case 10:
    return binary("arith.divui", constant(c), [=](auto &p, auto &at) { return wrapped(u(x(p, at)) / u(c)); });
  case 11:
    return binary("arith.maxsi", b.name, [=](auto &p, auto &at) { return std::max(x(p, at), y(p, at)); });
  case 12:
    return binary("index.mins", b.name, [=](auto &p, auto &at) { return std::min(x(p, at), y(p, at)); });
  case 13:
    return binary("arith.andi", constant(7), [=](auto &p, auto &at) { return x(p, at) & 7; });
  case 14:
    return binary("arith.shrsi", constant(2), [=](auto &p, auto &at) { return x(p, at) >> 2; });
  default:
    return binary("arith.minui", b.name,
                  [=](auto &p, auto &at) { return wrapped(std::min(u(x(p, at)), u(y(p, at)))); });
  }
}

/// Through i8, where numbers wrap.
Generator::Integer Generator::drawNarrow(int depth) {
  Integer a = drawInteger(depth - 1);
  Number x = a.value;
  std::string narrow = emit("arith.index_cast " + a.name + " : index to i8");
  int64_t c = between(-128, 127);
  bool isUnsigned = below(2);
  std::string sum = emit("arith.addi " + narrow + ", " + constant(c, "i8") + " : i8");
  return {emit(std::string(isUnsigned ? "arith.index_castui " : "arith.index_cast ") + sum + " : i8 to index"),
          [=](const Problem &p, const Pair &at) -> int64_t {
            auto low = static_cast<uint8_t>(static_cast<uint64_t>(x(p, at)) + static_cast<uint64_t>(c));
            return isUnsigned ? int64_t(low) : int64_t(static_cast<int8_t>(low));
          }};
}

Generator::Integer Generator::drawExtract(int depth) {
  Integer row = drawInteger(0), column = drawInteger(depth - 1);
  Number r = row.value, c = column.value;
  struct Source {
    const char *name, *type;
    Grid Problem::*grid;
  };
  const Source sources[] = {{"%doc", "i32", &Problem::doc},
                            {"%wide", "i64", &Problem::wide},
                            {"%bytes", "i8", &Problem::bytes},
                            {"%table", "i1", &Problem::table}};
  Source source = sources[below(4)];
  std::string type = source.type;
  std::string value = emit("tensor.extract " + std::string(source.name) + "[" + row.name + ", " + column.name +
                           "] : tensor<?x?x" + type + ">");
  std::string cast = type == "i1" ? "arith.index_castui " : "arith.index_cast ";
  Grid Problem::*grid = source.grid;
  return {emit(cast + value + " : " + type + " to index"),
          [=](const Problem &p, const Pair &at) { return (p.*grid).at(r(p, at), c(p, at)); }};
}

//===----------------------------------------------------------------------===//
// Masks with exact readings
//===----------------------------------------------------------------------===//

Draw Generator::drawAffineMask() {
  begin();
  int64_t family = below(4), a = between(-4, 4), b = between(-4, 4);
  if (family == 3) { // one comparison of any affine form
    static const int64_t inequalities[] = {2, 3, 4, 5};
    int64_t c = between(-30, 30), predicate = inequalities[below(4)];
    std::string left = emit("arith.muli %i, " + constant(a) + " : index");
    std::string right = emit("arith.muli %j, " + constant(b) + " : index");
    std::string sum = emit("arith.addi " + left + ", " + right + " : index");
    return finish(
        {emit("arith.cmpi " + std::string(kComparisons[predicate]) + ", " + sum + ", " + constant(c) + " : index"),
         [=](const Problem &, const Pair &at) { return compare(predicate, a * at.i + b * at.j, c); }});
  }
  return finish(drawAffine(between(0, 3), family, a, b));
}

Draw Generator::drawReindexedMask() {
  begin();
  int64_t size = between(2, 9), left = below(5);
  Truth truth;
  if (below(2))
    truth = {emit("attn.same_block %i, %j {" + integer("size", size) + "}"),
             [=](const Problem &, const Pair &at) { return div(at.i, size) == div(at.j, size); }};
  else
    truth = {emit("attn.dilated_window %i, %j {" + integer("left", left) + ", " + integer("right", 3) + ", " +
                  integer("dilation", size) + "}"),
             [=](const Problem &, const Pair &at) {
               return mod(at.i - at.j, size) == 0 && at.i - left * size <= at.j && at.j <= at.i + 3 * size;
             }};
  if (below(3))
    truth = combine(truth, drawTruth(below(2)), 3);
  return finish(truth);
}

Generator::Truth Generator::drawAffine(int depth, int64_t family, int64_t a, int64_t b) {
  if (depth == 0)
    return drawAffineLeaf(family, a, b);
  if (below(4) == 0)
    return invert(drawAffine(depth - 1, family, a, b));
  Truth x = drawAffine(depth - 1, family, a, b);
  return combine(x, drawAffine(depth - 1, family, a, b), below(8));
}

/// Family 0 speaks of i - j, 1 of j, 2 of j and a length per batch that is one number in every rectangle.
Generator::Truth Generator::drawAffineLeaf(int64_t family, int64_t a, int64_t b) {
  int64_t c = between(-20, 40);
  if (family == 2)
    return {emit("attn.key_length %b, %j, %len : tensor<?xi32>"),
            [=](const Problem &p, const Pair &at) { return at.j < p.len.at(0, at.b); }};
  if (family == 1 && below(2)) {
    int64_t length = between(1, 40);
    return {emit("attn.prefix %j {" + integer("length", length) + "}"),
            [=](const Problem &, const Pair &at) { return at.j < length; }};
  }
  int64_t predicate = below(6);
  std::string end = std::string(kComparisons[predicate]);
  if (family == 1)
    return {emit("arith.cmpi " + end + ", %j, " + constant(c) + " : index"),
            [=](const Problem &, const Pair &at) { return compare(predicate, at.j, c); }};
  int64_t left = below(20), right = below(20);
  switch (below(4)) {
  case 0:
    return {emit("attn.causal %i, %j"), [](const Problem &, const Pair &at) { return at.j <= at.i; }};
  case 1:
    return {emit("attn.window %i, %j {" + integer("left", left) + ", " + integer("right", right) + "}"),
            [=](const Problem &, const Pair &at) { return at.i - left <= at.j && at.j <= at.i + right; }};
  case 2: { // the same form, scaled and with the sides exchanged
    std::string i = emit("arith.addi %i, " + constant(c) + " : index");
    std::string twice = emit("arith.muli " + i + ", " + constant(2) + " : index");
    std::string j = emit("arith.muli %j, " + constant(2) + " : index");
    return {emit("arith.cmpi " + end + ", " + j + ", " + twice + " : index"),
            [=](const Problem &, const Pair &at) { return compare(predicate, 2 * at.j, 2 * (at.i + c)); }};
  }
  default: {
    std::string distance = emit("index.sub %i, %j");
    return {emit("arith.cmpi " + end + ", " + distance + ", " + constant(c) + " : index"),
            [=](const Problem &, const Pair &at) { return compare(predicate, at.i - at.j, c); }};
  }
  }
}
