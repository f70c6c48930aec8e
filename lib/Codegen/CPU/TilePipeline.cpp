//===- TilePipeline.cpp - Runs of full tiles by AMX, overlapped -----------===//
//
// Keys pass in units of 64. While the tile registers multiply, the vector registers compute exponentials: step u is
// O += V^T P of unit u - 1, then S = K Q^T of unit u + 1, and behind each product some weights of unit u. One buffer of
// scores and one of weights do, so that both stay in the first-level cache: the weights of u - 1 are in tile registers
// before the first of u is stored, and the weights of u are half a unit ahead when the products of u + 1 take the place
// of its scores. Sums of products are stored one tile late, since a store waits for the product.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"
#include "TileInstructions.h"
#include <cstdlib>

using namespace mlir;

namespace attn::cpu {

/// Keys of a unit, and its pairs of keys: the weights of a pair are one word for each query.
static constexpr int64_t kUnit = 64, kPairs = kUnit / 2;
/// Queries: two columns of tiles.
static constexpr int64_t kColumns = 2;
/// Bytes of the scores of a key, of a pair, and from the weights of one column of queries to the other.
static constexpr int64_t kScoreBytes = kColumns * 64, kPairBytes = 2 * kScoreBytes, kColumnBytes = kPairs * 64;

namespace {

/// Pairs whose weights are computed beside a row of tiles of O, and of S.
struct Interleaving {
  int64_t values, keys;

  /// As even as comes out whole.
  static Interleaving choose(int64_t valueRows) {
    Interleaving best = {0, kPairs / (kUnit / kTileRows)};
    for (int64_t keys = 0; keys < kPairs / (kUnit / kTileRows); ++keys) {
      int64_t rest = kPairs - keys * (kUnit / kTileRows);
      if (rest % valueRows)
        continue;
      Interleaving next = {rest / valueRows, keys};
      if (std::abs(next.values - next.keys) < std::abs(best.values - best.keys))
        best = next;
    }
    return best;
  }
};

class Pipeline {
public:
  Pipeline(Emit &e, int64_t dim, int64_t valueDim, bool exact)
      : e(e), tiles(e), dim(dim), valueRows(valueDim / kTileRows), exact(exact),
        pairs(Interleaving::choose(valueDim / kTileRows)) {}

  /// Addresses, the bytes between rows of keys, and what gives the place of a block of packed values.
  Value queries, key, scores, weights, output, spare, keyBytes;
  llvm::function_ref<Value(Value)> blockAt;
  Value scale;
  Value minusM[kColumns]; // of the exponent of 2

  Values runUnits(Value from, Value last, Values totals);

private:
  Values step(Value row, bool scoreNext, bool weigh, bool accumulate);
  Values add(Value row, ValueRange sums, ValueRange totals);
  struct Product {
    Value right;
    int64_t columnBytes, depthBytes; // between its four tiles
    int64_t rows;
    llvm::function_ref<std::pair<Value, Value>(Value)> left;
    Value leftPitch;
    Value sum;
    bool fromZero;
    int64_t firstPair, pairs; // of weights, and those beside a row
  };
  Values run(const Product &product, Values sums);
  Values accumulateUnit(Value row, int64_t pairs, Values sums);
  Values scoreUnit(Value row, int64_t pairs, Values sums);
  Values weighPairs(int64_t from, int64_t to, Values sums);
  Values weighPair(Value score, Value weight, int64_t bytes, int64_t weightBytes, ValueRange sums);
  Value exponential(Value score, int64_t column, Values &sums);
  Value merge(Value odd, Value even);

  Value bits(Value x) { return arith::BitcastOp::create(e.b, e.loc, e.ivec, x); }
  Value floats(Value x) { return arith::BitcastOp::create(e.b, e.loc, e.vec, x); }

