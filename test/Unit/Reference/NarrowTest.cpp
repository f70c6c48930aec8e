//===- NarrowTest.cpp - f16 and bf16 inputs ---------------------------------===//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Reference.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/APFloat.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;

namespace {

constexpr int64_t kQueries = 20, kKeys = 500, kDim = 16;

struct Narrow : testing::TestWithParam<const char *> {
  Narrow() {
    context.loadDialect<attn::AttnDialect, func::FuncDialect>();
    type = parseType(GetParam(), &context);
  }

  OwningOpRef<ModuleOp> parse() {
    std::string element = GetParam();
    return parseSourceString<ModuleOp>("!t = tensor<1x1x?x16x" + element +
                                           ">\nfunc.func @f(%q: !t, %k: !t, %v: !t) -> (!t, tensor<1x1x?xf32>) {\n"
                                           "  %o, %l = attn.attention %q, %k, %v scale(0.125) : !t, !t, !t -> !t, "
                                           "tensor<1x1x?xf32>\n  return %o, %l : !t, tensor<1x1x?xf32>\n}\n",
                                       ParserConfig(&context));
  }

  attn::HostTensor draw(int64_t rows) {
    attn::HostTensor tensor = attn::HostTensor::create({1, 1, rows, kDim}, type);
    std::normal_distribution<double> normal;
    for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i)
      tensor.setDouble(i, normal(random));
    return tensor;
  }

  /// One pass with a reference that is not the maximum, as kernels have it. Products take weights as `rounding` and sum
  /// into numbers of `sum`.
  attn::HostTensor onePass(ArrayRef<attn::HostTensor> in, Type rounding, Type sum, float reference) {
    attn::HostTensor out = attn::HostTensor::create({1, 1, kQueries, kDim}, type);
    for (int64_t i = 0; i < kQueries; ++i) {
      std::vector<float> acc(kDim);
      float total = 0;
      for (int64_t j = 0; j < kKeys; ++j) {
        float s = 0;
        for (int64_t d = 0; d < kDim; ++d)
          s += float(in[0].getDouble(i * kDim + d)) * float(in[1].getDouble(j * kDim + d));
        float weight = std::exp(0.125f * s - reference), factor = attn::roundToType(weight, rounding);
        total += weight;
        for (int64_t d = 0; d < kDim; ++d)
          acc[d] = attn::roundToType(acc[d] + factor * float(in[2].getDouble(j * kDim + d)), sum);
      }
      for (int64_t d = 0; d < kDim; ++d)
        out.setDouble(i * kDim + d, acc[d] / total);
    }
    return out;
  }

  MLIRContext context;
  Type type;
  std::mt19937 random{11};
};

TEST_P(Narrow, EveryBitPatternIsRead) {
  attn::HostTensor all = attn::HostTensor::create({65536}, type);
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    uint16_t narrow = bits;
    std::memcpy(all.data.data() + 2 * bits, &narrow, 2);
  }
  std::vector<double> values(65536);
  std::vector<float> floats(65536);
  all.read(0, 65536, values.data());
  all.read(0, 65536, floats.data());
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    llvm::APFloat expected(cast<FloatType>(type).getFloatSemantics(), llvm::APInt(16, bits));
    bool losesInfo;
    expected.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    double want = expected.convertToDouble();
    for (double got : {values[bits], double(floats[bits]), all.getDouble(bits)}) {
      ASSERT_EQ(std::isnan(got), std::isnan(want)) << bits;
      if (!std::isnan(want)) {
        ASSERT_EQ(got, want) << bits;
        ASSERT_EQ(std::signbit(got), std::signbit(want)) << bits;
        ASSERT_EQ(attn::roundToType(want, type), want) << bits;
      }
    }
  }
}

TEST_P(Narrow, ExactResultsAreDoubles) {
  OwningOpRef<ModuleOp> module = parse();
  llvm::SmallVector<attn::HostTensor> inputs = {draw(kQueries), draw(kKeys), draw(kKeys)}, results;
  ASSERT_TRUE(succeeded(attn::evaluate(*module->getOps<func::FuncOp>().begin(), inputs, results)));
  ASSERT_TRUE(results[0].elementType.isF64());
  // Not rounded to 16 bits on the way.
  int narrow = 0;
  for (int64_t i = 0; i < kQueries * kDim; ++i)
    narrow += attn::roundToType(results[0].getDouble(i), type) == results[0].getDouble(i);
  EXPECT_LT(narrow, kQueries * kDim / 10);
}

TEST_P(Narrow, BoundAllowsSumsInSingleOnly) {
  OwningOpRef<ModuleOp> module = parse();
  func::FuncOp func = *module->getOps<func::FuncOp>().begin();
  Type f32 = Builder(&context).getF32Type();
  for (int round = 0; round < 8; ++round) {
    llvm::SmallVector<attn::HostTensor> inputs = {draw(kQueries), draw(kKeys), draw(kKeys)};
    llvm::SmallVector<attn::RowSample> exact, plain;
    ASSERT_TRUE(succeeded(attn::evaluateRows(func, inputs, -1, 0, exact, attn::Precision::Exact)));
    ASSERT_TRUE(succeeded(attn::evaluateRows(func, inputs, -1, 0, plain, attn::Precision::Single)));
    for (float reference : {0.0f, 0.3f, 3.7f})
      for (Type rounding : {type, f32}) {
        attn::Comparison good = attn::compare(exact[0], plain[0], onePass(inputs, rounding, f32, reference));
        EXPECT_TRUE(good.passed()) << good.maxError << " > " << good.bound;
      }
    attn::Comparison bad = attn::compare(exact[0], plain[0], onePass(inputs, type, type, 0.3f));
    EXPECT_GT(bad.maxError, 2 * bad.bound);
    // The log-sum-exp is f32 and has no such excuse.
    EXPECT_LT(attn::compare(exact[1], plain[1], attn::HostTensor::create({1, 1, kQueries}, f32)).bound, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Narrow, testing::Values("f16", "bf16"), [](const auto &info) { return info.param; });

} // namespace
