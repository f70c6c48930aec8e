//===- Routing.cpp - Rows scored, and the best of them ----------------------===//
#include "Steps.h"
#include <limits>

using namespace mlir;

namespace attn {

using Range = StepBuilder::Range;
using Values = StepBuilder::Values;

void buildNormalizeRows(StepBuilder &s, NormalizeRowsOp op) {
  Value input = op.getInput(), output = op.getOutput();
  SmallVector<Range> mine = s.share({{input, 0}, {input, 1}, {input, 2, 16}});
  Value b = mine[0].from, h = mine[1].from;
  Range lanes = s.whole(input, 3);
  Value count = s.toF32(lanes.to);
  s.forEach(mine[2], [&](Value n) {
    auto load = [&](Value d, int64_t width) { return s.load(input, {b, h, n, d}, width); };
    Value mean = op.getCentered() ? s.divide(s.sumLanes(lanes, load), count) : Value();
    auto centered = [&](Value d, int64_t width) {
      Value x = load(d, width);
      return mean ? s.sub(x, s.splat(mean, width)) : x;
    };
    Value squares = s.sumLanes(lanes, [&](Value d, int64_t width) {
      Value x = centered(d, width);
      return s.mul(x, x);
    });
    Value root = s.sqrt(s.add(s.divide(squares, count), s.f32(op.getEps().convertToDouble())));
    Value factor = s.select(s.equal(root, s.f32(0)), s.f32(0), s.divide(s.f32(1), root));
    s.forLanes(lanes, [&](Value d, int64_t width) {
      s.store(s.mul(centered(d, width), s.splat(factor, width)), output, {b, h, n, d});
    });
  });
}

void buildRowScores(StepBuilder &s, RowScoresOp op) {
  Value input = op.getInput(), centroids = op.getCentroids(), scores = op.getScores();
  SmallVector<Range> mine = s.share({{scores, 0}, {scores, 1}, {scores, 2, 64}});
  Value b = mine[0].from, g = mine[1].from, count = s.dim(centroids, 1);
  Value h = s.divide(g, count), c = s.modulo(g, count);
  s.forEach(mine[2], [&](Value n) {
    Value score = s.sumLanes(s.whole(input, 3), [&](Value d, int64_t width) {
      return s.mul(s.load(input, {b, h, n, d}, width), s.load(centroids, {h, c, d}, width));
    });
    s.store(score, scores, {b, g, n});
  });
}

/// An f32 as an unsigned number of 32 bits in the same order; -0 is 0 and NaN -inf.
static Value orderOf(StepBuilder &s, Value x) {
  x = s.select(s.equal(x, x), x, s.f32(-std::numeric_limits<float>::infinity()));
  Type i32 = s.b.getI32Type(), i64 = s.b.getI64Type();
  Value bits = s.make<arith::ExtUIOp>(i64, s.make<arith::BitcastOp>(i32, x));
  Value word = s.make<arith::IndexCastOp>(s.b.getIndexType(), bits);
  Value top = s.index(int64_t(1) << 31), negative = s.make<arith::CmpIOp>(arith::CmpIPredicate::uge, word, top);
  return s.select(negative, s.sub(s.index(int64_t(1) << 32), word), s.add(word, top));
}

// The order of the last one that is taken is found bit by bit; then one pass writes what is above it, and of its equals
// as many as there is room for. On a GPU a team counts, and each of its members writes a stretch of the tokens.
void buildTopRows(StepBuilder &s, TopRowsOp op) {
  s.formTeams();
  Value scores = op.getScores(), rows = op.getRows();
  SmallVector<Range> mine = s.share({{scores, 0}, {scores, 1}});
  Value b = mine[0].from, g = mine[1].from, zero = s.index(0);
  Range tokens{zero, s.dim(scores, 2), false};
  Value wanted = s.min(s.index(op.getCount()), tokens.to);
  auto order = [&](Value n) { return orderOf(s, s.load(scores, {b, g, n})); };
  auto countFrom = [&](Value least) {
    Values own = s.foldTeam(tokens, zero, [&](Value n, ValueRange count) {
      return Values{s.select(s.less(order(n), least), count[0], s.add(count[0], 1))};
    });
    return s.teamSum(own[0]);
  };
  Values found = s.loop(zero, s.index(32), {zero, s.index(int64_t(1) << 31)}, [&](Value, ValueRange so) {
    Value higher = s.add(so[0], so[1]), few = s.less(countFrom(higher), wanted);
    return Values{s.select(few, so[0], higher), s.divide(so[1], s.index(2))};
  });
  Value least = found[0], room = s.sub(wanted, countFrom(s.add(least, 1)));
  // From the next place and the room for equals on; what is taken is written where `writes`.
  auto take = [&](Range range, Value place, Value room, bool writes) {
    return s.loop(range.from, range.to, {place, room}, [&](Value n, ValueRange so) {
      Value score = order(n), above = s.less(least, score);
      Value equal = s.both(s.equal(score, least), s.less(zero, so[1])), taken = s.make<arith::OrIOp>(above, equal);
      if (writes)
        s.ifThen(taken, [&] { s.store(n, rows, {b, g, so[0]}); });
      return Values{s.select(taken, s.add(so[0], 1), so[0]), s.select(equal, s.sub(so[1], s.index(1)), so[1])};
    });
  };
  Range own = s.stretch(tokens);
  Value place = zero;
  if (s.onDevice()) {
    Value equals = s.fold(own.from, own.to, zero, [&](Value n, Value count) {
      return s.select(s.equal(order(n), least), s.add(count, 1), count);
    });
    room = s.sub(room, s.sumBefore(equals));
    place = s.sumBefore(take(own, zero, room, /*writes=*/false)[0]);
  }
  take(own, place, room, /*writes=*/true);
  s.forTeam({wanted, s.index(op.getCount()), false}, [&](Value w) { s.store(s.index(-1), rows, {b, g, w}); });
}

} // namespace attn
