//===- FlashTest.cpp - A whole kernel against a reference in doubles --------===//
#include "FlashKernel.h"
#include "Kernel.h"
#include <cmath>
#include <random>

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

struct Problem {
  Problem(int heads, int length, const FlashKernel &kernel)
      : heads(heads), length(length), kernel(kernel), q(size()), k(size()), v(size()), o(size(), 0xffff) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (auto *tensor : {&q, &k, &v})
      for (uint16_t &element : *tensor)
        element = kernel.bf16 ? toBF16(normal(random)) : toF16(normal(random));
  }

  size_t size() const { return size_t(heads) * length * kernel.headDim; }
  float read(uint16_t bits) const { return kernel.bf16 ? fromBF16(bits) : fromF16(bits); }

  LaunchReport run(EmulatorOptions options = {}) {
    Kernel compiled(FlashKernel::arguments(), kernel.body(), options);
    return run(compiled);
  }

  LaunchReport run(const Kernel &compiled) {
    LaunchDims dims;
    dims.grid = {uint32_t(length + FlashKernel::kQueries - 1) / FlashKernel::kQueries, uint32_t(heads), 1};
    dims.block = {FlashKernel::kThreads, 1, 1};
    dims.dynamicShared = kernel.sharedBytes();
    return compiled.launch(dims, {q.data(), k.data(), v.data(), o.data(), int32_t(length)},
                           {input(q, "Q"), input(k, "K"), input(v, "V"), output(o, "O")});
  }

  std::vector<double> referenceRow(int head, int row) const {
    int columns = kernel.causal ? row + 1 : length, dim = kernel.headDim;
    const size_t base = size_t(head) * length * dim;
    std::vector<double> p(columns), out(dim, 0.0);
    double maximum = -1e300, sum = 0;
    for (int j = 0; j < columns; ++j) {
      for (int d = 0; d < dim; ++d)
        p[j] += double(read(q[base + size_t(row) * dim + d])) * read(k[base + size_t(j) * dim + d]);
      p[j] /= std::sqrt(double(dim));
      maximum = std::max(maximum, p[j]);
    }
    for (double &x : p)
      sum += x = std::exp(x - maximum);
    for (int j = 0; j < columns; ++j)
      for (int d = 0; d < dim; ++d)
        out[d] += p[j] / sum * read(v[base + size_t(j) * dim + d]);
    return out;
  }

  double maxError() const {
    double worst = 0;
    for (int head = 0; head < heads; ++head)
      for (int row = 0; row < length; ++row) {
        std::vector<double> expected = referenceRow(head, row);
        for (int d = 0; d < kernel.headDim; ++d) {
          double error = std::abs(expected[d] - read(o[(size_t(head) * length + row) * kernel.headDim + d]));
          worst = error <= worst ? worst : error; // a NaN is the worst
        }
      }
    return worst;
  }

  int heads, length;
  FlashKernel kernel;
  std::vector<uint16_t> q, k, v, o;
};

void expectRight(const FlashKernel &kernel, int heads, int length, double bound) {
  Problem problem(heads, length, kernel);
  LaunchReport report = problem.run();
  EXPECT_EQ(report.faultCount, 0u) << (report.faults.empty() ? "" : report.faults[0].text);
  EXPECT_LT(problem.maxError(), bound);
}

TEST(Flash, bf16) { expectRight({64, true, false}, 2, 256, 0.01); }
TEST(Flash, f16) { expectRight({64, false, false}, 1, 192, 0.002); }
TEST(Flash, causal) { expectRight({64, true, true}, 1, 192, 0.02); }
TEST(Flash, oddLength) { expectRight({64, true, false}, 2, 131, 0.01); }
TEST(Flash, wideHeads) { expectRight({128, true, true}, 1, 128, 0.02); }

} // namespace
