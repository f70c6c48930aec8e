//===- Sort.cpp - Tokens hashed and sorted ------------------------------------===//
#include "Steps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace attn {

using Range = StepBuilder::Range;
using Values = StepBuilder::Values;

namespace {

/// The largest of some numbers and its index, the first one where several are.
struct Largest {
  Value number, index;

  Largest next(StepBuilder &s, Value x, Value at) const {
    Value better = s.less(number, x);
    return {s.select(better, x, number), s.select(better, at, index)};
  }
};

} // namespace

static Value elementOf(StepBuilder &s, Value v, int64_t lane) {
  return isa<VectorType>(v.getType()) ? vector::ExtractOp::create(s.b, s.loc, v, lane).getResult() : v;
}

void buildLshBuckets(StepBuilder &s, LshBucketsOp op) {
  Value input = op.getInput(), rotations = op.getRotations(), buckets = op.getBuckets();
  SmallVector<Range> mine = s.share({{buckets, 0}, {buckets, 1}, {buckets, 2, 16}});
  Value b = mine[0].from, g = mine[1].from, rounds = s.dim(rotations, 1), zero = s.index(0);
  Value h = s.divide(g, rounds), r = s.modulo(g, rounds), half = s.dim(rotations, 3);
  Value whole = s.sub(half, s.modulo(half, s.index(s.lanes))), none = s.f32(-std::numeric_limits<float>::infinity());
  s.forEach(mine[2], [&](Value n) {
    auto look = [&](Value from, Value to, Values so, int64_t width) {
      auto turn = [&](Value f, ValueRange so) {
        Value turned = s.fold(zero, s.dim(input, 3), s.f32(0, width), [&](Value d, Value total) {
          return s.fma(s.splat(s.load(input, {b, h, n, d}), width), s.load(rotations, {h, r, d, f}, width), total);
        });
        Largest plus{so[0], so[1]}, minus{so[2], so[3]};
        for (int64_t lane = 0; lane < width; ++lane) {
          Value y = elementOf(s, turned, lane), at = s.add(f, lane);
          plus = plus.next(s, y, at);
          minus = minus.next(s, s.sub(s.f32(0), y), at);
        }
        return Values{plus.number, plus.index, minus.number, minus.index};
      };
      return s.loop(from, to, so, turn, width);
    };
    Values found = look(zero, whole, {none, zero, none, zero}, s.lanes);
    if (!s.onDevice())
      found = look(whole, half, found, 1);
    s.store(s.select(s.less(found[0], found[2]), s.add(half, found[3]), found[1]), buckets, {b, g, n});
  });
}

// On a CPU a unit sorts a group by counting; on a GPU a thread looks for the tokens of its bucket, as no two may write
// one place.
void buildSort(StepBuilder &s, SortOp op) {
  Value keys = op.getKeys(), order = op.getOrder(), places = op.getPlaces(), starts = op.getStarts();
  SmallVector<Range> mine = s.share({{starts, 0}, {starts, 1}, {starts, 2, 0}});
  Value b = mine[0].from, g = mine[1].from, zero = s.index(0), one = s.index(1), tokens = s.dim(keys, 2);
  Value last = s.index(op.getBuckets() - 1);
  auto key = [&](Value n) { return s.max(s.min(s.load(keys, {b, g, n}), last), zero); };
  auto place = [&](Value n, Value at) {
    s.store(n, order, {b, g, at});
    s.store(at, places, {b, g, n});
  };
  if (s.onDevice()) {
    Value bucket = mine[2].from;
    auto count = [&](Value n, Value count) { return s.select(s.less(key(n), bucket), s.add(count, one), count); };
    Value start = s.fold(zero, tokens, zero, count);
    s.store(start, starts, {b, g, bucket});
    s.fold(zero, tokens, start, [&](Value n, Value at) {
      Value isMine = s.equal(key(n), bucket);
      s.ifThen(isMine, [&] { place(n, at); });
      return s.select(isMine, s.add(at, one), at);
    });
    return;
  }
  auto start = [&](Value bucket) { return s.load(starts, {b, g, bucket}); };
  s.forEach(mine[2], [&](Value bucket) { s.store(zero, starts, {b, g, bucket}); });
  s.forEach({zero, tokens, false}, [&](Value n) { s.store(s.add(start(key(n)), one), starts, {b, g, key(n)}); });
  s.fold(zero, mine[2].to, zero, [&](Value bucket, Value total) {
    Value end = s.add(total, start(bucket));
    s.store(end, starts, {b, g, bucket});
    return end;
  });
  s.forEach({zero, tokens, false}, [&](Value i) { // the last token first, so that ends become starts
    Value n = s.sub(s.sub(tokens, one), i), bucket = key(n), at = s.sub(start(bucket), one);
    s.store(at, starts, {b, g, bucket});
    place(n, at);
  });
}

void buildLookBack(StepBuilder &s, LookBackOp op) {
  Value rows = op.getRows(), output = op.getOutput(), ring = s.index(op.getGroups());
  SmallVector<Range> mine = s.share({{output, 0}, {output, 1}, {output, 2, 64}});
  Value b = mine[0].from, g = mine[1].from, chunk = s.index(op.getChunk()), tokens = s.dim(rows, 2);
  Value first = s.sub(g, s.modulo(g, ring));
  Value before = s.add(first, s.modulo(s.add(s.modulo(g, ring), op.getGroups() - 1), ring));
  Value back = s.sub(tokens, s.index(1)), lastChunk = s.sub(back, s.modulo(back, chunk)); // not read without tokens
  s.forEach(mine[2], [&](Value w) {
    Value isBack = s.less(w, chunk), group = s.select(isBack, before, g);
    Value n = s.select(isBack, s.add(w, lastChunk), s.sub(w, chunk));
    Value row = s.choose(s.inside(n, tokens), [&] { return s.load(rows, {b, group, n}); }, [&] { return s.index(-1); });
    s.store(row, output, {b, g, w});
  });
}

} // namespace attn