  Emit &e;
  TileInstructions tiles;
  int64_t dim, valueRows;
  bool exact;
  Interleaving pairs;
};

} // namespace

/// Minimax on [-1/2, 1/2]: 2^(f + 1/2) with a relative error of 1e-4, which is nothing beside the rounding to bf16;
/// half a unit of the last place of a bf16 in [1, 2) is added, so that cutting off rounds.
static constexpr float kShort[] = {1.41411184f + 0x1p-8f, 0.980419089f, 0.343103939f, 0.0780245183f};
/// 2^f to f32, for sums that are results themselves.
static constexpr float kLong[] = {1, 0.693147f, 0.24022242f, 0.055507336f, 0.009671513f, 0.0013264727f};

// The bits of the weight in the upper half of a word, rounded.
Value Pipeline::exponential(Value score, int64_t column, Values &sums) {
  Value magic = e.splat(0x1.8p23f), x = e.fma(score, scale, minusM[column]);
  Value whole = e.subf(e.addf(x, magic), magic), f = e.subf(x, whole), y;
  for (float c : llvm::reverse(exact ? ArrayRef(kLong) : ArrayRef(kShort)))
    y = y ? e.fma(y, f, e.splat(c)) : e.splat(c);
  auto constant = [&](int64_t v, unsigned width) -> Value {
    return arith::ConstantIntOp::create(e.b, e.loc, e.b.getIntegerType(width), v);
  };
  Value weight =
      LLVM::CallIntrinsicOp::create(e.b, e.loc, e.vec, e.b.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
                                    ValueRange{y, whole, e.splat(0), constant(-1, 16), constant(4, 32)})
          .getResult(0);
  Value upper = e.splatInt(-0x10000);
  if (exact)
    sums[kColumns + column] = e.addf(sums[kColumns + column], weight);
  Value raised = exact ? arith::AddIOp::create(e.b, e.loc, bits(weight), e.splatInt(0x8000)).getResult() : bits(weight);
  Value cut = arith::AndIOp::create(e.b, e.loc, raised, upper);
  sums[column] = e.addf(sums[column], floats(cut));
  return cut;
}

// The upper halves of `even` go to the lower halves of `odd`. LLVM would make three instructions of the intrinsic.
Value Pipeline::merge(Value odd, Value even) {
  SmallVector<int8_t> from;
  for (int8_t word = 0; word < 64; word += 4)
    for (int8_t byte : {2, 3, -1, -1})
      from.push_back(byte < 0 ? byte : int8_t(word % 16 + byte));
  auto type = VectorType::get({64}, e.b.getI8Type());
  Value order = arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(from)));
  Value lower = tiles.i64(0x3333333333333333);
  return LLVM::InlineAsmOp::create(e.b, e.loc, e.ivec, ValueRange{lower, even, order, odd}, "vpshufb $3, $2, $0 {$1}",
                                   "=v,^Yk,v,v,0", /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::TailCallKind::None, LLVM::AsmDialectAttr(),
                                   ArrayAttr())
      .getResult(0);
}

Values Pipeline::weighPair(Value score, Value weight, int64_t bytes, int64_t weightBytes, ValueRange carried) {
  Values sums(carried);
  for (int64_t c = 0; c < kColumns; ++c) {
    auto load = [&](int64_t key) {
      Value at = tiles.at(score, bytes + key * kScoreBytes + c * 64);
      return LLVM::LoadOp::create(e.b, e.loc, e.vec, at, /*alignment=*/64).getResult();
    };
    Value even = exponential(load(0), c, sums), odd = exponential(load(1), c, sums);
    LLVM::StoreOp::create(e.b, e.loc, merge(odd, even), tiles.at(weight, weightBytes + c * kColumnBytes),
                          /*alignment=*/64);
  }
  return sums;
}

Values Pipeline::weighPairs(int64_t from, int64_t to, Values sums) {
  return e.loop(e.index(from), e.index(to), 1, sums, [&](Value n, ValueRange carried) {
    return weighPair(tiles.at(scores, e.mul(n, kPairBytes)), tiles.at(weights, e.mul(n, 64)), 0, 0, carried);
  });
}

// A product 64 deep, row by row of its tiles: sums 0 and 1, left factors 2 and 3, right factors 4 to 7. The sums of one
// row are stored beside the products of the next.
Values Pipeline::run(const Product &p, Values sums) {
  Value row = tiles.i64(64), pitch = tiles.i64(kScoreBytes);
  for (int64_t tile = 0; tile < 4; ++tile)
    tiles.load(4 + tile, tiles.at(p.right, tile % 2 * p.columnBytes + tile / 2 * p.depthBytes), row);
  Values carried{spare};
  llvm::append_range(carried, sums);
  carried = e.loop(e.index(0), e.index(p.rows), 1, carried, [&](Value i, ValueRange carried) {
    Value late = carried[0], first = e.mul(i, p.pairs);
    Values sums(carried.drop_front());
    Value score = tiles.at(tiles.at(scores, e.mul(first, kPairBytes)), p.firstPair * kPairBytes);
    Value weight = tiles.at(tiles.at(weights, e.mul(first, 64)), p.firstPair * 64);
    auto weigh = [&](int64_t product) {
      for (int64_t n = product * p.pairs / 4; n < (product + 1) * p.pairs / 4; ++n)
        sums = weighPair(score, weight, n * kPairBytes, n * 64, sums);
    };
    auto start = [&](int64_t tile, Value from) { p.fromZero ? tiles.zero(tile) : tiles.load(tile, from, pitch); };
    auto [left, deeper] = p.left(i);
    Value sum = tiles.at(p.sum, e.mul(i, kTileRows * kScoreBytes)), other = tiles.at(sum, 64);
    tiles.stream(2, left, p.leftPitch);
    start(0, sum);
    tiles.multiply(0, 2, 4);
    weigh(0);
    tiles.stream(3, deeper, p.leftPitch);
    tiles.multiply(0, 3, 6);
    weigh(1);
    tiles.store(1, late, pitch);
    start(1, other);
    tiles.multiply(1, 2, 5);
    weigh(2);
    tiles.multiply(1, 3, 7);
    weigh(3);
    tiles.store(0, sum, pitch);
    Values next{other};
    llvm::append_range(next, sums);
    return next;
  });
  tiles.store(1, carried[0], pitch);
  return Values(ArrayRef<Value>(carried).drop_front());
}

