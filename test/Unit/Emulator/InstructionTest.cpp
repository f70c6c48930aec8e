//===- InstructionTest.cpp - One instruction at a time, against plain loops -===//
#include "Kernel.h"
#include <random>

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

constexpr LaunchDims kOneWarp{{1, 1, 1}, {32, 1, 1}, 4096};

/// Runs `body`, which computes i32 `%r` from the lane `%lane`, `%x` = in[lane] and constants `%c0`..., on one warp.
std::vector<int32_t> runLanes(const std::vector<int32_t> &in, const std::string &body) {
  Kernel kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %full = arith.constant -1 : i32
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c31 = arith.constant 31 : i32
    %pin = llvm.getelementptr %in[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %pin : !llvm.ptr<1> -> i32
    )" + body + R"(
    %pout = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %pout : i32, !llvm.ptr<1>)");
  std::vector<int32_t> out(32, -77);
  LaunchReport report = kernel.launch(kOneWarp, {in.data(), out.data()}, {input(in, "in"), output(out, "out")});
  EXPECT_EQ(report.faultCount, 0u);
  return out;
}

std::vector<int32_t> numbers() {
  std::vector<int32_t> in(32);
  for (int lane = 0; lane < 32; ++lane)
    in[lane] = lane * lane - 100;
  return in;
}

TEST(Instruction, elementwise) {
  auto in = numbers();
  auto out = runLanes(in, "%y = arith.muli %x, %lane : i32\n %r = arith.addi %y, %c2 : i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], in[lane] * lane + 2);
}

TEST(Instruction, divisionDoesNotTrap) {
  auto in = numbers();
  auto out = runLanes(in, "%r = arith.divsi %x, %lane : i32");
  for (int lane = 1; lane < 32; ++lane)
    EXPECT_EQ(out[lane], in[lane] / lane);
}

TEST(Instruction, shuffleButterfly) {
  auto in = numbers();
  auto out = runLanes(in, "%r = nvvm.shfl.sync bfly %full, %x, %c2, %c31 : i32 -> i32");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], in[lane ^ 2]);
}

} // namespace
