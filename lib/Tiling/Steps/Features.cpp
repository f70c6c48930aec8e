//===- Features.cpp - Features of queries and keys ------------------------===//
#include "Steps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace attn {

static Value buildMap(StepBuilder &s, FeatureKind kind, Value x, int64_t width) {
  Value zero = s.f32(0, width);
  switch (kind) {
  case FeatureKind::EluPlusOne:
    // exp(0) + max(x, 0) above 0, exp(x) + 0 below: no branch, and no overflow that is not there.
    return s.add(s.exp(s.min(x, zero)), s.max(x, zero));
  case FeatureKind::Relu:
    return s.max(x, zero);
  case FeatureKind::Exp:
    return s.exp(x);
  }
  llvm_unreachable("a kind of feature");
}

void buildFeatureMap(StepBuilder &s, FeatureMapOp op) {
  Value input = op.getInput(), output = op.getOutput();
  auto mine = s.share({{output, 0}, {output, 1}, {output, 2, 32}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from;
  s.forEach(mine[2], [&](Value n) {
    Value subtract = op.getSubtract() ? s.load(op.getSubtract(), {b, h, n}) : Value();
    s.forLanes(mine[3], [&](Value f, int64_t width) {
      Value x = s.load(input, {b, h, n, f}, width);
      if (subtract)
        x = s.sub(x, s.splat(subtract, width));
      Value y = buildMap(s, op.getMap(), x, width);
      if (std::optional<APFloat> plus = op.getPlus())
        y = s.add(y, s.f32(plus->convertToFloat(), width));
      s.store(y, output, {b, h, n, f});
    });
  });
}

namespace {

/// Rows of tokens times directions, a block of them at a time.
class RandomFeatures {
public:
  using Values = StepBuilder::Values;

  RandomFeatures(StepBuilder &s, RandomFeaturesOp op, Value b, Value h)
      : s(s), op(op), b(b), h(h), dims(s.whole(op.getInput(), 3)) {
    byHead = cast<RankedTensorType>(op.getProjection().getType()).getRank() == 3;
    if (!op.getSoftmax())
      return;
    Value dim = s.toF32(dims.to), root = s.sqrt(dim);
    half = s.divide(s.f32(0.5), root);
    scale = s.divide(s.f32(1), s.sqrt(root));
  }

  void runTokens(Value first, int64_t count) {
    SmallVector<Value> tokens, lengths;
    for (int64_t t = 0; t < count; ++t) {
      tokens.push_back(s.add(first, t));
      lengths.push_back(op.getSoftmax() ? halfLength(tokens[t]) : Value());
    }
    Value features = s.dim(op.getFeatures(), 3), blocked = s.sub(features, s.modulo(features, s.index(kBlock)));
    Values maxima(count, s.f32(-std::numeric_limits<float>::infinity()));
    auto run = [&](Value from, Value to, int64_t width) {
      auto body = [&](Value f, ValueRange carried) {
        Values maxima(carried), products = multiply(tokens, f, width);
        for (int64_t t = 0; t < count; ++t)
          for (int64_t i = 0; i < width; ++i)
            finish(products[t * width + i], lengths[t], maxima[t], {b, h, tokens[t], s.add(f, i)});
        return maxima;
      };
      maxima = s.loop(from, to, maxima, body, width);
    };
    run(s.index(0), blocked, kBlock);
    run(blocked, features, 1);
    for (int64_t t = 0; t < count; ++t)
      s.store(maxima[t], op.getMaxima(), {b, h, tokens[t]});
  }

  static constexpr int64_t kBlock = 4; // rows of either side: their products fit in the registers

private:
  Value halfLength(Value n) {
    Value sum = s.sumLanes(dims, [&](Value d, int64_t width) {
      Value x = s.load(op.getInput(), {b, h, n, d}, width);
      return s.mul(x, x);
    });
    return s.mul(sum, half);
  }

  void finish(Value product, Value halfLength, Value &maximum, ValueRange at) {
    if (op.getSoftmax())
      product = s.mul(product, scale);
    maximum = s.max(maximum, product);
    s.store(op.getSoftmax() ? s.sub(product, halfLength) : product, op.getFeatures(), at);
  }

  Values multiply(ArrayRef<Value> tokens, Value f, int64_t width) {
    Value vectors = s.sub(dims.to, s.modulo(dims.to, s.index(s.lanes)));
    Values sums(tokens.size() * width, s.f32(0, s.lanes));
    sums = multiply(tokens, f, width, s.index(0), vectors, sums, s.lanes);
    if (s.lanes == 1)
      return sums;
    for (Value &sum : sums)
      sum = vector::ReductionOp::create(s.b, s.loc, vector::CombiningKind::ADD, sum, arith::FastMathFlags::reassoc);
    return multiply(tokens, f, width, vectors, dims.to, sums, 1);
  }

  Values multiply(ArrayRef<Value> tokens, Value f, int64_t width, Value from, Value to, ValueRange sums,
                  int64_t lanes) {
    auto body = [&](Value d, ValueRange carried) {
      Values sums(carried), rows;
      for (int64_t i = 0; i < width; ++i) {
        SmallVector<Value> at{s.add(f, i), d};
        if (byHead)
          at.insert(at.begin(), h);
        rows.push_back(s.load(op.getProjection(), at, lanes));
      }
      for (size_t t = 0; t < tokens.size(); ++t) {
        Value x = s.load(op.getInput(), {b, h, tokens[t], d}, lanes);
        for (int64_t i = 0; i < width; ++i)
          sums[t * width + i] = s.fma(rows[i], x, sums[t * width + i]);
      }
      return sums;
    };
    return s.loop(from, to, sums, body, lanes);
  }

  StepBuilder &s;
  RandomFeaturesOp op;
  Value b, h;
  StepBuilder::Range dims;
  bool byHead;
  Value half, scale;
};

} // namespace

void buildRandomFeatures(StepBuilder &s, RandomFeaturesOp op) {
  auto mine = s.share({{op.getMaxima(), 0}, {op.getMaxima(), 1}, {op.getMaxima(), 2, 32}});
  RandomFeatures features(s, op, mine[0].from, mine[1].from);
  if (s.onDevice())
    return features.runTokens(mine[2].from, 1);
  auto run = [&](Value from, Value to, int64_t count) {
    auto body = [&](Value n, ValueRange) {
      features.runTokens(n, count);
      return StepBuilder::Values();
    };
    s.loop(from, to, {}, body, count);
  };
  Value rest = s.modulo(s.sub(mine[2].to, mine[2].from), s.index(RandomFeatures::kBlock));
  run(mine[2].from, s.sub(mine[2].to, rest), RandomFeatures::kBlock);
  run(s.sub(mine[2].to, rest), mine[2].to, 1);
}

void buildRunningMax(StepBuilder &s, RunningMaxOp op) {
  auto mine = s.share({{op.getLast(), 0}, {op.getLast(), 1}});
  Value b = mine[0].from, h = mine[1].from, tokens = s.dim(op.getInput(), 2);
  Value none = s.f32(-std::numeric_limits<float>::infinity());
  auto next = [&](Value n, Value top) { return s.max(top, s.load(op.getInput(), {b, h, n})); };
  Value first = op.getState() ? s.load(op.getState(), {b, h}) : none;
  if (!op.getCausal())
    first = s.fold(s.index(0), tokens, first, next);
  Value last = s.fold(s.index(0), tokens, first, [&](Value n, Value before) {
    Value top = op.getCausal() ? next(n, before) : before;
    s.store(top, op.getMaxima(), {b, h, n});
    s.store(s.select(s.equal(before, none), s.f32(0), s.sub(before, top)), op.getDecays(), {b, h, n});
    return top;
  });
  s.store(last, op.getLast(), {b, h});
}

} // namespace attn
