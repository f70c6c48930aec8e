// attn_range against brute force, for every integer type, rank and layout.

#include "attn/Runtime/Tables.h"
#include "attn/Runtime/Attn.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace {

using Random = std::mt19937;
int64_t pick(Random &random, int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }

/// A tensor of T with gaps between rows, and its memref.
template <typename T>
struct Source {
  std::vector<int64_t> extents;
  std::vector<T> data;
  AttnMemRef memref = {};

  Source(Random &random, std::vector<int64_t> dims, int64_t lo, int64_t hi) : extents(std::move(dims)) {
    int64_t stride = pick(random, 1, 2), rank = extents.size();
    for (int64_t d = rank; d-- > 0;) {
      memref.extents[d] = extents[d];
      memref.extents[rank + d] = stride;
      stride = stride * std::max<int64_t>(extents[d], 1) + pick(random, 0, 3);
    }
    for (int64_t k = 0; k < stride + 1; ++k)
      data.push_back(static_cast<T>(pick(random, lo, hi)));
    memref.base = memref.data = data.data();
  }

  int64_t at(const std::vector<int64_t> &index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += std::min(std::max<int64_t>(index[d], 0), extents[d] - 1) * memref.extents[extents.size() + d];
    return static_cast<int64_t>(data[offset]);
  }
};

/// Calls `visit` on every index of the box.
template <typename Visit>
void forEach(const std::vector<int64_t> &lo, const std::vector<int64_t> &hi, Visit visit) {
  std::vector<int64_t> at = lo;
  while (true) {
    visit(at);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] > hi[d - 1]) {
      at[d - 1] = lo[d - 1];
      --d;
    }
    if (d == 0)
      return;
  }
}

AttnTables *build(int64_t kind, int64_t dim, const AttnMemRef &memref, int64_t rank, int64_t code, int64_t bits) {
  AttnKernel kernel = {};
  kernel.num_captured = kernel.num_tables = 1;
  kernel.tables[0] = {kind, 0, dim};
  AttnTableSource source = {&memref, rank, code, bits};
  AttnTables *tables = nullptr;
  int64_t culprit = -1;
  EXPECT_EQ(attn_tables_build(&kernel, &source, 1 << 24, 1, &tables, &culprit), ATTN_OK);
  return tables;
}

template <typename T>
void testRange(int64_t code, int64_t lo = std::numeric_limits<T>::min(),
               int64_t hi = static_cast<int64_t>(std::min<uint64_t>(std::numeric_limits<T>::max(), INT64_MAX))) {
  Random random(7);
  for (int trial = 0; trial < 60; ++trial) {
    int64_t rank = pick(random, 0, 3);
    std::vector<int64_t> dims;
    for (int64_t d = 0; d < rank; ++d)
      dims.push_back(pick(random, 1, d == rank - 1 ? 300 : 5));
    Source<T> source(random, dims, lo, hi);
    int64_t dim = rank ? pick(random, 0, rank - 1) : 0;
    AttnTables *tables = build(ATTN_RANGE, dim, source.memref, rank, code, sizeof(T) * 8);
    for (int query = 0; query < 60; ++query) {
      std::vector<int64_t> from, to;
      for (int64_t d = 0; d < rank; ++d) {
        int64_t a = pick(random, -2, dims[d] + 1), b = pick(random, -2, dims[d] + 1);
        from.push_back(std::min(a, b));
        to.push_back(std::max(a, b));
      }
      int64_t least = INT64_MAX, greatest = INT64_MIN, got[2];
      forEach(from, to, [&](const std::vector<int64_t> &at) {
        least = std::min(least, source.at(at));
        greatest = std::max(greatest, source.at(at));
      });
      attn_range(tables, 0, from.data(), to.data(), got);
      ASSERT_EQ(got[0], least);
      ASSERT_EQ(got[1], greatest);
    }
    attn_tables_free(tables);
  }
}

TEST(Tables, Range) {
  testRange<int8_t>(0);
  testRange<int16_t>(0);
  testRange<int32_t>(0);
  testRange<int64_t>(0);
  testRange<uint8_t>(1);
  testRange<uint16_t>(1);
  testRange<uint32_t>(1);
  testRange<uint64_t>(1);
  testRange<int8_t>(6, 0, 1);
}

