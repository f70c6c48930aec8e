//===- FeatureRows.cpp - Features of a few tokens, in the cache -----------===//
#include "FeatureRows.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn {

using Values = StepBuilder::Values;

//===----------------------------------------------------------------------===//
// Loops over features
//===----------------------------------------------------------------------===//

FeatureBlock::FeatureBlock(StepBuilder &s, Value count) : s(s), count(count) {
  constexpr int64_t kWidth = 96; // whole vectors, and whole blocks of rows
  std::optional<int64_t> known = getConstantIntValue(count);
  width = s.onDevice() ? 0 : known ? std::max<int64_t>(*known, 1) : kWidth;
  panels = known || s.onDevice() ? s.index(1) : s.divide(s.add(count, kWidth - 1), s.index(kWidth));
}

/// Few whole vectors: code without a loop.
static std::optional<int64_t> fewVectors(StepBuilder &s, Value count) {
  std::optional<int64_t> known = getConstantIntValue(count);
  if (s.onDevice() || !known || *known % s.lanes || *known > 8 * s.lanes)
    return std::nullopt;
  return *known / s.lanes;
}

void FeatureBlock::Panel::forVectors(StepBuilder &s, llvm::function_ref<void(At, int64_t)> body) const {
  auto run = [&](Value f, int64_t lanes) { body({number, f, s.add(from, f)}, lanes); };
  std::optional<int64_t> vectors = fewVectors(s, count);
  for (int64_t i = 0; vectors && i < *vectors; ++i)
    run(s.index(i * s.lanes), s.lanes);
  if (!vectors)
    s.forLanes({s.index(0), count, false}, run);
}

void FeatureBlock::Panel::forRows(StepBuilder &s, int64_t block, llvm::function_ref<void(Value, int64_t)> body) const {
  Value blocked = s.sub(count, s.modulo(count, s.index(block)));
  auto run = [&](Value from, Value to, int64_t rows) {
    auto body_ = [&](Value f, ValueRange) {
      body(f, rows);
      return Values();
    };
    s.loop(from, to, {}, body_, rows);
  };
  run(s.index(0), blocked, block);
  std::optional<int64_t> known = getConstantIntValue(count);
  if (!known)
    run(blocked, count, 1);
  else if (*known % block)
    body(blocked, *known % block);
}

void FeatureBlock::forPanels(llvm::function_ref<void(Panel)> body) {
  if (getConstantIntValue(panels) == 1)
    return body({s.index(0), s.index(0), count});
  s.forEach({s.index(0), panels, false}, [&](Value number) {
    Value from = s.mul(number, width);
    body({number, from, s.min(s.sub(count, from), s.index(width))});
  });
}

void FeatureBlock::forVectors(llvm::function_ref<void(At, int64_t)> body) {
  forPanels([&](Panel panel) { panel.forVectors(s, body); });
}

Values FeatureBlock::loop(ValueRange init, llvm::function_ref<Values(At, ValueRange)> body) {
  auto run = [&](Panel panel, ValueRange carried) {
    auto row = [&](Value f, ValueRange now) { return body({panel.number, f, s.add(panel.from, f)}, now); };
    return s.loop(s.index(0), panel.count, carried, row);
  };
  if (getConstantIntValue(panels) == 1)
    return run({s.index(0), s.index(0), count}, init);
  return s.loop(s.index(0), panels, init, [&](Value number, ValueRange carried) {
    Value from = s.mul(number, width);
    return run({number, from, s.min(s.sub(count, from), s.index(width))}, carried);
  });
}

Value FeatureBlock::dot(llvm::function_ref<std::pair<Value, Value>(At, int64_t)> factors) {
  auto ofPanel = [&](Value panel, Value from, Value size) -> Value {
    auto at = [&](Value f, int64_t lanes) { return factors({panel, f, s.add(from, f)}, lanes); };
    std::optional<int64_t> vectors = fewVectors(s, size);
    if (!vectors || *vectors == 0)
      return s.dot(size, at, /*inOrder=*/false);
    Value sum = s.f32(0, s.lanes);
    for (int64_t i = 0; i < *vectors; ++i) {
      auto [x, y] = at(s.index(i * s.lanes), s.lanes);
      sum = s.fma(x, y, sum);
    }
    return vector::ReductionOp::create(s.b, s.loc, vector::CombiningKind::ADD, sum, arith::FastMathFlags::reassoc);
  };
  if (getConstantIntValue(panels) == 1)
    return ofPanel(s.index(0), s.index(0), count);
  return s.fold(s.index(0), panels, s.f32(0), [&](Value panel, Value total) {
    Value from = s.mul(panel, width);
    return s.add(total, ofPanel(panel, from, s.min(s.sub(count, from), s.index(width))));
  });
}

Value FeatureBlock::allocate(int64_t rows) { return s.allocate(s.mul(panels, rows), width); }

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

FeatureRows::FeatureRows(FeatureBlock &features, Value tensor, std::optional<FeatureKind> map, int64_t rows,
                         bool onePanel)
    : features(features), s(features.s), tensor(tensor), map(map), rows(rows), onePanel(onePanel) {
  if (!s.onDevice())
    made = onePanel ? s.allocate(s.index(rows), features.width) : features.allocate(rows);
}

Value FeatureRows::make(Value row, Value feature, int64_t width) {
  Value x = s.load(tensor, {b, head, s.add(first, row), feature}, width);
  return map ? buildMap(s, *map, x, width) : x;
}

Value FeatureRows::place(Value row, FeatureBlock::At f) { return onePanel ? row : s.add(s.mul(f.panel, rows), row); }

void FeatureRows::fill(Value batch, Value h, Value token, Value count) {
  b = batch, head = h, first = token;
  if (!s.onDevice())
    features.forPanels([&](FeatureBlock::Panel panel) { fill(panel, batch, h, token, count); });
}

Values FeatureRows::fill(FeatureBlock::Panel panel, Value batch, Value h, Value token, Value count, Values sums) {
  b = batch, head = h, first = token;
  return s.loop(s.index(0), count, sums, [&](Value row, ValueRange carried) {
    Values next(carried);
    auto make = [&](FeatureBlock::At f, int64_t width) {
      Value feature = this->make(row, f.feature, width);
      s.store(feature, made, {place(row, f), f.inPanel});
      return feature;
    };
    for (auto [i, sum] : llvm::enumerate(next)) {
      Value f = s.index(i * s.lanes);
      sum = s.add(sum, make({panel.number, f, s.add(panel.from, f)}, s.lanes));
    }
    if (next.empty())
      panel.forVectors(s, [&](FeatureBlock::At f, int64_t width) { make(f, width); });
    return next;
  });
}

Value FeatureRows::load(Value row, FeatureBlock::At f, int64_t width) {
  return made ? s.load(made, {place(row, f), f.inPanel}, width) : make(row, f.feature, width);
}

} // namespace attn
