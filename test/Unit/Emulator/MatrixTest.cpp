//===- MatrixTest.cpp - mma, ldmatrix, stmatrix and cp.async ----------------===//
#include "Kernel.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace attn::emulator;
using namespace attn::emulator::test;
using llvm::formatv;

namespace {

struct Mma {
  int k;
  bool bf16;
};

class MmaTest : public ::testing::TestWithParam<Mma> {};

/// The lane and register that hold element (row, column) of an 8x8 matrix: PTX's layout of fragments.
int laneOf(int row, int column) { return 4 * row + column / 2; }

// Fragments come from global memory, register by register: [register][lane].
TEST_P(MmaTest, againstLoops) {
  auto [k, bf16] = GetParam();
  int countA = k / 4, countB = k / 8;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  auto narrow = [&, bf16 = bf16](float value) { return bf16 ? toBF16(value) : toF16(value); };
  auto widen = [&, bf16 = bf16](uint16_t bits) { return bf16 ? fromBF16(bits) : fromF16(bits); };
  std::vector<uint16_t> a(16 * k), b(k * 8), fragments((countA + countB) * 64);
  std::vector<float> c(16 * 8), in(4 * 32), out(4 * 32);
  for (auto &x : a)
    x = narrow(normal(random));
  for (auto &x : b)
    x = narrow(normal(random));
  for (auto &x : c)
    x = normal(random);
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < k; ++col) {
      int matrix = row / 8 + 2 * (col / 8);
      fragments[2 * (32 * matrix + laneOf(row % 8, col % 8)) + col % 2] = a[row * k + col];
    }
  for (int row = 0; row < k; ++row)
    for (int col = 0; col < 8; ++col)
      fragments[2 * (32 * (countA + row / 8) + laneOf(col, row % 8)) + row % 2] = b[row * 8 + col];
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col)
      in[32 * (2 * (row / 8) + col % 2) + laneOf(row % 8, col)] = c[row * 8 + col];

  std::string text = "%lane = nvvm.read.ptx.sreg.laneid : i32\n", namesA, namesB, namesC;
  for (int i = 0; i < countA + countB; ++i) {
    text += formatv("%p{0} = llvm.getelementptr %ab[{1}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
                    "%q{0} = llvm.getelementptr %p{0}[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
                    "%r{0} = llvm.load %q{0} : !llvm.ptr<1> -> {2}\n",
                    i, 128 * i, bf16 ? "i32" : "vector<2xf16>");
    std::string &names = i < countA ? namesA : namesB;
    names += formatv("{0}%r{1}", names.empty() ? "" : ", ", i).str();
  }
  for (int i = 0; i < 4; ++i) {
    text += formatv("%s{0} = llvm.getelementptr %c[{1}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
                    "%t{0} = llvm.getelementptr %s{0}[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\n"
                    "%u{0} = llvm.load %t{0} : !llvm.ptr<1> -> f32\n",
                    i, 128 * i);
    namesC += formatv("{0}%u{1}", i ? ", " : "", i).str();
  }
  text += formatv("%d = nvvm.mma.sync A[{0}] B[{1}] C[{2}] {{layoutA = #nvvm.mma_layout<row>, layoutB = "
                  "#nvvm.mma_layout<col>, multiplicandAPtxType = #nvvm.mma_type<{3}>, multiplicandBPtxType = "
                  "#nvvm.mma_type<{3}>, shape = #nvvm.shape<m = 16, n = 8, k = {4}>} : ({5}, {5}, f32) -> "
                  "!llvm.struct<(f32, f32, f32, f32)>\n",
                  namesA, namesB, namesC, bf16 ? "bf16" : "f16", k, bf16 ? "i32" : "vector<2xf16>");
  for (int i = 0; i < 4; ++i)
    text += formatv("%w{0} = llvm.extractvalue %d[{0}] : !llvm.struct<(f32, f32, f32, f32)>\n"
                    "%x{0} = llvm.getelementptr %out[{1}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
                    "%y{0} = llvm.getelementptr %x{0}[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32\n"
                    "llvm.store %w{0}, %y{0} : f32, !llvm.ptr<1>\n",
                    i, 128 * i);
  Kernel kernel("%ab: !llvm.ptr<1>, %c: !llvm.ptr<1>, %out: !llvm.ptr<1>", text);
  LaunchReport report = kernel.launch(kOneWarp, {fragments.data(), in.data(), out.data()},
                                      {input(fragments, "ab"), input(in, "c"), output(out, "out")});
  EXPECT_EQ(report.faultCount, 0u);
  EXPECT_EQ(report.count("nvvm.mma.sync"), 1u);
  for (int row = 0; row < 16; ++row)
    for (int col = 0; col < 8; ++col) {
      double expected = c[row * 8 + col];
      for (int i = 0; i < k; ++i)
        expected += double(widen(a[row * k + i])) * widen(b[i * 8 + col]);
      EXPECT_NEAR(out[32 * (2 * (row / 8) + col % 2) + laneOf(row % 8, col)], expected, 1e-5);
    }
}

INSTANTIATE_TEST_SUITE_P(Matrix, MmaTest,
                         ::testing::Values(Mma{16, true}, Mma{16, false}, Mma{8, true}, Mma{8, false}));

struct Move {
  int matrices;
  bool transposed;
};

class MoveTest : public ::testing::TestWithParam<Move> {};

std::string matrixType(int matrices) {
  if (matrices == 1)
    return "i32";
  return matrices == 2 ? "!llvm.struct<(i32, i32)>" : "!llvm.struct<(i32, i32, i32, i32)>";
}

