//===- FlashProblem.cpp - Inputs for a flash-attention kernel, and the answer -===//
#include "FlashProblem.h"
#include <cmath>
#include <random>

namespace attn::emulator::test {

Problem::Problem(int heads, int length, const FlashKernel &kernel)
    : heads(heads), length(length), kernel(kernel), q(size()), k(size()), v(size()), o(size(), 0xffff) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (auto *tensor : {&q, &k, &v})
    for (uint16_t &element : *tensor)
      element = kernel.bf16 ? toBF16(normal(random)) : toF16(normal(random));
}

LaunchReport Problem::run(EmulatorOptions options) {
  compiled = std::make_unique<Kernel>(FlashKernel::arguments(), kernel.body(), options);
  return run(*compiled);
}

LaunchReport Problem::run(const Kernel &compiled) {
  LaunchDims dims;
  dims.grid = {uint32_t(length + FlashKernel::kQueries - 1) / FlashKernel::kQueries, uint32_t(heads), 1};
  dims.block = {FlashKernel::kThreads, 1, 1};
  dims.dynamicShared = kernel.sharedBytes();
  return compiled.launch(dims, {q.data(), k.data(), v.data(), o.data(), int32_t(length)},
                         {input(q, "Q"), input(k, "K"), input(v, "V"), output(o, "O")});
}

std::vector<double> Problem::referenceRow(int head, int row) const {
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

double Problem::maxError() const {
  double worst = 0;
  for (int head = 0; head < heads; ++head)
    for (int row = 0; row < length; ++row) {
      std::vector<double> expected = referenceRow(head, row);
      for (int d = 0; d < kernel.headDim; ++d) {
        double error = std::abs(expected[d] - read(o[(size_t(head) * length + row) * kernel.headDim + d]));
        worst = error <= worst ? worst : error;
      }
    }
  return worst;
}

} // namespace attn::emulator::test
