//===- FlashTest.cpp - A whole kernel against a reference in doubles --------===//
#include "FlashProblem.h"

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

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
