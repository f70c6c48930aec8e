//===- CompareTest.cpp - The bound of --check -------------------------------===//
#include "attn/Reference/Reference.h"
#include "mlir/IR/Builders.h"
#include "gtest/gtest.h"
#include <limits>

using namespace mlir;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

attn::RowSample makeSample(std::vector<double> values) {
  attn::RowSample sample;
  sample.shape = {1, 1, 1, int64_t(values.size())};
  sample.width = values.size();
  sample.total = 1;
  sample.rows = {0};
  sample.values = std::move(values);
  return sample;
}

attn::Comparison compareSamples(const attn::RowSample &exact, const attn::RowSample &plain,
                                std::vector<double> actual) {
  MLIRContext context;
  attn::HostTensor tensor = attn::HostTensor::create({1, 1, 1, int64_t(actual.size())}, Builder(&context).getF32Type());
  for (auto [index, value] : llvm::enumerate(actual))
    tensor.setDouble(index, value);
  return attn::compare(exact, plain, tensor);
}

attn::Comparison compare(std::vector<double> exact, std::vector<double> plain, std::vector<double> actual) {
  return compareSamples(makeSample(exact), makeSample(plain), actual);
}

TEST(Compare, AllowsTwiceThePlainError) {
  EXPECT_TRUE(compare({1, 2}, {1, 2.002}, {1.0019, 2}).passed());
  EXPECT_FALSE(compare({1, 2}, {1, 2.002}, {1.0021, 2}).passed());
  EXPECT_EQ(compare({1, 2}, {1, 2.002}, {1.0021, 2}).worst, 0);
}

TEST(Compare, ErrorsCountByMagnitude) {
  attn::RowSample exact = makeSample({1, 1000, 2}), plain = makeSample({1, 1001, 2});
  exact.magnitudes = {1, 1000, kInfinity};
  EXPECT_TRUE(compareSamples(exact, plain, {1.0019, 1000, 2}).passed());
  EXPECT_FALSE(compareSamples(exact, plain, {1.0021, 1000, 2}).passed());
  EXPECT_FALSE(compareSamples(exact, plain, {1, 1000, 2.0041}).passed());
}

TEST(Compare, AllowsFourUlpOfTheMagnitude) {
  attn::RowSample exact = makeSample({0x1p-10}), plain = exact;
  exact.magnitudes = {1};
  EXPECT_TRUE(compareSamples(exact, plain, {0x1p-10 + 0x1p-21}).passed());
  EXPECT_FALSE(compareSamples(exact, plain, {0x1p-10 + 0x1.1p-21}).passed());
}

TEST(Compare, InfinitiesAndNaN) {
  EXPECT_TRUE(compare({-kInfinity, 1}, {-kInfinity, 1}, {-kInfinity, 1}).passed());
  EXPECT_FALSE(compare({-kInfinity}, {-kInfinity}, {-1e30}).passed());
  EXPECT_FALSE(compare({0}, {0}, {std::numeric_limits<double>::quiet_NaN()}).passed());
  // An implementation that overflows itself is no excuse.
  EXPECT_FALSE(compare({1}, {kInfinity}, {2}).passed());
}

} // namespace
