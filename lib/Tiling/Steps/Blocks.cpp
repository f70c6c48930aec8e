//===- Blocks.cpp - Blocks of keys by score -----------------------------------===//
#include "Steps.h"
#include <limits>

using namespace mlir;

namespace attn {

using Range = StepBuilder::Range;
using Values = StepBuilder::Values;

void buildBlockMeans(StepBuilder &s, BlockMeansOp op) {
  Value input = op.getInput(), output = op.getOutput();
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from, u = mine[2].from, from = s.mul(u, op.getBlock());
  Value to = s.min(s.add(from, op.getBlock()), s.dim(input, 2)), count = s.toF32(s.sub(to, from));
  s.forLanes(mine[3], [&](Value d, int64_t width) {
    Value total = s.fold(from, to, s.f32(0, width),
                         [&](Value n, Value total) { return s.add(total, s.load(input, {b, h, n, d}, width)); });
    s.store(s.divide(total, s.splat(count, width)), output, {b, h, u, d});
  });
}

namespace {

/// One row of scores. It takes [0, first) and [local, behind); others come from [first, local) and [behind, end).
class BlockRow {
public:
  BlockRow(StepBuilder &s, TopBlocksOp op, Value b, Value g, Value u);
  void write();

private:
  Value score(Value v, int64_t width) { return s.load(op.getScores(), {b, g, u, v}, width); }
  Value countIf(arith::CmpFPredicate predicate, Value bound);
  Value findLeast();

  StepBuilder &s;
  TopBlocksOp op;
  Value b, g, u;
  Value first, local, behind, end;
  Value wanted; // how many others
};

BlockRow::BlockRow(StepBuilder &s, TopBlocksOp op, Value b, Value g, Value u) : s(s), op(op), b(b), g(g), u(u) {
  Value queries = s.dim(op.getQuery(), 2), earlier = s.sub(s.dim(op.getKey(), 2), queries), zero = s.index(0);
  Value row = s.mul(u, op.getQueries()), block = s.index(op.getBlock());
  Value from = s.add(row, earlier), to = s.add(s.min(s.add(row, op.getQueries()), queries), earlier);
  // Queries before the first key have no block.
  behind = s.divide(s.add(s.max(to, zero), op.getBlock() - 1), block);
  end = op.getCausal() ? behind : s.dim(op.getScores(), 3);
  first = s.min(s.index(op.getFirst()), end);
  Value own = s.divide(s.max(from, zero), block);
  behind = s.max(behind, first);
  local = op.getLocal() == 0 ? behind : s.sub(own, s.index(int64_t(op.getLocal()) - 1));
  local = s.min(s.max(local, first), behind);
  Value always = s.add(first, s.sub(behind, local));
  wanted = s.toF32(s.max(s.sub(s.index(op.getCount()), always), zero));
}

/// Of the others.
Value BlockRow::countIf(arith::CmpFPredicate predicate, Value bound) {
  auto count = [&](Range range) {
    return s.sumLanes(range, [&](Value v, int64_t width) {
      Value holds = s.make<arith::CmpFOp>(predicate, score(v, width), s.splat(bound, width));
      return s.select(holds, s.f32(1, width), s.f32(0, width));
    });
  };
  Value before = count({first, local, false});
  return op.getCausal() ? before : s.add(before, count({behind, end, false}));
}

/// The number of an order: f32 in the order of unsigned numbers of 32 bits, as in buildTopRows.
static Value numberOf(StepBuilder &s, Value order) {
  Value top = s.index(int64_t(1) << 31);
  Value bits = s.select(s.less(order, top), s.sub(s.index(int64_t(1) << 32), order), s.sub(order, top));
  Value wide = s.make<arith::IndexCastOp>(s.b.getI64Type(), bits);
  return s.make<arith::BitcastOp>(s.b.getF32Type(), s.make<arith::TruncIOp>(s.b.getI32Type(), wide));
}

/// The score of the last one that is taken, bit by bit; -inf where all are.
Value BlockRow::findLeast() {
  Values found = s.loop(s.index(0), s.index(32), {s.index(0), s.index(int64_t(1) << 31)}, [&](Value, ValueRange so) {
    Value higher = s.add(so[0], so[1]);
    Value few = s.less(countIf(arith::CmpFPredicate::OGE, numberOf(s, higher)), wanted);
    return Values{s.select(few, so[0], higher), s.divide(so[1], s.index(2))};
  });
  constexpr int64_t kOrderOfMinusInfinity = 0x00800000;
  return numberOf(s, s.max(found[0], s.index(kOrderOfMinusInfinity)));
}

void BlockRow::write() {
  Value least = findLeast(), none = s.f32(-std::numeric_limits<float>::infinity());
  Value room = s.sub(wanted, countIf(arith::CmpFPredicate::OGT, least));
  room = s.select(s.equal(least, none), s.f32(0), room);
  auto inside = [&](Value from, Value v, Value to) { return s.both(s.negate(s.less(v, from)), s.less(v, to)); };
  auto either = [&](Value x, Value y) { return s.make<arith::OrIOp>(x, y); };
  s.fold(s.index(0), s.dim(op.getScores(), 3), room, [&](Value v, Value room) {
    Value always = either(s.less(v, first), inside(local, v, behind)), x = score(v, 1);
    Value other = s.both(s.negate(always), s.less(v, end)), hasRoom = s.less(s.f32(0), room);
    Value equal = s.both(s.both(other, s.equal(x, least)), hasRoom);
    Value taken = either(either(always, equal), s.both(other, s.less(least, x)));
    s.store(s.select(taken, s.index(1), s.index(0)), op.getTable(), {b, g, u, v});
    return s.select(equal, s.sub(room, s.f32(1)), room);
  });
}

} // namespace

void buildTopBlocks(StepBuilder &s, TopBlocksOp op) {
  Value scores = op.getScores();
  SmallVector<Range> mine = s.share({{scores, 0}, {scores, 1}, {scores, 2, 8}});
  s.forEach(mine[2], [&](Value u) { BlockRow(s, op, mine[0].from, mine[1].from, u).write(); });
}

} // namespace attn
