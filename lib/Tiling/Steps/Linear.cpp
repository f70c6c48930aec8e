//===- Linear.cpp - Linear attention as a recurrence ----------------------===//
//
// S = decay S + k^T v, out = q S, token by token. Each row of S is loaded and stored once for several tokens, whose
// values and sums stay in registers: as many operations as a product within chunks would take, without one, and any
// decay fits in.
//
//===----------------------------------------------------------------------===//
#include "Steps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace attn {
namespace {

/// exp(min(decay, 0)) of token `n`, where there is a decay: for all features, or for `width` of them from `f` on.
class Decay {
public:
  Decay(StepBuilder &s, Value tensor, Value b, Value h) : s(s), tensor(tensor), b(b), h(h) {
    rank = tensor ? cast<RankedTensorType>(tensor.getType()).getRank() : 0;
    if (rank == 1)
      whole = factor(s.load(tensor, {h}), 1);
  }
  explicit operator bool() const { return rank != 0; }

  /// Nothing where factors differ by feature.
  Value ofToken(Value n) const { return rank == 3 ? factor(s.load(tensor, {b, h, n}), 1) : whole; }
  Value ofFeatures(Value ofToken, Value n, Value f, int64_t width) const {
    return rank == 4 ? factor(s.load(tensor, {b, h, n, f}, width), width) : s.splat(ofToken, width);
  }
  /// Of one feature of several tokens, one exponential for all of them where vectors are at hand.
  SmallVector<Value> ofFeature(ArrayRef<Value> ofTokens, ArrayRef<Value> tokens, Value f) const {
    if (rank != 4)
      return SmallVector<Value>(ofTokens);
    SmallVector<Value> logs;
    for (Value n : tokens)
      logs.push_back(s.load(tensor, {b, h, n, f}));
    if (s.onDevice() || logs.size() == 1)
      return llvm::map_to_vector(logs, [&](Value log) { return factor(log, 1); });
    auto type = VectorType::get(logs.size(), s.b.getF32Type());
    Value factors = factor(vector::FromElementsOp::create(s.b, s.loc, type, logs), logs.size());
    return SmallVector<Value>(vector::ToElementsOp::create(s.b, s.loc, factors).getResults());
  }

private:
  Value factor(Value decay, int64_t width) const { return s.exp(s.min(decay, s.f32(0, width))); }

  StepBuilder &s;
  Value tensor, b, h, whole;
  int64_t rank;
};

/// `count` vectors of columns from `at` on.
struct Columns {
  Value at;
  int64_t width, count;
};

/// Calls `body` with all columns of `range`: two vectors, where a unit has these, else one after the other.
void forColumns(StepBuilder &s, StepBuilder::Range range, llvm::function_ref<void(Columns)> body) {
  auto single = [&](Value at, int64_t width) { body({at, width, 1}); };
  if (s.onDevice())
    return s.forLanes(range, single);
  Value full = s.equal(s.sub(range.to, range.from), s.index(2 * s.lanes));
  s.ifThen(full, [&] { body({range.from, s.lanes, 2}); }, [&] { s.forLanes(range, single); });
}

/// Some columns of the state of one head.
class StateColumns {
public:
  using Values = StepBuilder::Values;

  StateColumns(StepBuilder &s, LinearAttentionOp op, Value b, Value h, Columns columns)
      : s(s), op(op), b(b), h(h), columns(columns), decay(s, op.getDecay(), b, h) {}

  void start() {
    s.forEach(s.whole(op.getSums(), 2), [&](Value f) {
      storeColumns(op.getState() ? loadColumns(op.getState(), f) : zeros(1), op.getSums(), f);
    });
  }

  /// Takes all tokens into the state, `block` at a time, and reads what is asked of it.
  void pass(int64_t block, bool update, bool read) {
    Value tokens = s.dim(op.getQuery(), 2), blocked = s.sub(tokens, s.modulo(tokens, s.index(block)));
    auto run = [&](Value from, Value to, int64_t count) {
      auto body = [&](Value n, ValueRange) {
        runTokens(n, count, update, read);
        return Values();
      };
      s.loop(from, to, {}, body, count);
    };
    run(s.index(0), blocked, block);
    run(blocked, tokens, 1);
  }

private:
  void runTokens(Value first, int64_t count, bool update, bool read) {
    SmallVector<Value> n, decays;
    SmallVector<Values> values;
    for (int64_t t = 0; t < count; ++t) {
      n.push_back(s.add(first, t));
      if (update) {
        values.push_back(loadColumns(op.getValue(), n[t]));
        decays.push_back(decay ? decay.ofToken(n[t]) : Value());
      }
    }
    auto row = [&](Value f, ValueRange carried) {
      Values sums(carried), state = loadColumns(op.getSums(), f);
      SmallVector<Value> factors = update ? decay.ofFeature(decays, n, f) : decays;
      for (int64_t t = 0; t < count; ++t) {
        if (update)
          take(state, n[t], f, values[t], factors[t]);
        Value q = read ? s.splat(s.load(op.getQuery(), {b, h, n[t], f}), columns.width) : Value();
        for (int64_t c = 0; read && c < columns.count; ++c)
          sums[t * columns.count + c] = s.fma(q, state[c], sums[t * columns.count + c]);
      }
      if (update)
        storeColumns(state, op.getSums(), f);
      return sums;
    };
    Values sums = s.loop(s.index(0), s.dim(op.getSums(), 2), read ? zeros(count) : Values(), row);
    for (int64_t t = 0; read && t < count; ++t)
      finish(n[t], ArrayRef<Value>(sums).slice(t * columns.count, columns.count));
  }

