//===- FewQueries.cpp - Runs of full tiles for one or a few queries -------===//
//
// With a few queries a vector of queries is mostly empty, and time is what reading K and V takes. Here the numbers of a
// row lie in vector lanes: rows of K and V are read once, as they lie and in their type, and scores of as many keys as
// there are lanes come out of a tree of sums. All is f32 but what is read. With AVX512-BF16 products are those of
// pairs: rows of K are pairs as they lie, and two rows of V are woven into pairs, once for all queries.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"
#include "TileInstructions.h"

using namespace mlir;

namespace attn::cpu {

/// Keys whose weights are computed before their values are read.
static constexpr int64_t kChunk = 64;
/// How far ahead rows are fetched, for one query and for several, in whose time more lines can come.
static constexpr int64_t kAheadBytes = 4096, kFarAheadBytes = 16384, kLineBytes = 64;
/// Wider rows would be too much code.
static constexpr int64_t kWidest = 256;
/// Of the fixed point in which a query's share of fetched rows is kept.
static constexpr int64_t kShareBits = 16;
/// Keys of a turn of the inner loops, and vectors of weights that are computed together.
static constexpr int64_t kKeys = 4, kTogether = 4;
/// Accumulators of a row of values that leave registers for the rest.
static constexpr int64_t kColumns = 8;

/// Lanes of x and y, or of their halves in groups of `unit`, added in pairs: a row of the tree.
static Value addPairs(Emit &e, Value x, Value y, ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  return e.addf(vector::ShuffleOp::create(e.b, e.loc, x, y, low), vector::ShuffleOp::create(e.b, e.loc, x, y, high));
}

// From level 1 on four rows add up within each four lanes, as instructions shuffle them; from level 4 on as many of
// these as there are fours in a vector. Lane i is then the sum of row i.
static Value sumOfRows(Emit &e, Values rows, int64_t level) {
  int64_t n = e.lanes, fours = n / 4;
  for (; rows.size() > 1; level *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < n; ++lane) {
      int64_t four = lane / 4, in = lane % 4;
      if (level == 1) { // x0 y0 x1 y1, x2 y2 x3 y3
        low.push_back(in % 2 * n + four * 4 + in / 2);
        high.push_back(in % 2 * n + four * 4 + 2 + in / 2);
      } else if (level == 2) { // x0 x1 y0 y1, x2 x3 y2 y3
        low.push_back(in / 2 * n + four * 4 + in % 2);
        high.push_back(in / 2 * n + four * 4 + 2 + in % 2);
      } else { // every other four of x, then of y
        int64_t from = four < fours / 2 ? 0 : n, place = four % (fours / 2) * 2;
        low.push_back(from + place * 4 + in);
        high.push_back(from + (place + 1) * 4 + in);
      }
    }
    Values next;
    for (size_t i = 0; i < rows.size(); i += 2)
      next.push_back(addPairs(e, rows[i], rows[i + 1], low, high));
    rows = std::move(next);
  }
  return rows.front();
}

bool MicroKernels::takesFewQueries() const {
  auto whole = [&](int64_t dim) { return dim > 0 && dim <= kWidest && dim % block.lanes == 0; };
  return vectors == 1 && isSoftmax() && !isNatural() && whole(state.getDim()) && whole(state.getValueDim()) &&
         keyTile * block.lanes >= kChunk * mostFewQueries();
}

// Rows of whole vectors of pairs, on a CPU that multiplies them. One query is left out: it computes little, and reads
// values best as they lie.
bool MicroKernels::fewQueriesArePairs() const {
  auto whole = [&](int64_t dim) { return dim > 0 && dim % (2 * block.lanes) == 0; };
  return packedKeys && !block.amx && whole(state.getDim()) && whole(state.getValueDim());
}

namespace {

/// A function under construction: its memory and the parts of a chunk of keys.
class FewQueries {
public:
  FewQueries(Emit &e, ExpForm exp, int64_t dim, int64_t valueDim, bool pairs)
      : e(e), memory(e), exp(exp), dim(dim), valueDim(valueDim), pairs(pairs) {}

