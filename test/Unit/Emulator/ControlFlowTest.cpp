//===- ControlFlowTest.cpp - Lanes that go different ways -------------------===//
#include "Kernel.h"

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

TEST(ControlFlow, divergentIf) {
  auto in = numbers();
  auto out = runLanes(in, R"(
    %p = arith.cmpi slt, %x, %c0 : i32
    %r = scf.if %p -> (i32) {
      %q = arith.cmpi slt, %lane, %c4 : i32
      %i = scf.if %q -> (i32) {
        scf.yield %c1 : i32
      } else {
        %n = arith.muli %x, %c2 : i32
        scf.yield %n : i32
      }
      scf.yield %i : i32
    } else {
      scf.yield %lane : i32
    })");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], in[lane] >= 0 ? lane : lane < 4 ? 1 : 2 * in[lane]);
}

TEST(ControlFlow, storesUnderAMask) {
  auto in = numbers();
  auto out = runLanes(in, R"(
    %p = llvm.getelementptr %smem[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %c1, %p : i32, !llvm.ptr<3>
    %q = arith.cmpi slt, %x, %c0 : i32
    scf.if %q {
      llvm.store %x, %p : i32, !llvm.ptr<3>
    }
    %r = llvm.load %p : !llvm.ptr<3> -> i32)");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], in[lane] < 0 ? in[lane] : 1);
}

TEST(ControlFlow, divergentForInsideUniformFor) {
  auto out = runLanes(numbers(), R"(
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%s = %c0) -> (i32) : i32 {
      %t = scf.for %j = %i to %lane step %c2 iter_args(%u = %s) -> (i32) : i32 {
        %v = arith.addi %u, %j : i32
        scf.yield %v : i32
      }
      scf.yield %t : i32
    })");
  for (int lane = 0; lane < 32; ++lane) {
    int expected = 0;
    for (int i = 0; i < 4; ++i)
      for (int j = i; j < lane; j += 2)
        expected += j;
    EXPECT_EQ(out[lane], expected);
  }
}

TEST(ControlFlow, uniformForUnderAMask) {
  auto out = runLanes(numbers(), R"(
    %p = arith.cmpi slt, %lane, %c4 : i32
    %r = scf.if %p -> (i32) {
      %t = scf.for %j = %c0 to %c4 step %c1 iter_args(%u = %lane) -> (i32) : i32 {
        %v = arith.addi %u, %j : i32
        scf.yield %v : i32
      }
      scf.yield %t : i32
    } else {
      scf.yield %c31 : i32
    })");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane < 4 ? lane + 6 : 31);
}

// Steps of the Collatz sequence of lane + 1: each lane leaves at its own time.
TEST(ControlFlow, divergentWhile) {
  auto out = runLanes(numbers(), R"(
    %n0 = arith.addi %lane, %c1 : i32
    %n, %r = scf.while (%n1 = %n0, %s1 = %c0) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi ne, %n1, %c1 : i32
      scf.condition(%more) %n1, %s1 : i32, i32
    } do {
    ^bb0(%n2: i32, %s2: i32):
      %bit = arith.andi %n2, %c1 : i32
      %odd = arith.cmpi eq, %bit, %c1 : i32
      %next = scf.if %odd -> (i32) {
        %three = arith.constant 3 : i32
        %a = arith.muli %n2, %three : i32
        %b = arith.addi %a, %c1 : i32
        scf.yield %b : i32
      } else {
        %h = arith.shrui %n2, %c1 : i32
        scf.yield %h : i32
      }
      %s3 = arith.addi %s2, %c1 : i32
      scf.yield %next, %s3 : i32, i32
    })");
  for (int lane = 0; lane < 32; ++lane) {
    int steps = 0;
    for (int n = lane + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
      ++steps;
    EXPECT_EQ(out[lane], steps);
  }
}

TEST(ControlFlow, uniformWhile) {
  auto out = runLanes(numbers(), R"(
    %n, %r = scf.while (%n1 = %c1, %s1 = %x) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi slt, %n1, %c16 : i32
      scf.condition(%more) %n1, %s1 : i32, i32
    } do {
    ^bb0(%n2: i32, %s2: i32):
      %m = arith.muli %n2, %c2 : i32
      %s = arith.addi %s2, %lane : i32
      scf.yield %m, %s : i32, i32
    })");
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], numbers()[lane] + 4 * lane);
}

TEST(ControlFlow, shuffleWithoutALaneIsAFault) {
  Kernel kernel("%out: !llvm.ptr<1>", R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %full = arith.constant -1 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %c31 = arith.constant 31 : i32
    %p = arith.cmpi slt, %lane, %c4 : i32
    scf.if %p {
      %y = nvvm.shfl.sync bfly %full, %lane, %c1, %c31 : i32 -> i32
      llvm.store %y, %out : i32, !llvm.ptr<1>
    })");
  std::vector<int32_t> out(1);
  LaunchReport report = kernel.launch(kOneWarp, {out.data()}, {output(out, "out")});
  ASSERT_EQ(report.faultCount, 1u);
  EXPECT_EQ(report.faults[0].kind, FaultKind::DivergentInstruction);
  EXPECT_TRUE(kernel.lineOf(report.faults[0]).contains("nvvm.shfl.sync"));
}

} // namespace
