//===- Relative.cpp - The scores of distances -----------------------------===//
#include "Steps.h"

using namespace mlir;

namespace attn {

void buildRelativeScores(StepBuilder &s, RelativeScoresOp op) {
  Value query = op.getQuery(), table = op.getTable(), output = op.getOutput();
  auto mine = s.share({{output, 0}, {output, 1}, {output, 2}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from, i = mine[2].from;
  Value position = s.add(i, s.sub(s.dim(output, 3), s.dim(output, 2)));
  Value last = s.sub(s.dim(table, 1), s.index(1));
  s.forEach(mine[3], [&](Value j) {
    Value distance = s.max(s.min(s.sub(position, j), last), s.index(0));
    Value sum = s.dot(s.dim(query, 3), [&](Value d, int64_t width) {
      return std::pair(s.load(query, {b, h, i, d}, width), s.load(table, {h, distance, d}, width));
    });
    s.store(sum, output, {b, h, i, j});
  });
}

} // namespace attn