  Value slot, weights, key, value, rows;
  Value perQuery;               // 1 / rows in fixed point
  Value queries, outputs, sums; // row by row: scaled queries, outputs, sums of the weights of a chunk by lanes
  Value fours;                  // row by row: sums of four products with keys each
  Value packed, woven, excess;  // of pairs: packed queries, values of a group of keys, sums of what rounding adds

  void weigh(Value first);
  Value isHigh();
  void accumulate(Value first);
  /// Copies columns of the slot, in which queries are lanes, from or to rows.
  void copy(Value at, int64_t width, Value memory, bool toSlot);
  /// Copies packed queries to rows.
  void copyPairs(int64_t from);
  /// Adds sums by lanes, row by row, to what lies at `to` for each query.
  void addSums(Value byLanes, Value memory, int64_t to);

private:
  static int64_t elementBytes(Value matrix) { return cast<MemRefType>(matrix.getType()).getElementTypeBitWidth() / 8; }
  /// Rows of 16 bits are half as many lines, which the hardware fetches in time where they are read one by one.
  bool fetches() const { return pairs || elementBytes(key) == 4; }
  /// Pairs are for two queries or more: beside every other key all rows have their turn.
  int64_t fetchEvery() const { return pairs ? 2 : 1; }
  void weave(Value first);
  VectorType pairType() { return VectorType::get({2 * e.lanes}, e.b.getBF16Type()); }
  Value asPairs(Value x) { return vector::BitCastOp::create(e.b, e.loc, pairType(), x); }
  /// Of a row, and bytes from it to the next one.
  struct Places {
    Value first, pitch;
  };
  Places placesOf(Value matrix, Value row) {
    Value pitch = memory.rowBytes(matrix);
    return {memory.at(memory.address(matrix), e.mul(row, pitch)), pitch};
  }
  Value loadPairs(Value row, int64_t column) {
    return LLVM::LoadOp::create(e.b, e.loc, pairType(), memory.at(row, 2 * column), /*alignment=*/2);
  }
  /// sum + a vector of a key row, given by its number or, of pairs, its address, from word `column` on, times one of a
  /// query.
  Value multiplyKey(Value row, Value address, int64_t column, Value query, Value sum) {
    if (pairs)
      return multiplyPairs(e, sum, asPairs(query), loadPairs(address, 2 * column));
    return e.fma(e.vloadWide(key, {row, e.index(column)}), query, sum);
  }
  Value storeWeight(Value place, Value weight);
  void multiplyKeys(Value first);
  Value nextRows(Value matrix, Value row, int64_t width);
  void fetch(Value matrix, Value next, Value r, Value i, int64_t from, int64_t to);

  Emit &e;
  TileInstructions memory;
  ExpForm exp;
  int64_t dim, valueDim;
  bool pairs;
};

} // namespace

void FewQueries::copy(Value at, int64_t width, Value memory, bool toSlot) {
  e.loop(e.index(0), rows, 1, [&](Value r) {
    e.loop(e.index(0), e.index(width), 1, [&](Value d) {
      Value column = e.add(e.add(at, e.mul(d, e.lanes)), r), place = e.add(e.mul(r, width), d);
      toSlot ? e.store(e.load(memory, place), slot, column) : e.store(e.load(slot, column), memory, place);
    });
  });
}

// Queries compute while memory waits, so what they will read next is fetched meanwhile, into the second level: beside
// key i of query r the row, of as many as there are lanes, whose turn it is, all of them once in the time of all
// queries.
void FewQueries::fetch(Value matrix, Value next, Value r, Value i, int64_t from, int64_t to) {
  Value keys = e.add(e.mul(r, e.lanes), i);
  Value row = e.add(next, e.make<arith::ShRUIOp>(e.mul(keys, perQuery), e.index(kShareBits)));
  for (int64_t d = from; d < to; d += kLineBytes / elementBytes(matrix))
    memref::PrefetchOp::create(e.b, e.loc, matrix, ValueRange{row, e.index(d)}, /*isWrite=*/false,
                               /*localityHint=*/2, /*isDataCache=*/true);
}

