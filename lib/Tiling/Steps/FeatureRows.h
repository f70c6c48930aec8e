//===- FeatureRows.h - Features of a few tokens, in the cache ---*- C++ -*-===//
//
// Loops over features, and rows of them that a unit makes once and reads often: element by element, at fixed distances
// from one address. So rows of an extent that is not known are cut into panels of a fixed width.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_TILING_STEPS_FEATUREROWS_H
#define ATTN_LIB_TILING_STEPS_FEATUREROWS_H

#include "Steps.h"

namespace attn {

/// The features of a head.
class FeatureBlock {
public:
  using Value = mlir::Value;
  using Values = StepBuilder::Values;

  FeatureBlock(StepBuilder &s, Value count);

  /// A feature: its panel, its place there, and its number.
  struct At {
    Value panel, inPanel, feature;
  };
  struct Panel {
    Value number, from, count;
    void forVectors(StepBuilder &s, llvm::function_ref<void(At, int64_t)> body) const;
    /// body(first, count): rows of `block` features of the panel, then those that are left.
    void forRows(StepBuilder &s, int64_t block, llvm::function_ref<void(Value, int64_t)> body) const;
  };

  void forPanels(llvm::function_ref<void(Panel)> body);
  void forVectors(llvm::function_ref<void(At, int64_t)> body);
  Values loop(mlir::ValueRange init, llvm::function_ref<Values(At, mlir::ValueRange)> body);
  /// The sum of the products of factors(at, width) over all features.
  Value dot(llvm::function_ref<std::pair<Value, Value>(At, int64_t)> factors);

  /// `rows` rows of all features: row r of panel p is at p * rows + r.
  Value allocate(int64_t rows);

  StepBuilder &s;
  Value count, panels;
  int64_t width; // of a panel; 0 on a GPU, where there are none
};

/// Rows of a tensor of queries or keys, as features.
class FeatureRows {
public:
  using Value = mlir::Value;

  /// `onePanel`: of one panel at a time.
  FeatureRows(FeatureBlock &features, Value tensor, std::optional<FeatureKind> map, int64_t rows,
              bool onePanel = false);

  /// Makes the features of `count` tokens from `first` on.
  void fill(Value b, Value head, Value first, Value count);
  /// `sums`, of a panel of that many vectors, have the features added.
  StepBuilder::Values fill(FeatureBlock::Panel panel, Value b, Value head, Value first, Value count,
                           StepBuilder::Values sums = {});
  Value load(Value row, FeatureBlock::At f, int64_t width);

private:
  Value make(Value row, Value feature, int64_t width);
  Value place(Value row, FeatureBlock::At f);

  FeatureBlock &features;
  StepBuilder &s;
  Value tensor;
  std::optional<FeatureKind> map;
  int64_t rows;
  bool onePanel;
  Value made;           // null on a GPU
  Value b, head, first; // of the last `fill`
};

} // namespace attn

#endif // ATTN_LIB_TILING_STEPS_FEATUREROWS_H
