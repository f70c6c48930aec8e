//===- TileMap.cpp - A mask in blocks of pairs ----------------------------===//
#include "TileMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

namespace attn {

static constexpr int64_t kMostLooks = 6'000'000; // at single pairs of partial blocks: about a second
static constexpr int64_t kSamples = 8;           // of a partial block in each direction, where there are more

// Powers of two fall together with the boundaries that most masks have.
static int64_t chooseTokens(int64_t extent, int64_t mostBlocks) {
  int64_t tokens = 1;
  while (llvm::divideCeil(extent, tokens) > uint64_t(mostBlocks))
    tokens *= 2;
  return extent * 4 <= mostBlocks * 3 ? 1 : std::max<int64_t>(tokens, 8);
}

TileMap::TileMap(const MaskEvaluator &evaluator, int64_t b, int64_t h, int64_t mostBlocks)
    : evaluator(evaluator), b(b), h(h) {
  const Extents &extents = evaluator.getExtents();
  queryTokens = chooseTokens(extents.queries, mostBlocks);
  keyTokens = chooseTokens(extents.keys, mostBlocks);
  rows = llvm::divideCeil(extents.queries, queryTokens);
  columns = llvm::divideCeil(extents.keys, keyTokens);
  shades.resize(rows * columns, kEmpty);
  if (rows && columns)
    fill(0, rows, 0, columns);
  shadePartial();
}

int64_t TileMap::queryEnd(int64_t row) const { return std::min(row * queryTokens, evaluator.getExtents().queries); }
int64_t TileMap::keyEnd(int64_t column) const { return std::min(column * keyTokens, evaluator.getExtents().keys); }

void TileMap::set(int64_t row0, int64_t row1, int64_t column0, int64_t column1, Shade shade) {
  for (int64_t row = row0; row < row1; ++row)
    std::fill_n(shades.begin() + row * columns + column0, column1 - column0, shade);
  counts[shade] += (row1 - row0) * (column1 - column0);
}

// Long rectangles are asked first; only what is partial is cut further.
void TileMap::fill(int64_t row0, int64_t row1, int64_t column0, int64_t column1) {
  int64_t offset = evaluator.getQueryOffset();
  AttnRunKind kind = evaluator.classify(b, h, queryEnd(row0) + offset, queryEnd(row1) - 1 + offset, keyEnd(column0),
                                        keyEnd(column1) - 1);
  if (kind != ATTN_PARTIAL) {
    set(row0, row1, column0, column1, kind == ATTN_FULL ? kFull : kEmpty);
    if (kind == ATTN_FULL)
      kept += double(queryEnd(row1) - queryEnd(row0)) * double(keyEnd(column1) - keyEnd(column0));
    return;
  }
  if (row1 - row0 == 1 && column1 - column0 == 1) {
    shades[row0 * columns + column0] = kQuarter; // shadePartial says more
    return;
  }
  if (row1 - row0 > column1 - column0) {
    int64_t middle = (row0 + row1) / 2;
    fill(row0, middle, column0, column1);
    fill(middle, row1, column0, column1);
  } else {
    int64_t middle = (column0 + column1) / 2;
    fill(row0, row1, column0, middle);
    fill(row0, row1, middle, column1);
  }
}

int64_t TileMap::getPairs(int64_t row, int64_t column) const {
  return (queryEnd(row + 1) - queryEnd(row)) * (keyEnd(column + 1) - keyEnd(column));
}

// All partial blocks are counted or all are estimated, so that equal ones look equal.
void TileMap::shadePartial() {
  int64_t looks = llvm::count(shades, kQuarter) * queryTokens * keyTokens;
  isExact = looks <= kMostLooks;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      Shade &shade = shades[row * columns + column];
      if (shade != kQuarter)
        continue;
      // A single pair that is not masked for sure attends.
      double pairs = getPairs(row, column);
      double part = isElements() ? 1 : isExact ? countPairs(row, column) / pairs : sample(row, column);
      kept += part * pairs;
      shade = isElements() ? kFull : Shade(std::clamp(int(std::ceil(part * 4)), int(kQuarter), int(kMost)));
      ++counts[shade];
    }
}

int64_t TileMap::countPairs(int64_t row, int64_t column) const {
  int64_t found = 0, offset = evaluator.getQueryOffset();
  for (int64_t query = queryEnd(row); query < queryEnd(row + 1); ++query)
    for (int64_t key = keyEnd(column); key < keyEnd(column + 1); ++key)
      found += evaluator.keep(b, h, query + offset, key);
  return found;
}

// One pair in each field of a grid, at a place in the field that looks random, so that no period of the mask is missed.
double TileMap::sample(int64_t row, int64_t column) const {
  int64_t q0 = queryEnd(row), q1 = queryEnd(row + 1), k0 = keyEnd(column), k1 = keyEnd(column + 1);
  int64_t down = std::min(kSamples, q1 - q0), across = std::min(kSamples, k1 - k0), found = 0;
  uint64_t state = uint64_t(row) * 0x9e3779b97f4a7c15 + uint64_t(column);
  auto place = [&](int64_t begin, int64_t end, int64_t field, int64_t fields) {
    state = state * 6364136223846793005 + 1442695040888963407;
    int64_t from = begin + (end - begin) * field / fields, to = begin + (end - begin) * (field + 1) / fields;
    return from + int64_t((state >> 33) % uint64_t(to - from));
  };
  for (int64_t i = 0; i < down; ++i)
    for (int64_t j = 0; j < across; ++j) {
      int64_t query = place(q0, q1, i, down) + evaluator.getQueryOffset();
      found += evaluator.keep(b, h, query, place(k0, k1, j, across));
    }
  return double(found) / double(down * across);
}

std::vector<TileMap::Rectangle> TileMap::merge(Shade shade) const {
  std::vector<Rectangle> done;
  std::vector<size_t> open; // rectangles that reach down to the row before
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<size_t> next;
    for (int64_t column = 0; column < columns; ++column) {
      if (get(row, column) != shade)
        continue;
      int64_t begin = column;
      while (column < columns && get(row, column) == shade)
        ++column;
      auto above = std::find_if(open.begin(), open.end(), [&](size_t index) {
        return done[index].column == begin && done[index].columns == column - begin;
      });
      if (above != open.end()) {
        ++done[*above].rows;
        next.push_back(*above);
      } else {
        next.push_back(done.size());
        done.push_back({row, begin, 1, column - begin});
      }
    }
    open = std::move(next);
  }
  return done;
}

} // namespace attn