// At the end the last rows once more.
Value FewQueries::nextRows(Value matrix, Value row, int64_t width) {
  auto ahead = [&](int64_t bytes) {
    return e.index(std::max<int64_t>(bytes / (width * elementBytes(matrix)) / e.lanes, 1) * e.lanes);
  };
  Value isOne = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, rows, e.index(1));
  Value first = e.add(row, e.select(isOne, ahead(kAheadBytes), ahead(kFarAheadBytes)));
  Value count = e.make<memref::DimOp>(matrix, e.index(0));
  return e.max(e.min(first, e.sub(count, e.index(e.lanes))), e.index(0));
}

void FewQueries::copyPairs(int64_t from) {
  e.loop(e.index(0), rows, 1, [&](Value r) {
    e.loop(e.index(0), e.index(dim / 2), 1, [&](Value pair) {
      Value word = e.load(packed, e.add(e.add(e.mul(pair, kTileRows), r), from));
      e.store(word, queries, e.add(e.mul(r, dim / 2), pair));
    });
  });
}

// Rows of values in twos: a word holds a number of each.
void FewQueries::weave(Value first) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < e.lanes; ++lane)
    for (int64_t row : {int64_t(0), 2 * e.lanes}) {
      low.push_back(row + lane);
      high.push_back(row + lane + e.lanes);
    }
  Places places = placesOf(value, first);
  e.loop(e.index(0), e.index(e.lanes), 2, [&](Value i) {
    Value even = memory.at(places.first, e.mul(places.pitch, i)), odd = memory.at(even, places.pitch);
    Value place = e.mul(i, valueDim / 2);
    for (int64_t d = 0; d < valueDim; d += 2 * e.lanes) {
      Value x = loadPairs(even, d), y = loadPairs(odd, d);
      for (auto [order, column] : {std::pair(&low, d), {&high, d + e.lanes}}) {
        Value words = vector::ShuffleOp::create(e.b, e.loc, x, y, *order);
        e.vstore(vector::BitCastOp::create(e.b, e.loc, e.vec, words), woven, e.add(place, column));
      }
    }
  });
}

// Weights of as many keys as there are lanes, as products take them; answers what they are rounded to.
Value FewQueries::storeWeight(Value place, Value weight) {
  if (!pairs) {
    e.vstore(weight, weights, place);
    return weight;
  }
  Value rounded = roundWeights(e, weight), bits = arith::BitcastOp::create(e.b, e.loc, e.ivec, rounded);
  bits = arith::ShRUIOp::create(e.b, e.loc, bits, e.splatInt(16));
  auto halves = VectorType::get({e.lanes}, e.b.getI16Type()), words = VectorType::get({e.lanes / 2}, e.b.getF32Type());
  bits = arith::TruncIOp::create(e.b, e.loc, halves, bits);
  e.vstore(vector::BitCastOp::create(e.b, e.loc, words, bits), weights, e.make<arith::ShRUIOp>(place, e.index(1)));
  return rounded;
}

// Fours of products of a chunk with all queries, of as many keys as there are lanes while they are in the cache.
void FewQueries::multiplyKeys(Value first) {
  int64_t words = pairs ? dim / 2 : dim;
  e.loop(e.index(0), e.index(kChunk), e.lanes, [&](Value group) {
    Value row = e.add(first, group), next = fetches() ? nextRows(key, row, dim) : Value();
    Places places = pairs ? placesOf(key, row) : Places();
    e.loop(e.index(0), rows, 1, [&](Value r) {
      Values query;
      for (int64_t d = 0; d < words; d += e.lanes)
        query.push_back(e.vload(queries, e.add(e.mul(r, words), d)));
      Value to = e.mul(e.add(e.mul(r, kChunk), group), e.lanes / kKeys);
      e.loop(e.index(0), e.index(e.lanes), kKeys, [&](Value four) {
        Values products;
        Value fourAt = pairs ? memory.at(places.first, e.mul(places.pitch, four)) : Value();
        for (int64_t i = 0; i < kKeys; ++i) {
          Value sum = e.splat(0), at = e.add(four, i), own = e.add(row, at);
          if (fetches() && i % fetchEvery() == 0)
            fetch(key, next, r, at, 0, dim);
          Value address = pairs ? memory.at(fourAt, e.mul(places.pitch, i)) : Value();
          for (auto [n, q] : llvm::enumerate(query))
            sum = multiplyKey(own, address, int64_t(n) * e.lanes, q, sum);
          products.push_back(sum);
        }
        e.vstore(sumOfRows(e, products, 1), fours, e.add(to, e.mul(four, e.lanes / kKeys)));
      });
    });
  });
}

