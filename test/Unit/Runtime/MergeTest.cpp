// The merge of split keys: exponentials, logarithm, empty parts and output types.

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

extern "C" {
#include "Internal.h"
}

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One row of one value dimension: parts of (sum, m, l).
struct Row {
  float out = NAN, lse = NAN;

  Row(std::vector<std::array<float, 3>> parts, bool natural = false) {
    AttnMemRef outRef = {nullptr, &out, 0, {1, 1, 1, 1, 1, 1, 1, 1}}, lseRef = {nullptr, &lse, 0, {1, 1, 1, 1, 1, 1}};
    AttnKernel kernel = {};
    kernel.natural_partials = natural;
    AttnProblem problem = {};
    problem.kernel = &kernel;
    problem.value_dim = 1;
    problem.out = &outRef;
    problem.lse = &lseRef;
    problem.out_code = kDLFloat;
    problem.out_bits = 32;
    attn_merge(&problem, parts[0].data(), parts.size(), 0, 0, 0, 1, 1);
  }
};

TEST(Merge, AgreesWithLibm) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-40, 25), weight(1, 1000), value(-3, 3);
  for (int trial = 0; trial < 20000; ++trial) {
    std::vector<std::array<float, 3>> parts;
    double m = -infinity, sum = 0, l = 0;
    for (int k = 0; k < 1 + trial % 4; ++k) {
      float weights = weight(random);
      parts.push_back({weights * value(random), exponent(random), weights});
      m = std::max<double>(m, parts.back()[1]);
    }
    double size = 0;
    for (auto &part : parts) {
      sum += std::pow(16, part[1] - m) * part[0];
      size += std::pow(16, part[1] - m) * std::abs(part[0]);
      l += std::pow(16, part[1] - m) * part[2];
    }
    Row row(parts);
    ASSERT_NEAR(row.out, sum / l, 4e-7 * size / l);
    ASSERT_NEAR(row.lse, 4 * m * M_LN2 + std::log(l), 2e-7 * (1 + 4 * std::abs(m) + std::log2(l)));
  }
}

TEST(Merge, NaturalUnits) {
  Row close({{6, 3, 2}, {10, 2, 1}}, /*natural=*/true);
  double less = std::exp(-1.0);
  EXPECT_NEAR(close.out, (6 + less * 10) / (2 + less), 1e-6);
  EXPECT_NEAR(close.lse, 3 + std::log(2 + less), 1e-6);
  // At the ends of the range nothing overflows, and the larger part wins.
  float most = std::numeric_limits<float>::max();
  for (float sign : {1.0f, -1.0f}) {
    Row far({{6, sign * most, 2}, {10, sign * 0.9f * most, 1}}, /*natural=*/true);
    EXPECT_EQ(far.out, sign > 0 ? 3 : 10);
    EXPECT_EQ(far.lse, sign > 0 ? most : -0.9f * most);
  }
}

TEST(Merge, EmptyPartsDoNotCount) {
  Row nothing({{NAN, -infinity, 0}, {0, -infinity, 0}});
  EXPECT_EQ(nothing.out, 0);
  EXPECT_EQ(nothing.lse, -infinity);
  Row some({{NAN, 1000, 0}, {6, 3, 2}});
  EXPECT_EQ(some.out, 3);
  EXPECT_FLOAT_EQ(some.lse, 13 * M_LN2);
}

TEST(Merge, NotANumberReachesItsRow) {
  Row row({{NAN, NAN, NAN}, {6, 3, 2}});
  EXPECT_TRUE(std::isnan(row.out));
  EXPECT_TRUE(std::isnan(row.lse));
  Row value({{NAN, 1, 1}, {6, 3, 2}});
  EXPECT_TRUE(std::isnan(value.out));
  EXPECT_FALSE(std::isnan(value.lse));
}

uint16_t stored(float value, int64_t code) {
  float part[] = {value, 0, 1};
  uint16_t out = 0xdead;
  AttnMemRef outRef = {nullptr, &out, 0, {1, 1, 1, 1, 1, 1, 1, 1}};
  AttnKernel kernel = {};
  AttnProblem problem = {};
  problem.kernel = &kernel;
  problem.value_dim = 1;
  problem.out = &outRef;
  problem.out_code = code;
  problem.out_bits = 16;
  attn_merge(&problem, part, 1, 0, 0, 0, 1, 1);
  return out;
}

TEST(Merge, HalfTypesRoundToNearestEven) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100000; ++trial) {
    uint32_t bits = random();
    float value;
    std::memcpy(&value, &bits, 4);
    _Float16 half = static_cast<_Float16>(value);
    uint16_t wanted;
    std::memcpy(&wanted, &half, 2);
    if (std::isnan(value)) {
      ASSERT_EQ(stored(value, kDLFloat) & 0x7e00, 0x7e00);
      ASSERT_GT(stored(value, kDLBfloat) & 0x7fff, 0x7f80);
      continue;
    }
    ASSERT_EQ(stored(value, kDLFloat), wanted) << value;
    uint32_t up = (bits & 0xffff0000u) + 0x10000u, low = bits & 0xffffu;
    bool roundUp = low > 0x8000 || (low == 0x8000 && (bits & 0x10000));
    ASSERT_EQ(stored(value, kDLBfloat), (roundUp ? up : bits) >> 16) << value;
  }
}

} // namespace
