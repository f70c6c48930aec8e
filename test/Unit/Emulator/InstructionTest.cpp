//===- InstructionTest.cpp - One instruction at a time, against plain loops -===//
#include "Kernel.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <functional>

using namespace attn::emulator;
using namespace attn::emulator::test;

namespace {

/// `body` computes what `expected` says of (lane, in).
void expectLanes(const std::string &body, const std::function<int32_t(int, const std::vector<int32_t> &)> &expected) {
  std::vector<int32_t> in = numbers(), out = runLanes(in, body);
  for (int lane = 0; lane < 32; ++lane)
    EXPECT_EQ(out[lane], expected(lane, in)) << "lane " << lane;
}

TEST(Instruction, arithmetic) {
  expectLanes("%y = arith.muli %x, %lane : i32\n %r = arith.addi %y, %c2 : i32",
              [](int lane, auto &in) { return in[lane] * lane + 2; });
}

TEST(Instruction, divisionDoesNotTrap) {
  expectLanes("%r = arith.divsi %x, %lane : i32", [](int lane, auto &in) { return lane ? in[lane] / lane : in[0]; });
  expectLanes("%min = arith.constant -2147483648 : i32\n %r = arith.remsi %min, %full : i32",
              [](int, auto &) { return 0; });
}

TEST(Instruction, indexArithmetic) {
  expectLanes("%i = arith.index_cast %x : i32 to index\n %two = arith.constant 2 : index\n"
              "%j = arith.muli %i, %two : index\n %r = arith.index_cast %j : index to i32",
              [](int lane, auto &in) { return 2 * in[lane]; });
}

TEST(Instruction, selectAndCompare) {
  expectLanes("%p = arith.cmpi slt, %x, %c0 : i32\n %r = arith.select %p, %lane, %x : i32",
              [](int lane, auto &in) { return in[lane] < 0 ? lane : in[lane]; });
}

TEST(Instruction, longProducts) {
  expectLanes("%big = arith.constant 123456789 : i32\n %l, %r = arith.mulsi_extended %x, %big : i32",
              [](int lane, auto &in) { return int32_t(int64_t(in[lane]) * 123456789 >> 32); });
  expectLanes("%big = arith.constant 123456789 : i32\n %l, %r = arith.mului_extended %x, %big : i32",
              [](int lane, auto &in) { return int32_t(uint64_t(uint32_t(in[lane])) * 123456789 >> 32); });
}

TEST(Instruction, packedPairs) {
  expectLanes(R"(%f = arith.sitofp %x : i32 to f32
                 %u = llvm.mlir.undef : vector<2xf32>
                 %v0 = llvm.insertelement %f, %u[%c0 : i32] : vector<2xf32>
                 %v = vector.insert %f, %v0[1] : f32 into vector<2xf32>
                 %h = arith.truncf %v : vector<2xf32> to vector<2xbf16>
                 %r = llvm.bitcast %h : vector<2xbf16> to i32)",
              [](int lane, auto &in) { return int32_t(toBF16(in[lane]) * 0x10001u); });
  expectLanes(R"(%f = arith.sitofp %x : i32 to f32
                 %z = arith.constant 1.0 : f32
                 %h = nvvm.convert.f32x2.to.f16x2 %f, %z {rnd = #nvvm.fp_rnd_mode<rn>} : vector<2xf16>
                 %r = llvm.bitcast %h : vector<2xf16> to i32)",
              [](int lane, auto &in) { return int32_t(uint32_t(toF16(in[lane])) << 16 | toF16(1.0f)); });
}

TEST(Instruction, halfArithmetic) {
  for (const char *type : {"f16", "bf16"}) {
    std::string text = llvm::formatv(R"(%f = arith.sitofp %x : i32 to {0}
        %third = arith.constant 0.333 : {0}
        %g = arith.mulf %f, %third : {0}
        %a = math.absf %g : {0}
        %b = llvm.bitcast %a : {0} to i16
        %r = arith.extui %b : i16 to i32)",
                                     type);
    bool bf16 = type[0] == 'b';
    auto round = [&](float value) { return bf16 ? fromBF16(toBF16(value)) : fromF16(toF16(value)); };
    expectLanes(text, [&](int lane, auto &in) {
      float product = round(std::abs(round(in[lane]) * round(0.333f)));
      return bf16 ? toBF16(product) : toF16(product);
    });
  }
}

struct Function {
  const char *op;
  double (*function)(double);
};

class Functions : public ::testing::TestWithParam<Function> {};

TEST_P(Functions, f32) {
  const Function &f = GetParam();
  std::vector<int32_t> in = numbers();
  auto argument = [&](int lane) { return 0.03125f * (in[lane] + 101); };
  std::vector<int32_t> out = runLanes(in, llvm::formatv(R"(%f = arith.sitofp %x : i32 to f32
      %scale = arith.constant 0.03125 : f32
      %bias = arith.constant 101.0 : f32
      %g = arith.addf %f, %bias : f32
      %h = arith.mulf %g, %scale : f32
      %y = {0} %h : f32
      %r = arith.bitcast %y : f32 to i32)",
                                                        f.op));
  for (int lane = 0; lane < 32; ++lane) {
    double expected = f.function(argument(lane));
    EXPECT_NEAR(llvm::bit_cast<float>(out[lane]), expected, 4e-7 * std::abs(expected) + 1e-12) << argument(lane);
  }
}

