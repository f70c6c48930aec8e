//===- RandomFeatures.cpp - Rows times random directions ------------------===//
//
// A matrix product with the directions in vector lanes: some of them are turned once for many tokens.
//
//===----------------------------------------------------------------------===//
#include "FeatureRows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace attn {
namespace {

class RandomFeatures {
public:
  using Values = StepBuilder::Values;

  RandomFeatures(StepBuilder &s, RandomFeaturesOp op, Value b, Value h)
      : s(s), op(op), b(b), h(h), head(h), dims(s, s.dim(op.getInput(), 3)), count(s.dim(op.getFeatures(), 3)) {
    auto projection = cast<RankedTensorType>(op.getProjection().getType());
    byHead = projection.getRank() == 3;
    if (byHead)
      head = s.divide(h, s.divide(s.dim(op.getInput(), 1), s.dim(op.getProjection(), 0)));
    if (!op.getKind())
      return;
    Value dim = s.toF32(dims.count), root = s.sqrt(dim);
    half = s.divide(s.f32(0.5), root);
    scale = s.divide(s.f32(1), s.sqrt(root));
  }

  /// One token, one direction after the other.
  void runToken(Value n) {
    Value length = half ? halfLength(n) : Value();
    auto takeNext = [&](Value f, Value top) {
      Value product = s.dot(dims.count, [&](Value d, int64_t width) {
        return std::pair(s.load(op.getProjection(), direction(f, d), width),
                         s.load(op.getInput(), {b, h, n, d}, width));
      });
      product = scale ? s.mul(product, scale) : product;
      s.store(subtracts() ? s.sub(product, length) : product, op.getFeatures(), {b, h, n, f});
      return s.max(top, product);
    };
    Value top = s.fold(s.index(0), count, none(1), takeNext);
    s.store(trigonometric() ? length : top, op.getMaxima(), {b, h, n});
  }

  /// Tokens of a unit on a CPU, `kTokens` at most.
  void runTokens(StepBuilder::Range tokens) {
    from = tokens.from;
    turned = s.allocate(dims.count, panel());
    spare = s.allocate(s.index(1), panel());
    if (half)
      lengths = s.allocate(s.index(kTokens), 1);
    FeatureRows rows(dims, op.getInput(), std::nullopt, kRows);
    s.forEach(tokens, [&](Value n) {
      Value length = half ? halfLength(n) : Value();
      if (half)
        s.store(length, lengths, {s.sub(n, from), s.index(0)});
      s.store(trigonometric() ? length : none(1), op.getMaxima(), {b, h, n});
    });
    auto ofPanel = [&](Value f, ValueRange) {
      turn(f);
      Value blocked = s.sub(tokens.to, s.modulo(s.sub(tokens.to, tokens.from), s.index(kRows)));
      auto run = [&](Value first, Value end, int64_t n) {
        auto body = [&](Value token, ValueRange) {
          rows.fill(b, h, token, s.index(n));
          finish(token, f, n, multiply(rows, n));
          return Values();
        };
        s.loop(first, end, {}, body, n);
      };
      run(tokens.from, blocked, kRows);
      run(blocked, tokens.to, 1);
      return Values();
    };
    s.loop(s.index(0), count, {}, ofPanel, panel());
  }

  static constexpr int64_t kTokens = 1024;

private:
  static constexpr int64_t kRows = 6;
  int64_t vectors() const { return s.lanes >= 16 ? 4 : 2; }
  int64_t panel() const { return vectors() * s.lanes; } // directions at a time
  bool trigonometric() { return op.getKind() == RandomKind::Trigonometric; }
  bool subtracts() { return op.getKind() == RandomKind::Softmax; }
  Value none(int64_t width) { return s.f32(-std::numeric_limits<float>::infinity(), width); }

  SmallVector<Value> direction(Value f, Value d) const {
    return byHead ? SmallVector<Value>{head, f, d} : SmallVector<Value>{f, d};
  }

  Value halfLength(Value n) {
    Value sum = s.sumLanes({s.index(0), dims.count, false}, [&](Value d, int64_t width) {
      Value x = s.load(op.getInput(), {b, h, n, d}, width);
      return s.mul(x, x);
    });
    return s.mul(sum, half);
  }

