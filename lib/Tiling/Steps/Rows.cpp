//===- Rows.cpp - Rows moved by number ------------------------------------===//
#include "Steps.h"

using namespace mlir;

namespace attn {

static constexpr int64_t kRowsOfUnit = 32; // enough work to be worth a turn of a thread

using Range = StepBuilder::Range;

/// The head that group `g` belongs to.
static Value headOf(StepBuilder &s, Value group, Value groups, Value heads) {
  return s.divide(group, s.divide(groups, heads));
}

/// The indices of entry `w` of the list of a group; lists may be the same for all groups, and for all batches.
static SmallVector<Value> entryOf(Value rows, Value b, Value g, Value w) {
  int64_t rank = cast<RankedTensorType>(rows.getType()).getRank();
  if (rank == 3)
    return {b, g, w};
  return rank == 2 ? SmallVector<Value>{b, w} : SmallVector<Value>{w};
}

void buildGatherRows(StepBuilder &s, GatherRowsOp op) {
  Value input = op.getInput(), rows = op.getRows(), output = op.getOutput();
  bool wide = cast<RankedTensorType>(input.getType()).getRank() == 4;
  SmallVector<StepBuilder::Shared> dims{{output, 0}, {output, 1}, {output, 2, kRowsOfUnit}};
  if (wide)
    dims.push_back({output, 3, 0});
  SmallVector<Range> mine = s.share(dims);
  Value b = mine[0].from, g = mine[1].from, h = headOf(s, g, s.dim(output, 1), s.dim(input, 1));
  auto copy = [&](Value w, Value row, Value there) {
    if (!wide) {
      s.ifThen(
          there, [&] { s.store(s.load(input, {b, h, row}), output, {b, g, w}); },
          [&] { s.store(s.f32(0), output, {b, g, w}); });
      return;
    }
    auto fill = [&](llvm::function_ref<Value(Value, int64_t)> number) {
      s.forLanes(mine[3], [&](Value d, int64_t width) { s.store(number(d, width), output, {b, g, w, d}); });
    };
    s.ifThen(
        there, [&] { fill([&](Value d, int64_t width) { return s.load(input, {b, h, row, d}, width); }); },
        [&] { fill([&](Value, int64_t width) { return s.f32(0, width); }); });
  };
  s.forEach(mine[2], [&](Value w) {
    Value row = s.load(rows, entryOf(rows, b, g, w));
    copy(w, row, s.inside(row, s.dim(input, 2)));
  });
}

} // namespace attn
