//===- Merge.cpp - Parts of one softmax put together ----------------------===//
#include "Steps.h"
#include <limits>

using namespace mlir;

namespace attn {

void buildMerge(StepBuilder &s, MergeOp op) {
  Value parts = op.getOutputs(), lses = op.getLses(), output = op.getOutput();
  auto mine = s.share({{output, 0}, {output, 1}, {output, 2, 16}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from;
  Value first = s.mul(h, op.getGroups()), last = s.add(first, op.getGroups());
  Value none = s.f32(-std::numeric_limits<float>::infinity());
  Value most = s.f32(std::numeric_limits<float>::max());
  s.forEach(mine[2], [&](Value n) {
    auto lse = [&](Value g) { return s.min(s.load(lses, {b, g, n}), most); };
    Value top = s.fold(first, last, none, [&](Value g, Value top) { return s.max(top, lse(g)); });
    Value reference = s.select(s.equal(top, none), s.f32(0), top);
    auto weight = [&](Value g) { return s.exp(s.sub(lse(g), reference)); };
    Value sum = s.fold(first, last, s.f32(0), [&](Value g, Value sum) { return s.add(sum, weight(g)); });
    Value empty = s.equal(top, none), divisor = s.select(empty, s.f32(1), sum);
    s.forLanes(mine[3], [&](Value d, int64_t width) {
      Value total = s.fold(first, last, s.f32(0, width), [&](Value g, Value total) {
        Value next = s.fma(s.splat(weight(g), width), s.load(parts, {b, g, n, d}, width), total);
        return s.select(s.equal(lse(g), none), total, next);
      });
      s.store(s.divide(total, s.splat(divisor, width)), output, {b, h, n, d});
    });
    if (op.getLse())
      s.once(mine[3], [&] { s.store(s.select(empty, none, s.add(top, s.log(divisor))), op.getLse(), {b, h, n}); });
  });
}

} // namespace attn
