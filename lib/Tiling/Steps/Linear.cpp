//===- Linear.cpp - Linear attention as a recurrence ----------------------===//
//
// S = decay S + k^T v, out = q S, some tokens at a time. Each row of S is loaded and stored once for these tokens,
// whose values and sums stay in registers: as many operations as a product within chunks would take, without one, and
// any decay fits in. On a CPU the features of these tokens are made once, in the cache; without an order of the tokens,
// S is a matrix product, whose blocks stay in registers for many tokens.
//
//===----------------------------------------------------------------------===//
#include "FeatureRows.h"
#include "Steps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/SmallVectorExtras.h"

using namespace mlir;

namespace attn {
namespace {

using Values = StepBuilder::Values;

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

/// Calls `body` with all columns of `range`, `vectors` vectors at a time, then one, then single columns.
void forColumns(StepBuilder &s, StepBuilder::Range range, int64_t vectors, llvm::function_ref<void(Columns)> body) {
  auto single = [&](Value at, int64_t width) { body({at, width, 1}); };
  if (s.onDevice())
    return s.forLanes(range, single);
  int64_t block = vectors * s.lanes;
  Value count = s.sub(range.to, range.from), blocked = s.sub(count, s.modulo(count, s.index(block)));
  Value end = s.add(range.from, blocked);
  auto run = [&](Value at, ValueRange) {
    body({at, s.lanes, vectors});
    return Values();
  };
  std::optional<int64_t> known = getConstantIntValue(count);
  if (!known || *known >= block)
    s.loop(range.from, end, {}, run, block);
  if (!known || *known % block)
    s.forLanes({end, range.to, false}, single);
}

/// Some columns of the state of one key head, and the queries of its group.
class StateColumns {
public:
  StateColumns(StepBuilder &s, LinearAttentionOp op, Value b, Value h, StepBuilder::Range columns)
      : s(s), op(op), b(b), h(h), columns(columns), decay(s, op.getDecay(), b, h), tokens(s.dim(op.getQuery(), 2)),
        group(s.divide(s.dim(op.getQuery(), 1), s.dim(op.getKey(), 1))), features(s, s.dim(op.getSums(), 2)),
        perPass(s.lanes >= 16  ? 6
                : s.onDevice() ? 4
                               : 3),
        keys(features, op.getKey(), op.getFeature(), perPass),
        queries(features, op.getQuery(), op.getFeature(), op.getCausal() ? perPass : kQueries) {
    if (!op.getCausal() && !s.onDevice())
      block.emplace(features, op.getKey(), op.getFeature(), kTokens, /*onePanel=*/true);
    if (!op.getNormalize())
      return;
    keySums = features.allocate(perPass + 1);
    weights = s.allocate(s.index(kQueries), 1);
  }

  void start() {
    auto startRow = [&](Value row, Value state, Value sums, ValueRange before) {
      auto copy = [&](Value at, int64_t width) {
        SmallVector<Value> from(before);
        from.push_back(at);
        s.store(state ? s.load(state, from, width) : s.f32(0, width), sums, from);
      };
      s.forLanes(columns, copy);
    };
    s.forEach(s.whole(op.getSums(), 2), [&](Value f) { startRow(f, op.getState(), op.getSums(), {b, h, f}); });
    if (op.getNormalize())
      features.forVectors([&](FeatureBlock::At f, int64_t width) {
        Value first = op.getKeyState() ? s.load(op.getKeyState(), {b, h, f.feature}, width) : s.f32(0, width);
        s.store(first, keySums, {sumRow(f, s.index(0)), f.inPanel});
      });
  }

  /// What the state is behind the last token, of a product of all keys with all values.
  void sumUp() {
    if (s.onDevice())
      return pass(8, /*update=*/true, /*read=*/false);
    features.forPanels([&](FeatureBlock::Panel panel) {
      auto body = [&](Value n, ValueRange) {
        Value count = s.min(s.sub(tokens, n), s.index(kTokens));
        if (op.getNormalize())
          fillAndAdd(panel, n, count);
        else
          block->fill(panel, b, h, n, count);
        panel.forRows(s, kRows, [&](Value f, int64_t rows) {
          forColumns(s, columns, vectors(), [&](Columns c) { multiply(panel, f, rows, n, count, c); });
        });
        return Values();
      };
      s.loop(s.index(0), tokens, {}, body, kTokens);
    });
  }

