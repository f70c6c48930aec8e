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

private:
  Value none() const { return s.f32(-std::numeric_limits<float>::infinity()); }

  StepBuilder &s;
  Value top, sum;
};

/// One head's matrix of logarithms, normalised where the result will be.
class Matrix {
public:
  Matrix(StepBuilder &s, SinkhornOp op, Value b, Value h)
      : s(s), op(op), b(b), h(h), zero(s.index(0)), size(s.dim(op.getLogits(), 2)) {}

  void read() {
    Value none = s.f32(-std::numeric_limits<float>::infinity());
    forEach([&](Value u, Value v) {
      Value x = s.load(op.getLogits(), {b, h, u, v});
      put(op.getCausal() ? s.select(s.less(v, u), x, none) : x, u, v);
    });
  }
  void normalizeRows() {
    s.forEach({zero, size, false}, [&](Value u) {
      LogSum sum = sumOver([&](Value v) { return get(u, v); });
      s.forEach({zero, size, false}, [&](Value v) { put(sum.normalize(get(u, v)), u, v); });
    });
  }
  void normalizeColumns() {
    s.forEach({zero, size, false}, [&](Value v) {
      if (op.getCausal()) { // by what has been seen from above
        s.loop(zero, size, LogSum(s).get(), [&](Value u, ValueRange so) {
          LogSum sum = LogSum(s, so).add(get(u, v));
          put(sum.normalize(get(u, v)), u, v);
          return sum.get();
        });
        return;
      }
      LogSum sum = sumOver([&](Value u) { return get(u, v); });
      s.forEach({zero, size, false}, [&](Value u) { put(sum.normalize(get(u, v)), u, v); });
    });
  }
  void exponentiate() {
    forEach([&](Value u, Value v) { put(s.exp(get(u, v)), u, v); });
  }

private:
  Value get(Value u, Value v) { return s.load(op.getOutput(), {b, h, u, v}); }
  void put(Value x, Value u, Value v) { s.store(x, op.getOutput(), {b, h, u, v}); }
  void forEach(StepBuilder::Body<Value, Value> body) {
    s.forEach({zero, size, false}, [&](Value u) { s.forEach({zero, size, false}, [&](Value v) { body(u, v); }); });
  }
  LogSum sumOver(llvm::function_ref<Value(Value)> number) {
    auto next = [&](Value i, ValueRange so) { return LogSum(s, so).add(number(i)).get(); };
    return LogSum(s, s.loop(zero, size, LogSum(s).get(), next));
  }

  StepBuilder &s;
  SinkhornOp op;
  Value b, h, zero, size;
};

} // namespace

void buildSinkhorn(StepBuilder &s, SinkhornOp op) {
  SmallVector<Range> mine = s.share({{op.getOutput(), 0}, {op.getOutput(), 1}});
  Matrix matrix(s, op, mine[0].from, mine[1].from);
  matrix.read();
  s.forEach({s.index(0), s.index(op.getIterations()), false}, [&](Value) {
    matrix.normalizeRows();
    matrix.normalizeColumns();
  });
  matrix.exponentiate();
}

void buildMixBlocks(StepBuilder &s, MixBlocksOp op) {
  Value weights = op.getWeights(), input = op.getInput(), output = op.getOutput();
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2, 16}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from, block = s.index(op.getBlock()), tokens = s.dim(input, 2), zero = s.index(0);
  s.forEach(mine[2], [&](Value row) {
    Value u = s.divide(row, block), t = s.modulo(row, block);
    Value count = s.divide(s.sub(s.add(tokens, op.getBlock() - 1), t), block); // blocks that have a row t
    s.forLanes(mine[3], [&](Value d, int64_t width) {
      Value total = s.fold(zero, count, s.f32(0, width), [&](Value v, Value total) {
        Value weight = s.load(weights, {b, h, u, v}), n = s.add(s.mul(v, block), t);
        Value next = s.fma(s.splat(weight, width), s.load(input, {b, h, n, d}, width), total);
        return s.select(s.equal(weight, s.f32(0)), total, next);
      });
      s.store(total, output, {b, h, row, d});
    });
  });
}

} // namespace attn
