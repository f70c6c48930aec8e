//===- Features.cpp - Features of queries and keys ------------------------===//
#include "Steps.h"
#include <limits>

using namespace mlir;

namespace attn {

Value buildMap(StepBuilder &s, FeatureKind kind, Value x, int64_t width) {
  Value zero = s.f32(0, width), one = s.f32(1, width);
  switch (kind) {
  case FeatureKind::EluPlusOne:
    // exp(0) + max(x, 0) above 0, exp(x) + 0 below: no branch, and no overflow that is not there.
    return s.add(s.exp(s.atMost(x, zero)), s.atLeast(x, zero));
  case FeatureKind::Relu:
    return s.atLeast(x, zero);
  case FeatureKind::Exp:
    return s.exp(x);
  case FeatureKind::Abs:
    return s.abs(x);
  case FeatureKind::Square:
    return s.mul(x, x);
  case FeatureKind::Sigmoid:
    return s.divide(one, s.add(one, s.exp(s.sub(zero, x))));
  case FeatureKind::Trigonometric:
    break;
  }
  llvm_unreachable("a map that makes two numbers of one");
}

void buildFeatureMap(StepBuilder &s, FeatureMapOp op) {
  Value input = op.getInput(), output = op.getOutput(), logs = op.getLogs(), subtract = op.getSubtract();
  bool trigonometric = op.getMap() == FeatureKind::Trigonometric;
  auto mine = s.share({{input, 0}, {input, 1}, {input, 2, 32}, {input, 3, 0}});
  Value b = mine[0].from, h = mine[1].from;
  auto store = [&](Value y, Value n, Value f, int64_t width) {
    if (std::optional<APFloat> plus = op.getPlus())
      y = s.add(y, s.f32(plus->convertToFloat(), width));
    s.store(y, output, {b, h, n, f});
  };
  s.forEach(mine[2], [&](Value n) {
    Value log = logs ? s.load(logs, {b, h, n}) : Value(), less = subtract ? s.load(subtract, {b, h, n}) : Value();
    Value factor = log ? s.exp(less ? s.sub(log, less) : log) : s.f32(1);
    s.forLanes(mine[3], [&](Value f, int64_t width) {
      Value x = s.load(input, {b, h, n, f}, width);
      if (!trigonometric)
        return store(buildMap(s, op.getMap(), less ? s.sub(x, s.splat(less, width)) : x, width), n, f, width);
      Value factors = s.splat(factor, width);
      store(s.mul(factors, s.cos(x)), n, f, width);
      store(s.mul(factors, s.sin(x)), n, s.add(s.dim(input, 3), f), width);
    });
  });
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