  /// Directions from `f` on as columns, scaled; behind the last, that one again: no maximum changes by it.
  void turn(Value f) {
    s.forEach({s.index(0), s.index(panel()), false}, [&](Value i) {
      Value row = s.min(s.add(f, i), s.sub(count, s.index(1)));
      s.forEach({s.index(0), dims.count, false}, [&](Value d) {
        Value number = s.load(op.getProjection(), direction(row, d));
        s.store(scale ? s.mul(number, scale) : number, turned, {d, i});
      });
    });
  }

  Values multiply(FeatureRows &rows, int64_t n) {
    return dims.loop(Values(n * vectors(), s.f32(0, s.lanes)), [&](FeatureBlock::At d, ValueRange carried) {
      Values sums(carried), columns;
      for (int64_t i = 0; i < vectors(); ++i)
        columns.push_back(s.load(turned, {d.feature, s.index(i * s.lanes)}, s.lanes));
      for (int64_t t = 0; t < n; ++t) {
        Value x = s.splat(rows.load(s.index(t), d, 1), s.lanes);
        for (int64_t i = 0; i < vectors(); ++i)
          sums[t * vectors() + i] = s.fma(x, columns[i], sums[t * vectors() + i]);
      }
      return sums;
    });
  }

  void finish(Value first, Value f, int64_t n, Values products) {
    for (int64_t t = 0; t < n; ++t) {
      Value token = s.add(first, t);
      MutableArrayRef<Value> mine = MutableArrayRef(products).slice(t * vectors(), vectors());
      if (!trigonometric())
        raiseMaximum(token, mine);
      if (!subtracts())
        continue;
      Value length = s.splat(s.load(lengths, {s.sub(token, from), s.index(0)}), s.lanes);
      for (Value &product : mine)
        product = s.sub(product, length);
    }
    auto store = [&](Value tensor, Value at, int64_t t, llvm::function_ref<SmallVector<Value>(Value)> place) {
      for (int64_t i = 0; i < vectors(); ++i)
        s.store(products[t * vectors() + i], tensor, place(s.add(at, i * s.lanes)));
    };
    auto whole = [&] {
      for (int64_t t = 0; t < n; ++t)
        store(op.getFeatures(), f, t, [&](Value at) { return SmallVector<Value>{b, h, s.add(first, t), at}; });
    };
    auto cut = [&] {
      for (int64_t t = 0; t < n; ++t) {
        store(spare, s.index(0), t, [&](Value at) { return SmallVector<Value>{s.index(0), at}; });
        s.forLanes({s.index(0), s.sub(count, f), false}, [&](Value i, int64_t width) {
          s.store(s.load(spare, {s.index(0), i}, width), op.getFeatures(), {b, h, s.add(first, t), s.add(f, i)});
        });
      }
    };
    s.ifThen(s.less(s.sub(count, f), s.index(panel())), cut, whole);
  }

  void raiseMaximum(Value token, ArrayRef<Value> products) {
    Value top = products.front();
    for (Value product : products.drop_front())
      top = s.max(top, product);
    top = vector::ReductionOp::create(s.b, s.loc, vector::CombiningKind::MAXIMUMF, top);
    s.store(s.max(s.load(op.getMaxima(), {b, h, token}), top), op.getMaxima(), {b, h, token});
  }

  StepBuilder &s;
  RandomFeaturesOp op;
  Value b, h, head; // `head`: of the directions
  FeatureBlock dims;
  Value count; // of directions
  bool byHead;
  Value half, scale; // null without a kind
  Value from, turned, spare, lengths;
};

} // namespace

void buildRandomFeatures(StepBuilder &s, RandomFeaturesOp op) {
  auto mine = s.share({{op.getMaxima(), 0}, {op.getMaxima(), 1}, {op.getMaxima(), 2, RandomFeatures::kTokens}});
  RandomFeatures features(s, op, mine[0].from, mine[1].from);
  if (s.onDevice())
    return features.runToken(mine[2].from);
  features.runTokens(mine[2]);
}

} // namespace attn
