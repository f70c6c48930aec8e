//===- FewQueries.cpp - Runs of full tiles for one or a few queries -------===//
//
// With a few queries a vector of queries is mostly empty, and time is what reading K and V takes. Here the numbers of a
// row lie in vector lanes: rows of K and V are read once, as they lie and in their type, and scores of as many keys as
// there are lanes come out of a tree of sums. All is f32 but what is read.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"

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
/// Keys of a turn of the inner loops.
static constexpr int64_t kKeys = 4;
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

namespace {

/// A function under construction: its memory and the parts of a chunk of keys.
class FewQueries {
public:
  FewQueries(Emit &e, ExpForm exp, int64_t dim, int64_t valueDim) : e(e), exp(exp), dim(dim), valueDim(valueDim) {}

  Value slot, weights, key, value, rows;
  Value perQuery;               // 1 / rows in fixed point
  Value queries, outputs, sums; // row by row: scaled queries, outputs, sums of the weights of a chunk by lanes
  Value fours;                  // sums of four key rows each

  void weigh(Value first);
  Value isHigh();
  void accumulate(Value first);
  /// Copies columns of the slot, in which queries are lanes, from or to rows.
  void copy(Value at, int64_t width, Value memory, bool toSlot);

private:
  static int64_t elementBytes(Value matrix) { return cast<MemRefType>(matrix.getType()).getElementTypeBitWidth() / 8; }
  /// Narrow rows are half as many lines, which the hardware fetches in time.
  bool fetches() const { return elementBytes(key) == 4; }
  Value nextRows(Value matrix, Value row, int64_t width);
  void fetch(Value matrix, Value next, Value r, Value i, int64_t from, int64_t to);

  Emit &e;
  ExpForm exp;
  int64_t dim, valueDim;
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

// As many keys as there are lanes for all queries, while they are in the cache.
void FewQueries::weigh(Value first) {
  e.loop(e.index(0), rows, 1, [&](Value r) { e.vstore(e.splat(0), sums, e.mul(r, e.lanes)); });
  e.loop(e.index(0), e.index(kChunk), e.lanes, [&](Value group) {
    Value row = e.add(first, group), next = fetches() ? nextRows(key, row, dim) : Value();
    e.loop(e.index(0), rows, 1, [&](Value r) {
      Values query, sumsOfFour;
      for (int64_t d = 0; d < dim; d += e.lanes)
        query.push_back(e.vload(queries, e.add(e.mul(r, dim), d)));
      e.loop(e.index(0), e.index(e.lanes), kKeys, [&](Value four) {
        Values products;
        for (int64_t i = 0; i < kKeys; ++i) {
          Value sum = e.splat(0), at = e.add(four, i), own = e.add(row, at);
          if (fetches())
            fetch(key, next, r, at, 0, dim);
          for (auto [n, q] : llvm::enumerate(query))
            sum = e.fma(e.vloadWide(key, {own, e.index(int64_t(n) * e.lanes)}), q, sum);
          products.push_back(sum);
        }
        e.vstore(sumOfRows(e, products, 1), fours, e.mul(four, e.lanes / kKeys));
      });
      for (int64_t four = 0; four < e.lanes; four += kKeys)
        sumsOfFour.push_back(e.vload(fours, e.index(four * e.lanes / kKeys)));
      Value minusM = e.broadcast(e.load(slot, r));
      Value weight = e.exp2(sumOfRows(e, sumsOfFour, kKeys), e.reference(minusM, exp), exp), own = e.mul(r, e.lanes);
      e.vstore(weight, weights, e.add(e.mul(r, kChunk), group));
      e.vstore(e.addf(e.vload(sums, own), weight), sums, own);
    });
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
  e.loop(e.index(0), rows, 1, [&](Value r) {
    Value sum = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, e.vload(sums, e.mul(r, e.lanes)),
                                            arith::FastMathFlags::reassoc);
    Value place = e.add(r, e.lanes);
    e.store(e.addf(e.load(slot, place), sum), slot, place);
  });
  e.loop(e.index(0), e.index(kChunk), e.lanes, [&](Value group) {
    Value row = e.add(first, group), next = fetches() ? nextRows(value, row, valueDim) : Value();
    e.loop(e.index(0), rows, 1, [&](Value r) {
      for (int64_t from = 0; from < valueDim; from += kColumns * e.lanes) {
        int64_t columns = std::min(kColumns, (valueDim - from) / e.lanes);
        auto place = [&](int64_t c) { return e.add(e.mul(r, valueDim), from + c * e.lanes); };
        Values acc(columns, e.splat(0));
        acc = e.loop(e.index(0), e.index(e.lanes), kKeys, acc, [&](Value four, ValueRange carried) {
          Values acc(carried);
          for (int64_t i = 0; i < kKeys; ++i) {
            Value at = e.add(four, i), own = e.add(row, at);
            if (fetches())
              fetch(value, next, r, at, from, from + columns * e.lanes);
            Value weight = e.broadcast(e.load(weights, e.add(e.add(e.mul(r, kChunk), group), at)));
            for (int64_t c = 0; c < columns; ++c)
              acc[c] = e.fma(weight, e.vloadWide(value, {own, e.index(from + c * e.lanes)}), acc[c]);
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
func::FuncOp MicroKernels::fewQueriesRun(MemRefType key, MemRefType value) {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, weights, key, value, from, to, queries
  SmallVector<Type> types{slotType(), index, index, slotType(), key, value, index, index, index};
  return build(name("few_queries_run"), types, {index}, [&](Body &body) {
    Emit &e = body.e;
    ValueRange args = body.args;
    int64_t dim = state.getDim(), valueDim = state.getValueDim();
    Layout at = layout(e, e.index(dim), e.index(valueDim));
    auto memory = [&](int64_t floats) {
      auto type = MemRefType::get({floats}, e.b.getF32Type());
      Value made = memref::AllocaOp::create(e.b, e.loc, type, e.b.getI64IntegerAttr(kLineBytes));
      return memref::CastOp::create(e.b, e.loc, slotType(), made).getResult();
    };
    FewQueries few(e, block.exp, dim, valueDim);
    few.slot = args[0], few.weights = args[3], few.key = args[4], few.value = args[5], few.rows = args[8];
    few.perQuery = e.add(e.make<arith::DivUIOp>(e.index(1 << kShareBits), few.rows), 1);
    few.queries = memory(mostFewQueries() * dim);
    few.outputs = memory(mostFewQueries() * valueDim);
    few.sums = memory(mostFewQueries() * block.lanes);
    few.fours = memory(block.lanes / kKeys * block.lanes);
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
          e.ifThen(arith::XOrIOp::create(e.b, loc, high, arith::ConstantIntOp::create(e.b, loc, 1, 1)),
                   [&] { few.accumulate(now[0]); });
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
