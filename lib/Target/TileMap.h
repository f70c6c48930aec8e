//===- TileMap.h - A mask in blocks of pairs --------------------*- C++ -*-===//
#ifndef ATTN_LIB_TARGET_TILEMAP_H
#define ATTN_LIB_TARGET_TILEMAP_H

#include "attn/Pattern/Mask.h"
#include <array>
#include <vector>

namespace attn {

/// What a block keeps: nothing, up to 1/4, 1/2, 3/4 or less than all, or all of its pairs.
enum Shade : uint8_t { kEmpty, kQuarter, kHalf, kThreeQuarters, kMost, kFull, kNumShades };

/// A mask of one batch and head, cut into blocks. Single pairs stand for themselves where there are few.
class TileMap {
public:
  /// At most `mostBlocks` blocks in each direction.
  TileMap(const MaskEvaluator &evaluator, int64_t b, int64_t h, int64_t mostBlocks = 128);

  /// Tokens in a block; 1 and 1: every pair stands for itself.
  int64_t queryTokens, keyTokens;
  int64_t rows, columns;
  bool isElements() const { return queryTokens == 1 && keyTokens == 1; }

  Shade get(int64_t row, int64_t column) const { return shades[row * columns + column]; }

  /// Blocks by shade.
  std::array<int64_t, kNumShades> counts = {};
  /// Pairs that attend, and whether they were counted: where that takes too long, partial blocks are estimated.
  double kept = 0;
  bool isExact = true;

  /// A rectangle of blocks of one shade.
  struct Rectangle {
    int64_t row, column, rows, columns;
  };
  /// Few rectangles that cover the blocks of a shade.
  std::vector<Rectangle> merge(Shade shade) const;

private:
  void fill(int64_t row0, int64_t row1, int64_t column0, int64_t column1);
  void set(int64_t row0, int64_t row1, int64_t column0, int64_t column1, Shade shade);
  void shadePartial();
  int64_t getPairs(int64_t row, int64_t column) const;
  int64_t countPairs(int64_t row, int64_t column) const;
  double sample(int64_t row, int64_t column) const;
  int64_t queryEnd(int64_t row) const;
  int64_t keyEnd(int64_t column) const;

  const MaskEvaluator &evaluator;
  int64_t b, h;
  std::vector<Shade> shades;
};

} // namespace attn

#endif // ATTN_LIB_TARGET_TILEMAP_H