TEST(Tables, SortedRowsNeedNoTree) {
  Random random(11);
  std::vector<int32_t> data(3 * 200);
  for (int row = 0; row < 3; ++row) {
    std::generate_n(data.begin() + row * 200, 200, [&] { return pick(random, -20, 20); });
    std::sort(data.begin() + row * 200, data.begin() + (row + 1) * 200);
  }
  for (bool sorted : {true, false}) {
    if (!sorted)
      std::swap(data[599], data[400]);
    AttnMemRef memref = {data.data(), data.data(), 0, {3, 200, 200, 1}};
    AttnTables *tables = build(ATTN_RANGE, 1, memref, 2, 0, 32);
    EXPECT_EQ(attn_tables_bytes(tables) == 0, sorted);
    for (int query = 0; query < 300; ++query) {
      int64_t a = pick(random, 0, 199), b = pick(random, 0, 199), row = pick(random, 0, 2), got[2];
      int64_t lo[] = {row, std::min(a, b)}, hi[] = {row, std::max(a, b)};
      auto [least, greatest] =
          std::minmax_element(data.begin() + row * 200 + lo[1], data.begin() + row * 200 + hi[1] + 1);
      attn_range(tables, 0, lo, hi, got);
      ASSERT_EQ(got[0], *least);
      ASSERT_EQ(got[1], *greatest);
    }
    attn_tables_free(tables);
  }
}

TEST(Tables, AnyNonzeroByteIsTrue) {
  uint8_t data[] = {0, 255, 2};
  AttnMemRef memref = {data, data, 0, {3, 1}};
  AttnTables *tables = build(ATTN_RANGE, 0, memref, 1, 6, 8);
  int64_t lo = 1, hi = 2, got[2];
  attn_range(tables, 0, &lo, &hi, got);
  EXPECT_EQ(got[0], 1);
  EXPECT_EQ(got[1], 1);
  attn_tables_free(tables);
}

TEST(Tables, TooManyRowsOrNoElementsAnswerTheTypesRange) {
  std::vector<int16_t> data(2000 * 2, 5);
  AttnMemRef memref = {data.data(), data.data(), 0, {2000, 2, 2, 1}};
  AttnTables *tables = build(ATTN_RANGE, 1, memref, 2, 0, 16);
  int64_t lo[] = {0, 0}, many[] = {1024, 1}, few[] = {1023, 1}, got[2];
  attn_range(tables, 0, lo, many, got);
  EXPECT_EQ(got[0], -32768);
  EXPECT_EQ(got[1], 32767);
  attn_range(tables, 0, lo, few, got);
  EXPECT_EQ(got[0], 5);
  EXPECT_EQ(got[1], 5);
  attn_tables_free(tables);

  memref.extents[0] = 0;
  tables = build(ATTN_RANGE, 1, memref, 2, 1, 16);
  attn_range(tables, 0, lo, few, got);
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 65535);
  attn_tables_free(tables);
}

TEST(Tables, Members) {
  Random random(3);
  for (int trial = 0; trial < 200; ++trial) {
    int64_t rows = pick(random, 1, 4), entries = pick(random, 0, 12), most = pick(random, 0, trial % 4 ? 200 : 5000);
    Source<int32_t> source(random, {rows, entries}, -5, most);
    AttnTables *tables = build(ATTN_MEMBERS, 0, source.memref, 2, 0, 32);
    AttnMemRef *bitmap = attn_tables_bitmap(tables, 0);
    int64_t bytes = bitmap->extents[1];
    auto contains = [&](int64_t row, int64_t value) {
      for (int64_t k = 0; k < entries; ++k)
        if (value >= 0 && source.at({row, k}) == value)
          return true;
      return false;
    };
    ASSERT_EQ(bitmap->extents[0], rows);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t value = 0; value < most + 9; ++value) {
        int64_t byte = std::min(value / 8, bytes - 1);
        ASSERT_EQ(static_cast<uint8_t *>(bitmap->data)[row * bitmap->extents[2] + byte] >> value % 8 & 1,
                  contains(row, value));
      }
    for (int query = 0; query < 50; ++query) {
      int64_t a = pick(random, -9, most + 9), b = pick(random, -9, most + 9), row = pick(random, 0, rows - 1);
      int64_t lo[] = {row, std::min(a, b)}, hi[] = {row, std::max(a, b)}, got[2];
      bool any = false, all = true;
      for (int64_t value = lo[1]; value <= hi[1]; ++value)
        (contains(row, value) ? any : all) = contains(row, value);
      attn_range(tables, 0, lo, hi, got);
      ASSERT_TRUE(got[0] <= all && got[1] >= any) << "unsound";
      ASSERT_EQ(got[1], any);
      ASSERT_EQ(got[0], all);
    }
    attn_tables_free(tables);
  }
}

TEST(Tables, AMemberTooLargeNamesItsSet) {
  int64_t data[] = {1, int64_t(1) << 40};
  AttnMemRef memref = {data, data, 0, {2, 1}};
  AttnKernel kernel = {};
  kernel.num_captured = 2;
  kernel.num_tables = 1;
  kernel.tables[0] = {ATTN_MEMBERS, 1, 0};
  AttnTableSource sources[] = {{&memref, 1, 0, 64}, {&memref, 1, 0, 64}};
  AttnTables *tables = nullptr;
  int64_t culprit = -1;
  EXPECT_EQ(attn_tables_build(&kernel, sources, 1000, 0, &tables, &culprit), ATTN_WRONG_EXTENT);
  EXPECT_EQ(culprit, 1);
  EXPECT_EQ(tables, nullptr);
}

} // namespace
