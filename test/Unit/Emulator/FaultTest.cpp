//===- FaultTest.cpp - Every planted fault is found, at its place -----------===//
#include "FlashProblem.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

struct Planted {
  Plant plant;
  FaultKind kind;
  const char *op;
};

class Faults : public ::testing::TestWithParam<Planted> {};

std::string print(const LaunchReport &report) {
  std::string text;
  llvm::raw_string_ostream os(text);
  report.print(os);
  return text;
}

TEST_P(Faults, found) {
  const Planted &planted = GetParam();
  FlashKernel flash;
  flash.plant = planted.plant;
  // The last tile is a partial one.
  Problem problem(1, 160, flash);
  Kernel kernel(FlashKernel::arguments(), flash.body());
  LaunchReport report = problem.run(kernel);
  EXPECT_GT(report.faultCount, 0u);
  bool found = llvm::any_of(report.faults, [&](const Fault &fault) {
    return fault.kind == planted.kind && kernel.lineOf(fault).contains(planted.op);
  });
  EXPECT_TRUE(found) << print(report);
}

INSTANTIATE_TEST_SUITE_P(Emulator, Faults,
                         ::testing::Values(Planted{Plant::NoWait, FaultKind::CopyInFlight, "nvvm.ldmatrix"},
                                           Planted{Plant::NoBarrier, FaultKind::Race, "nvvm.ldmatrix"},
                                           Planted{Plant::NoBarrier, FaultKind::Race, "nvvm.cp.async"},
                                           Planted{Plant::WrongOffset, FaultKind::SharedOutOfBounds, "nvvm.cp.async"},
                                           Planted{Plant::MisalignedMatrix, FaultKind::Misaligned, "nvvm.ldmatrix"},
                                           Planted{Plant::DivergentBarrier, FaultKind::DivergentBarrier,
                                                   "nvvm.barrier0"},
                                           Planted{Plant::Deadlock, FaultKind::Deadlock, "nvvm.barrier0"},
                                           Planted{Plant::UninitializedRead, FaultKind::Uninitialized, "nvvm.ldmatrix"},
                                           Planted{Plant::PastTheEnd, FaultKind::GlobalOutOfBounds, "nvvm.cp.async"},
                                           Planted{Plant::WriteToInput, FaultKind::ReadOnly, "llvm.store"}));

TEST(Faults, raceNamesBothSides) {
  FlashKernel flash;
  flash.plant = Plant::NoBarrier;
  Problem problem(1, 160, flash);
  LaunchReport report = problem.run();
  std::string text = print(report);
  EXPECT_NE(text.find("has written it at loc(\"kernel.mlir\":"), std::string::npos) << text;
  EXPECT_NE(text.find("has read it, and no barrier lies between"), std::string::npos) << text;
}

// A missing wait shows in the result as well.
TEST(Faults, withoutChecks) {
  FlashKernel flash;
  Problem good(1, 160, flash);
  EmulatorOptions fast;
  fast.checks = fast.counts = false;
  EXPECT_EQ(good.run(fast).faultCount, 0u);
  EXPECT_LT(good.maxError(), 0.01);
  flash.plant = Plant::NoWait;
  Problem bad(1, 160, flash);
  EXPECT_EQ(bad.run(fast).faultCount, 0u);
  EXPECT_FALSE(bad.maxError() < 1);
}

TEST(Faults, doNotDependOnThreads) {
  FlashKernel flash;
  flash.plant = Plant::NoBarrier;
  std::string reports[2];
  std::vector<uint16_t> results[2];
  for (unsigned i = 0; i < 2; ++i) {
    Problem problem(3, 160, flash);
    EmulatorOptions options;
    options.threads = i ? 4 : 1;
    reports[i] = print(problem.run(options));
    results[i] = problem.o;
  }
  EXPECT_EQ(reports[0], reports[1]);
  EXPECT_EQ(results[0], results[1]);
}