// Several vectors of weights at once, whose long chains of instructions then overlap.
void FewQueries::weigh(Value first) {
  multiplyKeys(first);
  e.loop(e.index(0), rows, 1, [&](Value r) {
    Reference reference = e.reference(e.broadcast(e.load(slot, r)), exp);
    Values zeros(excess ? 2 : 1, e.splat(0));
    Values all = e.loop(e.index(0), e.index(kChunk), kTogether * e.lanes, zeros, [&](Value some, ValueRange carried) {
      Values all(carried);
      for (int64_t group = 0; group < kTogether * e.lanes; group += e.lanes) {
        Value place = e.add(e.add(e.mul(r, kChunk), some), group), from = e.mul(place, e.lanes / kKeys);
        Values sumsOfFour;
        for (int64_t four = 0; four < e.lanes; four += kKeys)
          sumsOfFour.push_back(e.vload(fours, e.add(from, four * (e.lanes / kKeys))));
        Value score = sumOfRows(e, sumsOfFour, kKeys);
        if (pairs) // queries are packed without their factor
          score = e.mulf(score, e.vload(packed, e.index(0)));
        Value weight = e.exp2(score, reference, exp), rounded = storeWeight(place, weight);
        all[0] = e.addf(all[0], excess ? weight : rounded);
        if (excess)
          all[1] = e.addf(all[1], e.subf(rounded, weight));
      }
      return all;
    });
    e.vstore(all[0], sums, e.mul(r, e.lanes));
    if (excess)
      e.vstore(all[1], excess, e.mul(r, e.lanes));
  });
}

void FewQueries::addSums(Value byLanes, Value memory, int64_t to) {
  e.loop(e.index(0), rows, 1, [&](Value r) {
    Value lanes = e.vload(byLanes, e.mul(r, e.lanes)), place = e.add(r, to);
    Value sum =
        vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, lanes, arith::FastMathFlags::reassoc);
    e.store(e.addf(e.load(memory, place), sum), memory, place);
  });
}

Value FewQueries::isHigh() {
  Value none = arith::ConstantIntOp::create(e.b, e.loc, 0, 1);
  return e.loop(e.index(0), rows, 1, {none}, [&](Value r, ValueRange high) {
    Value passed = e.cmpf(arith::CmpFPredicate::OGT, e.vload(sums, e.mul(r, e.lanes)), e.splat(0x1p40f));
    Value any = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, passed);
    return Values{arith::OrIOp::create(e.b, e.loc, high[0], any)};
  })[0];
}

void FewQueries::accumulate(Value first) {
  int64_t keys = pairs ? 2 : 1; // of a step of the products
  e.loop(e.index(0), e.index(kChunk), e.lanes, [&](Value group) {
    Value row = e.add(first, group), next = fetches() ? nextRows(value, row, valueDim) : Value();
    if (pairs)
      weave(row);
    e.loop(e.index(0), rows, 1, [&](Value r) {
      for (int64_t from = 0; from < valueDim; from += kColumns * e.lanes) {
        int64_t columns = std::min(kColumns, (valueDim - from) / e.lanes);
        auto place = [&](int64_t c) { return e.add(e.mul(r, valueDim), from + c * e.lanes); };
        Value own = e.add(e.mul(r, kChunk / keys), e.make<arith::DivUIOp>(group, e.index(keys)));
        Values acc(columns, e.splat(0));
        acc = e.loop(e.index(0), e.index(e.lanes / keys), kKeys / keys, acc, [&](Value step, ValueRange carried) {
          Values acc(carried);
          for (int64_t i = 0; i < kKeys / keys; ++i) {
            Value at = e.add(step, i);
            if (fetches())
              fetch(value, next, r, e.mul(at, keys), from, from + columns * e.lanes);
            Value weight = e.broadcast(e.load(weights, e.add(own, at)));
            for (int64_t c = 0; c < columns; ++c) {
              int64_t column = from + c * e.lanes;
              if (pairs)
                acc[c] = multiplyPairs(e, acc[c], asPairs(weight),
                                       asPairs(e.vload(woven, e.add(e.mul(at, valueDim), column))));
              else
                acc[c] = e.fma(weight, e.vloadWide(value, {e.add(row, at), e.index(column)}), acc[c]);
            }
          }
          return acc;
        });
        for (int64_t c = 0; c < columns; ++c)
          e.vstore(e.addf(e.vload(outputs, place(c)), acc[c]), outputs, place(c));
      }
    });
  });
}