  /// Takes all tokens into the state, `block` at a time, and reads what is asked of it.
  void pass(int64_t block, bool update, bool read) {
    Value blocked = s.sub(tokens, s.modulo(tokens, s.index(block)));
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

  void passInOrder() { pass(perPass, /*update=*/true, /*read=*/true); }

  /// What all queries ask of the state behind the last token.
  void readAll() {
    if (s.onDevice())
      return pass(8, /*update=*/false, /*read=*/true);
    auto ofBlock = [&](Value n, ValueRange) {
      Value count = s.min(s.sub(tokens, n), s.index(kQueries));
      s.forEach({s.index(0), group, getConstantIntValue(group) == 1}, [&](Value g) {
        Value head = s.add(s.mul(h, group), g);
        queries.fill(b, head, n, count);
        prefetchNext(op.getQuery(), head, n, kQueries);
        if (op.getNormalize())
          weigh(count, /*upToToken=*/false);
        forColumns(s, columns, vectors(), [&](Columns c) {
          Value blocked = s.sub(count, s.modulo(count, s.index(perPass)));
          auto run = [&](Value from, Value to, int64_t together) {
            auto body = [&](Value row, ValueRange) {
              runColumns(s.add(n, row), row, together, /*update=*/false, /*read=*/true, head, Value(), c);
              return Values();
            };
            s.loop(from, to, {}, body, together);
          };
          run(s.index(0), blocked, perPass);
          run(blocked, count, 1);
        });
      });
      return Values();
    };
    s.loop(s.index(0), tokens, {}, ofBlock, kQueries);
  }

  /// The sums of keys are a result of the unit that has the first columns.
  void finishKeySums() {
    if (!op.getNormalize())
      return;
    s.ifThen(s.equal(columns.from, s.index(0)), [&] {
      features.forVectors([&](FeatureBlock::At f, int64_t width) {
        s.store(s.load(keySums, {sumRow(f, s.index(0)), f.inPanel}, width), op.getKeySums(), {b, h, f.feature});
      });
    });
  }

private:
  static constexpr int64_t kTokens = 96; // whose features are in the cache at a time, where there is no order
  static constexpr int64_t kQueries = 6; // the same, of queries
  static constexpr int64_t kRows = 6;    // of the state, in registers at a time
  int64_t vectors() const { return s.lanes >= 16 ? 4 : 2; }

  Value sumRow(FeatureBlock::At f, Value row) { return s.add(s.mul(f.panel, perPass + 1), row); }

  /// Makes the features of a panel, and adds them up, in registers where they fit.
  void fillAndAdd(FeatureBlock::Panel panel, Value n, Value count) {
    Values sums;
    std::optional<int64_t> known = getConstantIntValue(panel.count);
    bool fits = known && *known % s.lanes == 0 && *known / s.lanes <= 8;
    auto place = [&](Value f) { return SmallVector<Value>{sumRow({panel.number, f, Value()}, s.index(0)), f}; };
    for (int64_t f = 0; fits && f < *known; f += s.lanes)
      sums.push_back(s.load(keySums, place(s.index(f)), s.lanes));
    sums = block->fill(panel, b, h, n, count, sums);
    for (auto [i, sum] : llvm::enumerate(sums))
      s.store(sum, keySums, place(s.index(i * s.lanes)));
    if (fits)
      return;
    panel.forVectors(s, [&](FeatureBlock::At f, int64_t width) {
      Value sum = s.fold(s.index(0), count, s.load(keySums, place(f.inPanel), width),
                         [&](Value t, Value total) { return s.add(total, block->load(t, f, width)); });
      s.store(sum, keySums, place(f.inPanel));
    });
  }

  /// Adds keys^T values of `count` tokens from `n` on to `rows` rows of the state.
  void multiply(FeatureBlock::Panel panel, Value f, int64_t rows, Value n, Value count, Columns c) {
    Values sums;
    for (int64_t r = 0; r < rows; ++r)
      sums.append(loadColumns(op.getSums(), h, s.add(panel.from, s.add(f, r)), c));
    auto take = [&](Value t, ValueRange carried) {
      Values next(carried), value = loadColumns(op.getValue(), h, s.add(n, t), c);
      for (int64_t r = 0; r < rows; ++r) {
        Value k = s.splat(block->load(t, {panel.number, s.add(f, r), Value()}, 1), c.width);
        for (int64_t i = 0; i < c.count; ++i)
          next[r * c.count + i] = s.fma(k, value[i], next[r * c.count + i]);
      }
      return next;
    };
    sums = s.loop(s.index(0), count, sums, take);
    for (int64_t r = 0; r < rows; ++r)
      storeColumns(ArrayRef<Value>(sums).slice(r * c.count, c.count), op.getSums(), h, s.add(panel.from, s.add(f, r)),
                   c);
  }

  void runTokens(Value first, int64_t count, bool update, bool read) {
    Value all = s.index(count);
    if (update) {
      keys.fill(b, h, first, all);
      prefetchNext(op.getKey(), h, first, count);
      prefetchNext(op.getValue(), h, first, count);
    }
    if (update && op.getNormalize())
      addKeys(first, count);
    auto ofHead = [&](Value g) {
      Value head = s.add(s.mul(h, group), g);
      if (read) {
        queries.fill(b, head, first, all);
        prefetchNext(op.getQuery(), head, first, count);
      }
      if (read && op.getNormalize())
        weigh(all, update);
      Value last = s.equal(s.add(g, 1), group);
      forColumns(s, columns, update ? 2 : vectors(),
                 [&](Columns c) { runColumns(first, s.index(0), count, update, read, head, last, c); });
    };
    if (read)
      s.forEach({s.index(0), group, getConstantIntValue(group) == 1}, ofHead);
    else
      ofHead(s.sub(group, s.index(1)));
    if (update && op.getNormalize())
      features.forVectors([&](FeatureBlock::At f, int64_t width) {
        Value end = s.load(keySums, {sumRow(f, all), f.inPanel}, width);
        s.store(end, keySums, {sumRow(f, s.index(0)), f.inPanel});
      });
  }

  /// The rows of the next tokens: a chunk takes longer than memory, but reads from too many places for it to foresee.
  void prefetchNext(Value tensor, Value head, Value first, int64_t count) {
    if (s.onDevice() || count == 1)
      return;
    auto type = cast<RankedTensorType>(tensor.getType());
    int64_t line = 512 / type.getElementTypeBitWidth();
    bool columnsOnly = tensor == op.getValue();
    Value from = columnsOnly ? columns.from : s.index(0), to = columnsOnly ? columns.to : s.dim(tensor, 3);
    s.forEach({s.index(0), s.index(count), false}, [&](Value t) {
      Value n = s.min(s.add(s.add(first, t), count), s.sub(tokens, s.index(1)));
      s.loop(from, to, {}, [&](Value at, ValueRange) { return s.prefetch(tensor, {b, head, n, at}), Values(); }, line);
    });
  }

  /// The sums of keys up to each token.
  void addKeys(Value first, int64_t count) {
    s.forEach({s.index(0), s.index(count), false}, [&](Value t) {
      Value ofToken = decay ? decay.ofToken(s.add(first, t)) : Value();
      features.forVectors([&](FeatureBlock::At f, int64_t width) {
        Value sum = s.load(keySums, {sumRow(f, t), f.inPanel}, width);
        if (decay)
          sum = s.mul(decay.ofFeatures(ofToken, s.add(first, t), f.feature, width), sum);
        s.store(s.add(sum, keys.load(t, f, width)), keySums, {sumRow(f, s.add(t, 1)), f.inPanel});
      });
    });
  }

  void weigh(Value count, bool upToToken) {
    s.forEach({s.index(0), count, false}, [&](Value t) {
      Value row = upToToken ? s.add(t, 1) : s.index(0);
      Value weight = features.dot([&](FeatureBlock::At f, int64_t width) {
        return std::pair(queries.load(t, f, width), s.load(keySums, {sumRow(f, row), f.inPanel}, width));
      });
      s.store(weight, weights, {t, s.index(0)});
    });
  }

  /// `count` tokens from `first` on, whose features are in rows from `from` on.
  void runColumns(Value first, Value from, int64_t count, bool update, bool read, Value head, Value last, Columns c) {
    SmallVector<Value> n, decays;
    SmallVector<Values> values;
    for (int64_t t = 0; t < count; ++t) {
      n.push_back(s.add(first, t));
      if (update) {
        values.push_back(loadColumns(op.getValue(), h, n[t], c));
        decays.push_back(decay ? decay.ofToken(n[t]) : Value());
      }
    }
    auto row = [&](FeatureBlock::At f, ValueRange carried) {
      Values sums(carried), state = loadColumns(op.getSums(), h, f.feature, c);
      SmallVector<Value> factors = update ? decay.ofFeature(decays, n, f.feature) : decays;
      for (int64_t t = 0; t < count; ++t) {
        if (update)
          take(state, keys.load(s.add(from, t), f, 1), values[t], factors[t], c);
        Value q = read ? s.splat(queries.load(s.add(from, t), f, 1), c.width) : Value();
        for (int64_t i = 0; read && i < c.count; ++i)
          sums[t * c.count + i] = s.fma(q, state[i], sums[t * c.count + i]);
      }
      if (update)
        storeLast(state, f.feature, last, c);
      return sums;
    };
    Values sums = features.loop(read ? zeros(count * c.count, c) : Values(), row);
    for (int64_t t = 0; read && t < count; ++t)
      finish(n[t], s.add(from, t), head, ArrayRef<Value>(sums).slice(t * c.count, c.count), c);
  }

  /// A row of the state takes a token.
  void take(Values &state, Value key, ArrayRef<Value> value, Value factor, Columns c) {
    Value k = s.splat(key, c.width);
    if (decay)
      factor = s.splat(factor, c.width);
    for (auto [column, v] : llvm::zip_equal(state, value))
      column = s.fma(k, v, decay ? s.mul(factor, column) : column);
  }

  /// All heads of a group but the last leave the state as they found it.
  void storeLast(ArrayRef<Value> state, Value feature, Value last, Columns c) {
    auto store = [&] { storeColumns(state, op.getSums(), h, feature, c); };
    if (matchPattern(last, m_One()))
      return store();
    s.ifThen(last, store);
  }

  void finish(Value n, Value row, Value head, ArrayRef<Value> sums, Columns c) {
    Values output(sums);
    if (std::optional<APFloat> scale = op.getScale())
      for (Value &column : output)
        column = s.mul(column, s.f32(scale->convertToFloat(), c.width));
    if (op.getDivide() || op.getNormalize()) {
      Value weight = op.getDivide() ? s.load(op.getDivide(), {b, head, n}) : s.load(weights, {row, s.index(0)});
      output = divide(output, weight, c);
    }
    storeColumns(output, op.getOutput(), head, n, c);
  }

  /// One division for all columns, where the inverse is neither infinite nor a denormal number.
  Values divide(const Values &columns, Value weight, Columns c) {
    Value size = s.abs(weight), usual = s.both(s.less(s.f32(0x1p-126f), size), s.less(size, s.f32(0x1p126f)));
    auto multiply = [&] {
      Values quotients(columns);
      Value inverse = s.splat(s.divide(s.f32(1), weight), c.width);
      for (Value &column : quotients)
        column = s.mul(column, inverse);
      return quotients;
    };
    auto divideEach = [&] {
      Values quotients(columns);
      Value empty = s.equal(weight, s.f32(0));
      for (Value &column : quotients)
        column = s.select(empty, s.f32(0, c.width), s.divide(column, s.splat(weight, c.width)));
      return quotients;
    };
    return s.choose(usual, multiply, divideEach);
  }

  Values zeros(int64_t count, Columns c) { return Values(count, s.f32(0, c.width)); }

  Values loadColumns(Value tensor, Value head, Value row, Columns c) {
    Values loaded;
    for (int64_t i = 0; i < c.count; ++i)
      loaded.push_back(s.load(tensor, {b, head, row, s.add(c.at, i * c.width)}, c.width));
    return loaded;
  }

  void storeColumns(ArrayRef<Value> values, Value tensor, Value head, Value row, Columns c) {
    for (auto [i, value] : llvm::enumerate(values))
      s.store(value, tensor, {b, head, row, s.add(c.at, i * c.width)});
  }

  StepBuilder &s;
  LinearAttentionOp op;
  Value b, h;
  StepBuilder::Range columns;
  Decay decay;
  Value tokens, group;
  FeatureBlock features;
  int64_t perPass; // tokens whose values and sums fit in the registers, with a row of the state
  FeatureRows keys, queries;
  std::optional<FeatureRows> block;
  Value keySums; // before the first token, and behind each of them
  Value weights;
};

} // namespace

void buildLinearAttention(StepBuilder &s, LinearAttentionOp op) {
  constexpr int64_t kColumns = 64;
  auto mine = s.share({{op.getSums(), 0}, {op.getSums(), 1}, {op.getOutput(), 3, kColumns}});
  StateColumns state(s, op, mine[0].from, mine[1].from, mine[2]);
  state.start();
  if (op.getCausal()) {
    state.passInOrder();
  } else {
    state.sumUp();
    state.readAll();
  }
  state.finishKeySums();
}

void buildLinearWeights(StepBuilder &s, LinearWeightsOp op) {
  Value query = op.getQuery(), key = op.getKey(), sums = op.getSums();
  auto mine = s.share({{sums, 0}, {sums, 1}});
  Value b = mine[0].from, h = mine[1].from, group = s.divide(s.dim(query, 1), s.dim(key, 1));
  StepBuilder::Range features = s.whole(sums, 2), tokens = s.whole(query, 2);
  Decay decay(s, op.getDecay(), b, h);
  s.forLanes(features, [&](Value f, int64_t width) {
    s.store(op.getState() ? s.load(op.getState(), {b, h, f}, width) : s.f32(0, width), sums, {b, h, f});
  });
  auto feature = [&](Value x, int64_t width) { return op.getFeature() ? buildMap(s, *op.getFeature(), x, width) : x; };
  auto take = [&](Value n, Value ofToken, Value f, int64_t width) {
    Value old = s.load(sums, {b, h, f}, width);
    if (decay)
      old = s.mul(decay.ofFeatures(ofToken, n, f, width), old);
    s.store(s.add(old, feature(s.load(key, {b, h, n, f}, width), width)), sums, {b, h, f});
  };
  auto takeToken = [&](Value n) {
    Value ofToken = decay ? decay.ofToken(n) : Value();
    s.forLanes(features, [&](Value f, int64_t width) { take(n, ofToken, f, width); });
  };
  auto weigh = [&](Value n) {
    s.forEach({s.index(0), group, false}, [&](Value g) {
      Value head = s.add(s.mul(h, group), g);
      Value weight = s.sumLanes(features, [&](Value f, int64_t width) {
        return s.mul(feature(s.load(query, {b, head, n, f}, width), width), s.load(sums, {b, h, f}, width));
      });
      s.store(weight, op.getWeights(), {b, head, n});
    });
  };
  if (!op.getCausal())
    s.forEach(tokens, takeToken);
  s.forEach(tokens, [&](Value n) {
    if (op.getCausal())
      takeToken(n);
    weigh(n);
  });
}

} // namespace attn