Values Pipeline::accumulateUnit(Value row, int64_t count, Values sums) {
  Value near = blockAt(row), far = blockAt(e.add(row, kTileDepth));
  auto left = [&](Value i) {
    Value offset = e.mul(i, kTileBytes);
    return std::pair(tiles.at(near, offset), tiles.at(far, offset));
  };
  return run({weights, kColumnBytes, kTileBytes, valueRows, left, tiles.i64(64), output, false, 0, count}, sums);
}

// Keys are read once for both columns; with more than 64 numbers of a key, sums of parts of these go through S. All
// weights are computed beside the first part.
Values Pipeline::scoreUnit(Value row, int64_t count, Values sums) {
  Value first = tiles.at(key, e.mul(row, keyBytes)), rowPitch = tiles.i64(keyBytes);
  for (int64_t part = 0; part < dim / kUnit; ++part) {
    Value start = tiles.at(first, part * kUnit * 2);
    auto left = [&](Value i) {
      Value near = tiles.at(start, e.mul(e.mul(keyBytes, kTileRows), i));
      return std::pair(near, tiles.at(near, 2 * kTileDepth));
    };
    Value right = tiles.at(queries, part * 2 * kColumns * kTileBytes);
    sums = run({right, kTileBytes, kColumns * kTileBytes, kUnit / kTileRows, left, rowPitch, scores, part == 0,
                pairs.values * valueRows, part == 0 ? count : 0},
               sums);
  }
  return sums;
}

// Step of the unit that starts at key row `row`; answers the sums of its rounded weights, with exact sums also of
// these.
Values Pipeline::step(Value row, bool scoreNext, bool weigh, bool accumulate) {
  Values sums(exact ? 2 * kColumns : kColumns, e.splat(0));
  int64_t before = pairs.values * valueRows;
  if (accumulate)
    sums = accumulateUnit(e.sub(row, e.index(kUnit)), weigh ? pairs.values : 0, sums);
  else if (weigh)
    sums = weighPairs(0, before, sums);
  if (scoreNext)
    sums = scoreUnit(e.add(row, kUnit), weigh ? pairs.keys : 0, sums);
  else if (weigh)
    sums = weighPairs(before, kPairs, sums);
  return sums;
}

// What a unit adds: to l, and with exact sums to the excess of the rounded weights. A unit that shows the reference to
// be far too low adds nothing. Carried are its row, whether it is done, and the totals.
Values Pipeline::add(Value row, ValueRange sums, ValueRange totals) {
  ValueRange own = sums.take_back(kColumns);
  Value high;
  for (Value sum : own) {
    Value passed = e.cmpf(arith::CmpFPredicate::OGT, sum, e.splat(0x1p40f));
    high = high ? Value(arith::OrIOp::create(e.b, e.loc, high, passed)) : passed;
  }
  high = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, high);
  Values next{row, arith::XOrIOp::create(e.b, e.loc, high, arith::ConstantIntOp::create(e.b, e.loc, 1, 1))};
  auto push = [&](Value total, Value more) { next.push_back(e.select(high, total, e.addf(total, more))); };
  for (int64_t c = 0; c < kColumns; ++c)
    push(totals[c], own[c]);
  for (int64_t c = 0; exact && c < kColumns; ++c)
    push(totals[kColumns + c], e.subf(sums[c], own[c]));
  return next;
}

static Values choose(Emit &e, Value condition, llvm::function_ref<Values()> then,
                     llvm::function_ref<Values()> otherwise) {
  auto op = scf::IfOp::create(
      e.b, e.loc, condition, [&](OpBuilder &, Location loc) { scf::YieldOp::create(e.b, loc, then()); },
      [&](OpBuilder &, Location loc) { scf::YieldOp::create(e.b, loc, otherwise()); });
  return Values(op.getResults());
}