  /// Row `f` of the state takes token `n`.
  void take(Values &state, Value n, Value f, ArrayRef<Value> value, Value factor) {
    Value k = s.splat(s.load(op.getKey(), {b, h, n, f}), columns.width);
    if (decay)
      factor = s.splat(factor, columns.width);
    for (auto [column, v] : llvm::zip_equal(state, value))
      column = s.fma(k, v, decay ? s.mul(factor, column) : column);
  }

  void finish(Value n, ArrayRef<Value> sums) {
    Values output(sums);
    if (std::optional<APFloat> scale = op.getScale())
      for (Value &column : output)
        column = s.mul(column, s.f32(scale->convertToFloat(), columns.width));
    if (op.getDivide()) {
      Value weight = s.load(op.getDivide(), {b, h, n}), empty = s.equal(weight, s.f32(0));
      for (Value &column : output)
        column = s.select(empty, s.f32(0, columns.width), s.divide(column, s.splat(weight, columns.width)));
    }
    storeColumns(output, op.getOutput(), n);
  }

  Values zeros(int64_t rows) { return Values(rows * columns.count, s.f32(0, columns.width)); }

  Values loadColumns(Value tensor, Value row) {
    Values loaded;
    for (int64_t c = 0; c < columns.count; ++c)
      loaded.push_back(s.load(tensor, {b, h, row, s.add(columns.at, c * columns.width)}, columns.width));
    return loaded;
  }

  void storeColumns(ArrayRef<Value> values, Value tensor, Value row) {
    for (auto [c, value] : llvm::enumerate(values))
      s.store(value, tensor, {b, h, row, s.add(columns.at, c * columns.width)});
  }

  StepBuilder &s;
  LinearAttentionOp op;
  Value b, h;
  Columns columns;
  Decay decay;
};

} // namespace

void buildLinearAttention(StepBuilder &s, LinearAttentionOp op) {
  auto mine = s.share({{op.getOutput(), 0}, {op.getOutput(), 1}, {op.getOutput(), 3, 2 * s.lanes}});
  forColumns(s, mine[2], [&](Columns columns) {
    StateColumns state(s, op, mine[0].from, mine[1].from, columns);
    state.start();
    // What fits in the registers: values and sums of all tokens, one row of the state.
    if (op.getCausal())
      return state.pass(4, /*update=*/true, /*read=*/true);
    state.pass(8, /*update=*/true, /*read=*/false);
    state.pass(8, /*update=*/false, /*read=*/true);
  });
}

void buildLinearWeights(StepBuilder &s, LinearWeightsOp op) {
  Value query = op.getQuery(), key = op.getKey(), sums = op.getSums();
  auto mine = s.share({{sums, 0}, {sums, 1}});
  Value b = mine[0].from, h = mine[1].from;
  StepBuilder::Range features = s.whole(sums, 2), tokens = s.whole(query, 2);
  Decay decay(s, op.getDecay(), b, h);
  s.forLanes(features, [&](Value f, int64_t width) {
    s.store(op.getState() ? s.load(op.getState(), {b, h, f}, width) : s.f32(0, width), sums, {b, h, f});
  });
  auto take = [&](Value n, Value ofToken, Value f, int64_t width) {
    Value old = s.load(sums, {b, h, f}, width);
    if (decay)
      old = s.mul(decay.ofFeatures(ofToken, n, f, width), old);
    Value next = s.add(old, s.load(key, {b, h, n, f}, width));
    s.store(next, sums, {b, h, f});
    return next;
  };
  auto weigh = [&](Value n, llvm::function_ref<Value(Value, int64_t)> sum) {
    Value weight = s.sumLanes(
        features, [&](Value f, int64_t width) { return s.mul(s.load(query, {b, h, n, f}, width), sum(f, width)); });
    s.store(weight, op.getWeights(), {b, h, n});
  };
  if (op.getCausal())
    return s.forEach(tokens, [&](Value n) {
      Value ofToken = decay ? decay.ofToken(n) : Value();
      weigh(n, [&](Value f, int64_t width) { return take(n, ofToken, f, width); });
    });
  s.forEach(tokens, [&](Value n) { s.forLanes(features, [&](Value f, int64_t width) { take(n, {}, f, width); }); });
  s.forEach(tokens, [&](Value n) { weigh(n, [&](Value f, int64_t width) { return s.load(sums, {b, h, f}, width); }); });
}

} // namespace attn