// Answers the row behind the last chunk that was done: fewer keys are left, or the next one has shown the reference to
// be far too low. Lanes behind the queries hold the last of these once more, and so do their sums.
func::FuncOp MicroKernels::fewQueriesRun(MemRefType key, MemRefType value, bool pairs) {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, weights, key, value, from, to, queries, then, of pairs, packed queries
  SmallVector<Type> types{slotType(), index, index, slotType(), key, value, index, index, index};
  if (pairs)
    types.push_back(slotType());
  return build(name(pairs ? "few_pairs_run" : "few_queries_run"), types, {index}, [&](Body &body) {
    Emit &e = body.e;
    ValueRange args = body.args;
    int64_t dim = state.getDim(), valueDim = state.getValueDim();
    Layout at = layout(e, e.index(dim), e.index(valueDim));
    auto memory = [&](int64_t floats) {
      auto type = MemRefType::get({floats}, e.b.getF32Type());
      Value made = memref::AllocaOp::create(e.b, e.loc, type, e.b.getI64IntegerAttr(kLineBytes));
      return memref::CastOp::create(e.b, e.loc, slotType(), made).getResult();
    };
    FewQueries few(e, block.exp, dim, valueDim, pairs);
    few.slot = args[0], few.weights = args[3], few.key = args[4], few.value = args[5], few.rows = args[8];
    few.perQuery = e.add(e.make<arith::DivUIOp>(e.index(1 << kShareBits), few.rows), 1);
    few.packed = pairs ? args[9] : Value();
    few.queries = memory(mostFewQueries() * dim);
    few.outputs = memory(mostFewQueries() * valueDim);
    few.sums = memory(mostFewQueries() * block.lanes);
    few.fours = memory(mostFewQueries() * kChunk * block.lanes / kKeys);
    few.woven = pairs ? memory(block.lanes / 2 * valueDim) : Value();
    few.excess = pairs && exactSums ? memory(mostFewQueries() * block.lanes) : Value();
    if (pairs)
      few.copyPairs(tilesOffset());
    else
      few.copy(at.scaled, dim, few.queries, /*toSlot=*/false);
    few.copy(at.output, valueDim, few.outputs, /*toSlot=*/false);
    Value from = args[6], last = e.sub(args[7], e.index(kChunk)), no = arith::ConstantIntOp::create(e.b, e.loc, 0, 1);
    auto loop = scf::WhileOp::create(
        e.b, e.loc, TypeRange{index, no.getType()}, ValueRange{from, no},
        [&](OpBuilder &, Location loc, ValueRange now) {
          Value one = arith::ConstantIntOp::create(e.b, loc, 1, 1);
          Value more = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, now[0], last);
          Value go = e.make<arith::AndIOp>(more, e.make<arith::XOrIOp>(now[1], one));
          scf::ConditionOp::create(e.b, loc, go, now);
        },
        [&](OpBuilder &, Location loc, ValueRange now) {
          few.weigh(now[0]);
          Value high = few.isHigh();
          e.ifThen(arith::XOrIOp::create(e.b, loc, high, arith::ConstantIntOp::create(e.b, loc, 1, 1)), [&] {
            few.addSums(few.sums, few.slot, queries);
            if (few.excess)
              few.addSums(few.excess, few.packed, kExcess);
            few.accumulate(now[0]);
          });
          Value next = e.select(high, now[0], e.add(now[0], kChunk));
          scf::YieldOp::create(e.b, loc, ValueRange{next, high});
        });
    few.copy(at.output, valueDim, few.outputs, /*toSlot=*/true);
    Value sum = e.load(args[0], e.add(e.sub(few.rows, e.index(1)), queries));
    e.loop(few.rows, e.index(queries), 1, [&](Value r) { e.store(sum, args[0], e.add(r, queries)); });
    body.results = {loop.getResult(0)};
  });
}

} // namespace attn::cpu