// Lanes hand numbers to each other through shared memory: `%own` and `%next` are words of this lane and of the next.
std::pair<LaunchReport, std::string> runExchange(const std::string &body) {
  Kernel kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %full = arith.constant -1 : i32
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %after = arith.addi %lane, %c1 : i32
    %wrapped = arith.andi %after, %c31 : i32
    %own = llvm.getelementptr %smem[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %next = llvm.getelementptr %smem[%wrapped] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %half = arith.andi %lane, %c16 : i32
    %chunk = llvm.getelementptr %smem[%half] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %source = llvm.getelementptr %in[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %o = llvm.getelementptr %out[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    )" + body);
  std::vector<int32_t> in(32, 7), out(32);
  LaunchReport report = kernel.launch(kOneWarp, {in.data(), out.data()}, {input(in, "in"), output(out, "out")});
  return {report, print(report)};
}

const char *kStore = "llvm.store %lane, %own : i32, !llvm.ptr<3>\n";
const char *kLoadNext = "%v = llvm.load %next : !llvm.ptr<3> -> i32\n llvm.store %v, %o : i32, !llvm.ptr<1>\n";
const char *kSync = "nvvm.bar.warp.sync %full : i32\n";
const char *kCopy = "nvvm.cp.async.shared.global %own, %source, 4, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>\n"
                    "nvvm.cp.async.commit.group\n nvvm.cp.async.wait.group 0\n";
const char *kMatrix = "%m = nvvm.ldmatrix %chunk {num = 1 : i32, layout = #nvvm.mma_layout<row>, shape = "
                      "#nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : "
                      "(!llvm.ptr<3>) -> i32\n llvm.store %m, %o : i32, !llvm.ptr<1>\n";

TEST(Lanes, ofOneWarpAreNotOrdered) {
  struct {
    std::string before, after;
    const char *says;
  } cases[] = {{kStore, kLoadNext, "lane 1 of this warp has written it"},
               {kStore + std::string(kSync) + kLoadNext, kStore, "of this warp has read it"},
               {kStore, "llvm.store %lane, %next : i32, !llvm.ptr<3>\n", "lane 1 of this warp has written it"},
               {kStore, kMatrix, "lane 0 of this warp has written it"},
               {kCopy, kLoadNext, "lane 1 of this warp has written it"}};
  for (const auto &[before, after, says] : cases) {
    auto [bad, text] = runExchange(before + after);
    auto [good, goodText] = runExchange(before + kSync + after);
    ASSERT_FALSE(bad.faults.empty()) << before << after;
    EXPECT_EQ(bad.faults.front().kind, FaultKind::Race);
    EXPECT_NE(text.find(says), std::string::npos) << text;
    EXPECT_EQ(good.faultCount, 0u) << goodText;
  }
  // All lanes have what ldmatrix reads before any goes on; a shuffle orders no memory.
  EXPECT_EQ(runExchange(kStore + std::string(kSync) + kMatrix + kStore).first.faultCount, 0u);
  EXPECT_GT(
      runExchange(kStore + std::string("%s = nvvm.shfl.sync bfly %full, %lane, %c1, %c31 : i32 -> i32\n") + kLoadNext)
          .first.faultCount,
      0u);
  EXPECT_GT(runExchange("llvm.store %lane, %smem : i32, !llvm.ptr<3>\n").first.faultCount, 0u);
}

// Each block writes the word of its number, `%own`, and does `body`, which finds the next block's word in `%next`.
std::pair<LaunchReport, std::string> runBlocks(const std::string &body, unsigned threads = 0) {
  EmulatorOptions options;
  options.threads = threads;
  Kernel kernel("%out: !llvm.ptr<1>", R"(
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %one = arith.cmpi eq, %tid, %c0 : i32
    %block = nvvm.read.ptx.sreg.ctaid.x : i32
    %own = llvm.getelementptr %out[%block] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %next = llvm.getelementptr %own[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    scf.if %one {
      llvm.store %block, %own : i32, !llvm.ptr<1>
      )" + body + "}",
                options);
  std::vector<int32_t> out(6);
  LaunchReport report = kernel.launch({{5, 1, 1}, {32, 1, 1}, 0}, {out.data()}, {output(out, "out")});
  return {report, print(report)};
}

TEST(Blocks, areNotOrdered) {
  const char *store = "llvm.store %block, %next : i32, !llvm.ptr<1>";
  for (const char *body : {store, "%v = llvm.load %next : !llvm.ptr<1> -> i32"}) {
    auto [report, text] = runBlocks(body);
    ASSERT_FALSE(report.faults.empty()) << body;
    EXPECT_EQ(report.faults.front().kind, FaultKind::BlockRace);
    EXPECT_NE(report.faults.front().text.find("race at byte 4 of out: block (0, 0, 0) has "), std::string::npos)
        << report.faults.front().text;
    EXPECT_EQ(report.faults.front().block[0], 1u);
    EXPECT_EQ(report.faultCount, 8u); // two pieces of each of four words
    EXPECT_EQ(text, runBlocks(body, 1).second) << body;
  }
  EXPECT_EQ(runBlocks("llvm.store %tid, %own : i32, !llvm.ptr<1>").first.faultCount, 0u);
}

// Two warps hand a number over by a named barrier, which the first only arrives at.
TEST(Barriers, namedOnesOrderTheirWarps) {
  auto run = [](const char *consumerBarrier) {
    Kernel kernel("%out: !llvm.ptr<1>", std::string(R"(
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %c1 = arith.constant 1 : i32
      %c5 = arith.constant 5 : i32
      %c32 = arith.constant 32 : i32
      %c64 = arith.constant 64 : i32
      %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
      %first = arith.cmpi slt, %tid, %c32 : i32
      %other = arith.xori %tid, %c32 : i32
      %p = llvm.getelementptr %smem[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      %q = llvm.getelementptr %smem[%other] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
      scf.if %first {
        llvm.store %tid, %p : i32, !llvm.ptr<3>
        nvvm.barrier.arrive id = %c5 number_of_threads = %c64
      } else {
        )") + consumerBarrier + R"(
        %v = llvm.load %q : !llvm.ptr<3> -> i32
        %o = llvm.getelementptr %out[%other] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %v, %o : i32, !llvm.ptr<1>
      })");
    std::vector<int32_t> out(32, -1);
    LaunchReport report = kernel.launch({{1, 1, 1}, {64, 1, 1}, 1024}, {out.data()}, {output(out, "out")});
    return std::pair(report, out);
  };
  auto [good, out] = run("nvvm.barrier id = %c5 number_of_threads = %c64");
  EXPECT_EQ(good.faultCount, 0u);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], lane);
  auto [none, unused] = run("");
  EXPECT_EQ(none.faults.front().kind, FaultKind::Race);
  auto [wrong, unused2] = run("nvvm.barrier id = %c1 number_of_threads = %c64");
  EXPECT_EQ(wrong.faults.front().kind, FaultKind::Deadlock);
  auto [mismatch, unused3] = run("nvvm.barrier id = %c5 number_of_threads = %c32");
  EXPECT_EQ(mismatch.faults.front().kind, FaultKind::DivergentBarrier);
}

TEST(Counts, ofAFlashKernel) {
  FlashKernel flash;
  Problem problem(1, 256, flash);
  LaunchReport report = problem.run();
  // Per warp and tile: 4 k-steps by 8 key blocks, and 4 by 8 again.
  EXPECT_EQ(report.count("nvvm.mma.sync"), 4u * 4 * 4 * (32 + 32));
  for (const AccessCounts &access : report.accesses) {
    EXPECT_EQ(access.passes, access.idealPasses) << access.op;
    // A row of the result is stored 16 bytes at a time: half of each sector.
    unsigned waste = access.op == "llvm.store" ? 2 : 1;
    EXPECT_EQ(access.sectors, waste * access.idealSectors) << access.op;
  }
}

TEST(Counts, conflictsAndSectors) {
  // Lanes 32 words apart share a bank; in global memory each has a sector of its own.
  Kernel kernel("%out: !llvm.ptr<1>", R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c32 = arith.constant 32 : i32
    %n = arith.muli %lane, %c32 : i32
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %p = llvm.getelementptr %smem[%n] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %lane, %p : i32, !llvm.ptr<3>
    %o = llvm.getelementptr %out[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %lane, %o : i32, !llvm.ptr<1>)");
  std::vector<int32_t> out(1024);
  LaunchReport report = kernel.launch(kOneWarp, {out.data()}, {output(out, "out")});
  MemoryCounts total = report.total();
  EXPECT_EQ(total.requests, 2u);
  EXPECT_EQ(total.bytes, 256u);
  EXPECT_EQ(total.passes, 32u);
  EXPECT_EQ(total.idealPasses, 1u);
  EXPECT_EQ(total.sectors, 32u);
  EXPECT_EQ(total.idealSectors, 4u);
  EXPECT_EQ(report.count("llvm.store"), 2u);
}

} // namespace
