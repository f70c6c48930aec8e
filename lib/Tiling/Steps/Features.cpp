//===- Features.cpp - Features of queries and keys ------------------------===//
#include "Steps.h"

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

} // namespace attn