const char *kMatrixAttributes = "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, eltType = "
                                "#nvvm.ld_st_matrix_elt_type<b16>";

// in -> shared memory by ldmatrix -> out, [register][lane]; then by stmatrix to the second half of shared memory.
TEST_P(MoveTest, loadsAndStores) {
  auto [matrices, transposed] = GetParam();
  std::vector<uint16_t> in(256), out(matrices * 64), back(256, 7);
  for (int i = 0; i < 256; ++i)
    in[i] = 1000 + i;
  const char *layout = transposed ? "col" : "row";
  // Lane l holds row l, and brings it to row 31 - l: rows lie in any order.
  std::string text = R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %c16 = arith.constant 16 : i32
    %c31 = arith.constant 31 : i32
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %from = arith.muli %lane, %c16 : i32
    %row = arith.subi %c31, %lane : i32
    %to = arith.muli %row, %c16 : i32
    %pin = llvm.getelementptr %in[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %pback = llvm.getelementptr %back[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %s = llvm.getelementptr %smem[%to] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    %s2 = llvm.getelementptr %s[512] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %data = llvm.load %pin : !llvm.ptr<1> -> vector<4xi32>
    llvm.store %data, %s : vector<4xi32>, !llvm.ptr<3>
    llvm.store %data, %s2 : vector<4xi32>, !llvm.ptr<3>
    %full = arith.constant -1 : i32
    nvvm.bar.warp.sync %full : i32
  )";
  text += formatv("%m = nvvm.ldmatrix %s {{num = {0} : i32, layout = #nvvm.mma_layout<{1}>, {2}} : (!llvm.ptr<3>) -> "
                  "{3}\n",
                  matrices, layout, kMatrixAttributes, matrixType(matrices));
  std::string sources, types;
  for (int i = 0; i < matrices; ++i) {
    std::string name = "%m";
    if (matrices > 1) {
      name = formatv("%e{0}", i).str();
      text += formatv("{0} = llvm.extractvalue %m[{1}] : {2}\n", name, i, matrixType(matrices));
    }
    text += formatv("%o{0} = llvm.getelementptr %out[{1}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i8\n"
                    "%q{0} = llvm.getelementptr %o{0}[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32\n"
                    "llvm.store {2}, %q{0} : i32, !llvm.ptr<1>\n",
                    i, 128 * i, name);
    sources += (i ? ", " : "") + name;
    types += ", i32";
  }
  text += formatv("nvvm.stmatrix %s2, {0} {{layout = #nvvm.mma_layout<{1}>, {2}} : !llvm.ptr<3>{3}\n", sources, layout,
                  kMatrixAttributes, types);
  text += "%again = llvm.load %s2 : !llvm.ptr<3> -> vector<4xi32>\n"
          "llvm.store %again, %pback : vector<4xi32>, !llvm.ptr<1>";
  Kernel kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>, %back: !llvm.ptr<1>", text, {"sm_90"});
  LaunchReport report = kernel.launch(kOneWarp, {in.data(), out.data(), back.data()},
                                      {input(in, "in"), output(out, "out"), output(back, "back")});
  EXPECT_EQ(report.faultCount, 0u);
  for (int matrix = 0; matrix < matrices; ++matrix)
    for (int row = 0; row < 8; ++row)
      for (int col = 0; col < 8; ++col) {
        uint16_t expected = in[8 * (8 * matrix + (transposed ? col : row)) + (transposed ? row : col)];
        EXPECT_EQ(out[2 * (32 * matrix + laneOf(row, col)) + col % 2], expected);
      }
  EXPECT_EQ(back, in);
}

INSTANTIATE_TEST_SUITE_P(Matrix, MoveTest,
                         ::testing::Values(Move{1, false}, Move{2, false}, Move{4, false}, Move{1, true}, Move{2, true},
                                           Move{4, true}));

class CopyTest : public ::testing::TestWithParam<int> {};

// Each lane copies a piece of `size` bytes, of which it reads lane % (size + 1).
TEST_P(CopyTest, readsAndFillsWithZeros) {
  int size = GetParam();
  std::vector<uint8_t> in(32 * size), out(32 * size, 99);
  for (int i = 0; i < 32 * size; ++i)
    in[i] = 100 + i % 100;
  std::string type = size == 4 ? "i32" : formatv("vector<{0}xi32>", size / 4).str();
  Kernel kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", formatv(R"(
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %size = arith.constant {0} : i32
    %next = arith.constant {1} : i32
    %smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %offset = arith.muli %lane, %size : i32
    %bytes = arith.remui %lane, %next : i32
    %from = llvm.getelementptr %in[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %to = llvm.getelementptr %out[%offset] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
    %s = llvm.getelementptr %smem[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    nvvm.cp.async.shared.global %s, %from, {0}, cache = {3}, %bytes : !llvm.ptr<3>, !llvm.ptr<1>, i32
    nvvm.cp.async.commit.group
    nvvm.cp.async.wait.group 0
    %v = llvm.load %s : !llvm.ptr<3> -> {2}
    llvm.store %v, %to : {2}, !llvm.ptr<1>)",
                                                                 size, size + 1, type, size == 16 ? "cg" : "ca"));
  LaunchReport report = kernel.launch(kOneWarp, {in.data(), out.data()}, {input(in, "in"), output(out, "out")});
  EXPECT_EQ(report.faultCount, 0u);
  for (int i = 0; i < 32 * size; ++i)
    EXPECT_EQ(out[i], i % size < i / size % (size + 1) ? in[i] : 0) << i;
}

INSTANTIATE_TEST_SUITE_P(Matrix, CopyTest, ::testing::Values(4, 8, 16));

} // namespace
