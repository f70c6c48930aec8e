//===- Sinkhorn.cpp - Soft permutations of blocks -----------------------------===//
#include "Steps.h"
#include <limits>

using namespace mlir;

namespace attn {

using Range = StepBuilder::Range;
using Values = StepBuilder::Values;

namespace {

/// log(sum exp(x)) of what has been added: a maximum, and the sum below it.
class LogSum {
public:
  explicit LogSum(StepBuilder &s) : s(s), top(none()), sum(s.f32(0)) {}
  LogSum(StepBuilder &s, ValueRange so) : s(s), top(so[0]), sum(so[1]) {}
  Values get() const { return {top, sum}; }

  LogSum add(Value x) const {
    Value higher = s.max(top, x), at = s.select(s.equal(higher, none()), s.f32(0), higher);
    return LogSum(s, {higher, s.add(s.mul(sum, s.exp(s.sub(top, at))), s.exp(s.sub(x, at)))});
  }
  /// x less the logarithm; x itself where there is nothing to divide by.
  Value normalize(Value x) const {
    Value empty = s.equal(top, none()), divisor = s.select(empty, s.f32(1), sum);
    return s.sub(x, s.select(empty, s.f32(0), s.add(top, s.log(divisor))));
  }

  /// Of what all members of a team have added.
  LogSum ofTeam() const {
    Value highest = s.teamMax(top), at = s.select(s.equal(highest, none()), s.f32(0), highest);
    return LogSum(s, {highest, s.teamSum(s.mul(sum, s.exp(s.sub(top, at))))});
  }

private:
  Value none() const { return s.f32(-std::numeric_limits<float>::infinity()); }

  StepBuilder &s;
  Value top, sum;
};

/// One head's matrix of logarithms, normalised where the result will be; on a GPU by a team.
class Matrix {
public:
  Matrix(StepBuilder &s, SinkhornOp op, Value b, Value h)
      : s(s), op(op), b(b), h(h), all{s.index(0), s.dim(op.getLogits(), 2), false} {}

  void read() {
    Value none = s.f32(-std::numeric_limits<float>::infinity());
    forAll([&](Value u, Value v) {
      Value x = s.load(op.getLogits(), {b, h, u, v});
      put(op.getCausal() ? s.select(s.less(v, u), x, none) : x, u, v);
    });
  }
  void normalizeRows() {
    s.forEach(all, [&](Value u) {
      LogSum sum = sumOver(u).ofTeam();
      s.forTeam(all, [&](Value v) { put(sum.normalize(get(u, v)), u, v); });
    });
    s.syncTeam();
  }
  void normalizeColumns() {
    s.forTeam(all, [&](Value v) {
      // A causal sum is of what has been seen from above.
      Values seen = s.loop(all.from, all.to, LogSum(s).get(), [&](Value u, ValueRange so) {
        LogSum sum = LogSum(s, so).add(get(u, v));
        if (op.getCausal())
          put(sum.normalize(get(u, v)), u, v);
        return sum.get();
      });
      if (!op.getCausal())
        s.forEach(all, [&](Value u) { put(LogSum(s, seen).normalize(get(u, v)), u, v); });
    });
    s.syncTeam();
  }
  void exponentiate() {
    forAll([&](Value u, Value v) { put(s.exp(get(u, v)), u, v); });
  }

private:
  Value get(Value u, Value v) { return s.load(op.getOutput(), {b, h, u, v}); }
  void put(Value x, Value u, Value v) { s.store(x, op.getOutput(), {b, h, u, v}); }
  void forAll(StepBuilder::Body<Value, Value> body) {
    s.forEach(all, [&](Value u) { s.forTeam(all, [&](Value v) { body(u, v); }); });
    s.syncTeam();
  }
  /// What a member has of row u.
  LogSum sumOver(Value u) {
    return LogSum(s, s.foldTeam(all, LogSum(s).get(),
                                [&](Value v, ValueRange so) { return LogSum(s, so).add(get(u, v)).get(); }));
  }

