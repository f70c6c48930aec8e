//===- FlashProblem.h - Inputs for a flash-attention kernel, and the answer -===//
#ifndef ATTN_TEST_UNIT_EMULATOR_FLASHPROBLEM_H
#define ATTN_TEST_UNIT_EMULATOR_FLASHPROBLEM_H

#include "FlashKernel.h"
#include "Kernel.h"

namespace attn::emulator::test {

struct Problem {
  Problem(int heads, int length, const FlashKernel &kernel);

  size_t size() const { return size_t(heads) * length * kernel.headDim; }
  float read(uint16_t bits) const { return kernel.bf16 ? fromBF16(bits) : fromF16(bits); }
  /// The report speaks of locations in `compiled`, which stays.
  LaunchReport run(EmulatorOptions options = {});
  LaunchReport run(const Kernel &compiled);
  std::vector<double> referenceRow(int head, int row) const;
  /// Of `o` against doubles; a NaN is the worst.
  double maxError() const;

  int heads, length;
  FlashKernel kernel;
  std::vector<uint16_t> q, k, v, o;
  std::unique_ptr<Kernel> compiled;
};

} // namespace attn::emulator::test

#endif // ATTN_TEST_UNIT_EMULATOR_FLASHPROBLEM_H