INSTANTIATE_TEST_SUITE_P(Instruction, Functions,
                         ::testing::Values(Function{"math.exp2", std::exp2}, Function{"math.exp", std::exp},
                                           Function{"math.log", std::log}, Function{"math.log2", std::log2},
                                           Function{"math.tanh", std::tanh}, Function{"math.sin", std::sin},
                                           Function{"math.erf", std::erf}, Function{"math.sqrt", std::sqrt},
                                           Function{"math.floor", std::floor},
                                           Function{"nvvm.rcp.approx.ftz.f", [](double x) { return 1 / x; }},
                                           Function{"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }}));

TEST(Instruction, exp2AtTheEnds) {
  std::vector<int32_t> in(32, 0);
  const float values[] = {-INFINITY, INFINITY, NAN, -126.0f, -126.5f, 127.9f, 128.0f, -1e9f, 0.0f, -0.5f};
  for (auto [i, value] : llvm::enumerate(values))
    in[i] = llvm::bit_cast<int32_t>(value);
  auto out = runLanes(in, "%f = arith.bitcast %x : i32 to f32\n %y = math.exp2 %f : f32\n"
                          "%r = arith.bitcast %y : f32 to i32");
  auto result = [&](int i) { return llvm::bit_cast<float>(out[i]); };
  EXPECT_EQ(result(0), 0.0f);
  EXPECT_EQ(result(1), INFINITY);
  EXPECT_TRUE(std::isnan(result(2)));
  EXPECT_EQ(result(3), std::exp2(-126.0f));
  EXPECT_EQ(result(4), 0.0f); // denormal
  EXPECT_NEAR(result(5) / std::exp2(127.9f), 1.0f, 4e-7);
  EXPECT_EQ(result(6), INFINITY);
  EXPECT_EQ(result(7), 0.0f);
  EXPECT_EQ(result(8), 1.0f);
}

TEST(Instruction, shuffles) {
  expectLanes("%r = nvvm.shfl.sync bfly %full, %x, %c2, %c31 : i32 -> i32",
              [](int lane, auto &in) { return in[lane ^ 2]; });
  expectLanes("%r = nvvm.shfl.sync idx %full, %x, %c4, %c31 : i32 -> i32", [](int, auto &in) { return in[4]; });
  expectLanes("%r = nvvm.shfl.sync up %full, %x, %c2, %c0 : i32 -> i32",
              [](int lane, auto &in) { return in[lane < 2 ? lane : lane - 2]; });
  expectLanes("%r = nvvm.shfl.sync down %full, %x, %c4, %c31 : i32 -> i32",
              [](int lane, auto &in) { return in[lane + 4 > 31 ? lane : lane + 4]; });
  // Segments of eight lanes: mask 24 in the upper bits.
  expectLanes("%control = arith.constant 6175 : i32\n %r = nvvm.shfl.sync idx %full, %x, %lane, %control : i32 -> i32",
              [](int lane, auto &in) { return in[lane]; });
  expectLanes("%control = arith.constant 6175 : i32\n %r = nvvm.shfl.sync idx %full, %x, %c1, %control : i32 -> i32",
              [](int lane, auto &in) { return in[(lane & 24) | 1]; });
}

TEST(Instruction, shuffleTellsValidity) {
  expectLanes(
      R"(%s = nvvm.shfl.sync down %full, %x, %c4, %c31 {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
                 %v = llvm.extractvalue %s[1] : !llvm.struct<(i32, i1)>
                 %r = arith.extui %v : i1 to i32)",
      [](int lane, auto &) { return lane + 4 <= 31; });
}

TEST(Instruction, votes) {
  const std::string predicate = "%p = arith.cmpi slt, %x, %c0 : i32\n";
  uint32_t bits = 0;
  for (int lane = 0; lane < 32; ++lane)
    bits |= uint32_t(numbers()[lane] < 0) << lane;
  expectLanes(predicate + "%r = nvvm.vote.sync ballot %full, %p -> i32", [&](int, auto &) { return int32_t(bits); });
  for (auto [kind, expected] : {std::pair("any", 1), std::pair("all", 0), std::pair("uni", 0)})
    expectLanes(predicate + "%q = nvvm.vote.sync " + kind + " %full, %p -> i1\n %r = arith.extui %q : i1 to i32",
                [&, value = expected](int, auto &) { return value; });
}

TEST(Instruction, reductions) {
  std::vector<int32_t> in = numbers();
  int32_t sum = 0, maximum = in[0], bits = 0;
  for (int32_t value : in) {
    sum += value;
    maximum = std::max(maximum, value);
    bits ^= value;
  }
  for (auto [kind, expected] : {std::pair("add", sum), std::pair("max", maximum), std::pair("xor", bits)})
    expectLanes(std::string("%r = nvvm.redux.sync ") + kind + " %x, %full : i32 -> i32",
                [&, value = expected](int, auto &) { return value; });
}

// Over three warps, twice, with a predicate that holds for the first `limit` threads.
TEST(Instruction, barrierReductions) {
  for (int32_t limit : {0, 1, 40, 95, 96})
    for (auto [kind, expected] :
         {std::pair("popc", limit), std::pair("and", int32_t(limit == 96)), std::pair("or", int32_t(limit > 0))}) {
      Kernel kernel("%out: !llvm.ptr<1>, %limit: i32", std::string(R"(
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c0 = arith.constant 0 : i32
    %p = arith.cmpi slt, %tid, %limit : i32
    %q = arith.extui %p : i1 to i32
    %none = nvvm.barrier #nvvm.reduction<popc> %c0 -> i32
    %r0 = nvvm.barrier #nvvm.reduction<)") + kind + R"(> %q -> i32
    %r = arith.addi %r0, %none : i32
    %at = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %r, %at : i32, !llvm.ptr<1>)");
      std::vector<int32_t> out(96, -1);
      LaunchReport report = kernel.launch({{1, 1, 1}, {96, 1, 1}, 0}, {out.data(), limit}, {output(out, "out")});
      EXPECT_EQ(report.faultCount, 0u);
      EXPECT_EQ(out, std::vector<int32_t>(96, expected)) << kind << " " << limit;
    }
}

TEST(Instruction, threadsInThreeDimensions) {
  Kernel kernel("%out: !llvm.ptr<1>", R"(
    %x = nvvm.read.ptx.sreg.tid.x : i32
    %y = nvvm.read.ptx.sreg.tid.y : i32
    %z = nvvm.read.ptx.sreg.tid.z : i32
    %nx = nvvm.read.ptx.sreg.ntid.x : i32
    %ny = nvvm.read.ptx.sreg.ntid.y : i32
    %nz = nvvm.read.ptx.sreg.ntid.z : i32
    %b = nvvm.read.ptx.sreg.ctaid.y : i32
    %a0 = arith.muli %b, %nz : i32
    %a1 = arith.addi %a0, %z : i32
    %a2 = arith.muli %a1, %ny : i32
    %a3 = arith.addi %a2, %y : i32
    %a4 = arith.muli %a3, %nx : i32
    %n = arith.addi %a4, %x : i32
    %p = llvm.getelementptr %out[%n] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %n, %p : i32, !llvm.ptr<1>)");
  std::vector<int32_t> out(3 * 64, -1);
  LaunchReport report = kernel.launch({{1, 3, 1}, {8, 4, 2}, 0}, {out.data()}, {output(out, "out")});
  EXPECT_EQ(report.faultCount, 0u);
  EXPECT_EQ(report.blocks, 3u);
  for (int i = 0; i < 3 * 64; ++i)
    EXPECT_EQ(out[i], i);
}

TEST(Instruction, withoutRule) {
  Kernel kernel("", "%c = arith.constant 1 : i32\n nvvm.nanosleep %c");
  EXPECT_FALSE(kernel.isCompiled());
  EXPECT_NE(kernel.diagnostics().find("the emulator has no rule for this op"), std::string::npos)
      << kernel.diagnostics();
}

TEST(Instruction, ofALaterChip) {
  const char *body = "%p = llvm.mlir.addressof @smem : !llvm.ptr<3>\n %c = arith.constant 0 : i32\n"
                     "nvvm.stmatrix %p, %c {layout = #nvvm.mma_layout<row>, shape = #nvvm.ld_st_matrix_shape<m = 8, n "
                     "= 8>, eltType = #nvvm.ld_st_matrix_elt_type<b16>} : !llvm.ptr<3>, i32";
  Kernel old("", body), hopper("", body, {"sm_90a"}), unknown("", body, {"gfx942"});
  EXPECT_FALSE(old.isCompiled());
  EXPECT_NE(old.diagnostics().find("needs sm_90, but the chip is sm_80"), std::string::npos) << old.diagnostics();
  EXPECT_TRUE(hopper.isCompiled());
  EXPECT_FALSE(unknown.isCompiled());
}

TEST(Launch, refusals) {
  Kernel kernel("%n: i32", "");
  EXPECT_TRUE(kernel.canLaunch(kOneWarp, {int32_t(1)}, {}));
  EXPECT_FALSE(kernel.canLaunch(kOneWarp, {}, {}));
  EXPECT_FALSE(kernel.canLaunch(kOneWarp, {int64_t(1)}, {}));
  EXPECT_FALSE(kernel.canLaunch({{1, 1, 1}, {48, 1, 1}, 0}, {int32_t(1)}, {}));
  EXPECT_FALSE(kernel.canLaunch({{1, 1, 1}, {32, 1, 1}, 164 * 1024}, {int32_t(1)}, {}));
  EXPECT_NE(kernel.diagnostics().find("a block of 48 threads"), std::string::npos) << kernel.diagnostics();
}

} // namespace