  StepBuilder &s;
  SinkhornOp op;
  Value b, h;
  Range all;
};

} // namespace

void buildSinkhorn(StepBuilder &s, SinkhornOp op) {
  s.formTeams();
  SmallVector<Range> mine = s.share({{op.getOutput(), 0}, {op.getOutput(), 1}});
  Matrix matrix(s, op, mine[0].from, mine[1].from);
  matrix.read();
  s.forEach({s.index(0), s.index(op.getIterations()), false}, [&](Value) {
    matrix.normalizeRows();
    matrix.normalizeColumns();
  });
  matrix.exponentiate();
}

namespace {

// Rows t of so many mixed blocks are made at a time, over so many vectors of columns: what is read of the input serves
// all of them, and the sums stay in registers.
constexpr int64_t kBlocksAtOnce = 4;

class Mixer {
public:
  Mixer(StepBuilder &s, MixBlocksOp op, Value b, Value h)
      : s(s), op(op), b(b), h(h), block(s.index(op.getBlock())), tokens(s.dim(op.getInput(), 2)) {}

  /// Rows t of the mixed blocks u, ..., u + count - 1.
  void mix(Value u, Value t, int64_t count, Range columns) {
    int64_t vectors = s.lanes >= 16 ? 4 : 2;
    Value end = s.add(columns.from, wholeOf(s.sub(columns.to, columns.from), vectors * s.lanes));
    if (!s.onDevice())
      forColumns(columns.from, end, vectors * s.lanes, u, t, count);
    s.forLanes({s.onDevice() ? columns.from : end, columns.to, columns.single},
               [&](Value d, int64_t width) { mixColumns(u, t, count, d, width); });
  }
  Value wholeOf(Value count, int64_t size) { return s.sub(count, s.modulo(count, s.index(size))); }

private:
  void forColumns(Value from, Value to, int64_t width, Value u, Value t, int64_t count) {
    s.loop(from, to, {}, [&](Value d, ValueRange) { return mixColumns(u, t, count, d, width), Values(); }, width);
  }
  void mixColumns(Value u, Value t, int64_t count, Value d, int64_t width) {
    Value some = s.divide(s.sub(s.add(tokens, op.getBlock() - 1), t), block); // blocks that have a row t
    Values none(count, s.f32(0, width));
    Values totals = s.loop(s.index(0), some, none, [&](Value v, ValueRange so) {
      Value x = s.load(op.getInput(), {b, h, s.add(s.mul(v, block), t), d}, width);
      Values next;
      for (auto [k, total] : llvm::enumerate(so)) {
        Value weight = s.load(op.getWeights(), {b, h, s.add(u, k), v});
        Value isNone = s.splat(s.equal(weight, s.f32(0)), width);
        next.push_back(s.select(isNone, total, s.fma(s.splat(weight, width), x, total)));
      }
      return next;
    });
    for (auto [k, total] : llvm::enumerate(totals))
      s.store(total, op.getOutput(), {b, h, s.add(s.mul(s.add(u, k), block), t), d});
  }

  StepBuilder &s;
  MixBlocksOp op;
  Value b, h, block, tokens;
};

} // namespace

void buildMixBlocks(StepBuilder &s, MixBlocksOp op) {
  Value output = op.getOutput();
  if (s.onDevice()) {
    SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2}, {output, 3}});
    Value row = mine[2].from, block = s.index(op.getBlock());
    return Mixer(s, op, mine[0].from, mine[1].from).mix(s.divide(row, block), s.modulo(row, block), 1, mine[3]);
  }
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {op.getWeights(), 2, kBlocksAtOnce}, {output, 3, 0}});
  Mixer mixer(s, op, mine[0].from, mine[1].from);
  Range blocks = mine[2];
  Value whole = s.add(blocks.from, mixer.wholeOf(s.sub(blocks.to, blocks.from), kBlocksAtOnce));
  s.forEach({s.index(0), s.index(op.getBlock()), false}, [&](Value t) {
    auto run = [&](Value from, Value to, int64_t count) {
      s.loop(from, to, {}, [&](Value u, ValueRange) { return mixer.mix(u, t, count, mine[3]), Values(); }, count);
    };
    run(blocks.from, whole, kBlocksAtOnce);
    run(whole, blocks.to, 1);
  });
}

} // namespace attn
