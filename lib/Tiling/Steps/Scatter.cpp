//===- Scatter.cpp - Rows of groups written back to tokens ------------------===//
//
// A unit has tokens to write and reads where their rows are: no two units write one place.
//
//===----------------------------------------------------------------------===//
#include "Steps.h"

using namespace mlir;

namespace attn {

using Range = StepBuilder::Range;
using Values = StepBuilder::Values;

// On a CPU a unit writes the lists of a group; on a GPU a thread looks for its token, as no two may write one place.
void buildInvertRows(StepBuilder &s, InvertRowsOp op) {
  Value rows = op.getRows(), places = op.getPlaces();
  SmallVector<Range> mine = s.share({{places, 0}, {places, 1}, {places, 2, 0}});
  Value b = mine[0].from, g = mine[1].from, zero = s.index(0), size = s.dim(rows, 2), none = s.index(-1);
  if (s.onDevice()) {
    Value n = mine[2].from;
    auto look = [&](Value w, Value place) { return s.select(s.equal(s.load(rows, {b, g, w}), n), w, place); };
    s.store(s.fold(zero, size, none, look), places, {b, g, n});
    return;
  }
  s.forEach(mine[2], [&](Value n) { s.store(none, places, {b, g, n}); });
  s.forEach({zero, size, false}, [&](Value w) {
    Value row = s.load(rows, {b, g, w});
    s.ifThen(s.inside(row, mine[2].to), [&] { s.store(w, places, {b, g, row}); });
  });
}

void buildScatterMean(StepBuilder &s, ScatterMeanOp op) {
  Value input = op.getInput(), places = op.getPlaces(), output = op.getOutput();
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2, 16}, {output, 3, 0}});
  Value b = mine[0].from, first = s.mul(mine[1].from, op.getGroups()), last = s.add(first, op.getGroups());
  Value size = s.dim(input, 2);
  s.forEach(mine[2], [&](Value n) {
    auto place = [&](Value g) { return s.load(places, {b, g, n}); };
    Value count = s.fold(first, last, s.index(0), [&](Value g, Value count) {
      return s.select(s.inside(place(g), size), s.add(count, 1), count);
    });
    Value divisor = s.add(s.toF32(s.max(count, s.index(1))), s.f32(op.getEps().convertToDouble()));
    s.forLanes(mine[3], [&](Value d, int64_t width) {
      Value total = s.fold(first, last, s.f32(0, width), [&](Value g, Value total) {
        Value w = place(g);
        return s.choose(
            s.inside(w, size), [&] { return s.add(total, s.load(input, {b, g, w, d}, width)); }, [&] { return total; });
      });
      s.store(s.divide(total, s.splat(divisor, width)), output, {b, mine[1].from, n, d});
    });
  });
}

void buildScatterRows(StepBuilder &s, ScatterRowsOp op) {
  Value input = op.getInput(), places = op.getPlaces(), base = op.getBase(), output = op.getOutput();
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2, 16}, {output, 3, 0}});
  Value b = mine[0].from, h = mine[1].from, each = s.divide(s.dim(places, 1), s.dim(output, 1));
  Value first = s.mul(h, each), last = s.add(first, each), size = s.dim(input, 2), none = s.index(-1);
  s.forEach(mine[2], [&](Value n) {
    auto place = [&](Value g) { return s.load(places, {b, g, n}); };
    Value group =
        s.fold(first, last, none, [&](Value g, Value group) { return s.select(s.inside(place(g), size), g, group); });
    s.ifThen(
        s.equal(group, none),
        [&] {
          s.forLanes(mine[3],
                     [&](Value d, int64_t width) { s.store(s.load(base, {b, h, n, d}, width), output, {b, h, n, d}); });
        },
        [&] {
          Value w = place(group);
          s.forLanes(mine[3], [&](Value d, int64_t width) {
            s.store(s.load(input, {b, group, w, d}, width), output, {b, h, n, d});
          });
        });
  });
}

} // namespace attn