// Units from `from` to `last`, there being one at least. Answers the row behind the last one done, and the totals.
Values Pipeline::runUnits(Value from, Value last, Values totals) {
  step(e.sub(from, e.index(kUnit)), /*scoreNext=*/true, /*weigh=*/false, /*accumulate=*/false);
  Values sums = choose(
      e, e.less(from, last), [&] { return step(from, true, true, false); },
      [&] { return step(from, false, true, false); });
  Values now = add(from, sums, totals);
  auto more = [&](Value next, Value done) -> Value {
    return arith::AndIOp::create(e.b, e.loc, e.less(next, last), done);
  };
  auto loop = scf::WhileOp::create(
      e.b, e.loc, ValueRange(now).getTypes(), now,
      [&](OpBuilder &, Location loc, ValueRange now) {
        scf::ConditionOp::create(e.b, loc, more(e.add(now[0], kUnit), now[1]), now);
      },
      [&](OpBuilder &, Location loc, ValueRange now) {
        Value row = e.add(now[0], kUnit);
        scf::YieldOp::create(e.b, loc, add(row, step(row, true, true, true), now.drop_front(2)));
      });
  now = Values(loop.getResults());
  now = choose(
      e, more(now[0], now[1]), [&] { return add(last, step(last, false, true, true), ValueRange(now).drop_front(2)); },
      [&] { return now; });
  Value behind = e.add(now[0], kUnit);
  e.ifThen(now[1], [&] { step(behind, false, false, true); });
  Values result{e.select(now[1], behind, now[0])};
  llvm::append_range(result, ValueRange(now).drop_front(2));
  return result;
}

bool MicroKernels::hasPipeline() const {
  return packedKeys && block.amx && vectors == kColumns && keyTile >= kUnit && !isNatural() && state.getDim() > 0 &&
         state.getDim() % kUnit == 0 && state.getValueDim() > 0 && state.getValueDim() % kTileRows == 0;
}

// Answers the row behind the last unit that was done: fewer than a unit are left, or the next one has shown the
// reference to be far too low.
func::FuncOp MicroKernels::tileRun(MemRefType key) {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, weights, key, from, to, pairs, queries, ring
  SmallVector<Type> types{slotType(), index, index, slotType(), key, index, index, slotType(), slotType(), slotType()};
  return build(name("tile_run"), types, {index}, [&](Body &body) {
    Emit &e = body.e;
    ValueRange args = body.args;
    TileInstructions tiles(e);
    Value slot = args[0], dim = e.index(state.getDim()), valueDim = e.index(state.getValueDim());
    Pipeline pipeline(e, state.getDim(), state.getValueDim(), exactSums);
    pipeline.scores = tiles.address(args[3]);
    pipeline.key = tiles.address(args[4]);
    pipeline.keyBytes = tiles.rowBytes(args[4]);
    pipeline.weights = tiles.address(args[7]);
    pipeline.queries = tiles.at(tiles.address(args[8]), 4 * tilesOffset());
    pipeline.output = tiles.at(tiles.address(slot), e.mul(layout(e, dim, valueDim).output, 4));
    auto memory = MemRefType::get({kTileRows * kScoreBytes / 4}, e.b.getF32Type());
    pipeline.spare = tiles.address(memref::AllocaOp::create(e.b, e.loc, memory, e.b.getI64IntegerAttr(64)));
    Value ring = tiles.address(args[9]), blockBytes = e.mul(ringFloats(e, dim, valueDim), 4);
    auto blockAt = [&](Value row) {
      return tiles.at(ring, e.mul(ringPlace(e, e.make<arith::DivUIOp>(row, e.index(kTileDepth))), blockBytes));
    };
    pipeline.blockAt = blockAt;
    pipeline.scale = e.mulf(e.vload(args[8], e.index(0)), e.splat(4));
    for (int64_t c = 0; c < kColumns; ++c) {
      Value m = e.mulf(e.vload(slot, e.index(c * e.lanes)), e.splat(4));
      pipeline.minusM[c] = exactSums ? m : e.subf(m, e.splat(0.5f));
    }

    SmallVector<std::pair<Value, Value>> places; // of the totals
    for (int64_t c = 0; c < kColumns; ++c)
      places.push_back({slot, e.index(queries + c * e.lanes)});
    for (int64_t c = 0; exactSums && c < kColumns; ++c)
      places.push_back({args[8], e.index(kExcess + c * e.lanes)});
    Values start{args[5]};
    for (auto [memory, at] : places)
      start.push_back(e.vload(memory, at));
    Value from = args[5], last = e.add(from, e.sub(e.roundDown(e.sub(args[6], from), kUnit), e.index(kUnit)));
    Value any = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, from, last);
    Values done = choose(
        e, any, [&] { return pipeline.runUnits(from, last, Values(ArrayRef(start).drop_front())); },
        [&] { return start; });
    for (auto [place, total] : llvm::zip_equal(places, ArrayRef(done).drop_front()))
      e.vstore(total, place.first, place.second);
    body.results = {done[0]};
  });
}

} // namespace attn::cpu
