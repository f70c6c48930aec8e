//===- NpyTest.cpp - .npy files there and back ------------------------------===//
#include "attn/Reference/Npy.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

struct Npy : testing::Test {
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attn", "npy", path)); }
  void TearDown() override { llvm::sys::fs::remove(path); }

  void write(llvm::StringRef bytes) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << bytes;
    ASSERT_FALSE(error);
  }
  /// A version 1 file of `header` and `elements`.
  void writeFile(llvm::StringRef header, llvm::StringRef elements) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += char(header.size());
    file += '\0';
    write((file + header + elements).str());
  }
  std::string error() {
    llvm::Expected<attn::HostTensor> tensor = attn::readNpy(path, &context);
    return tensor ? "" : toString(tensor.takeError());
  }

  MLIRContext context;
  llvm::SmallString<64> path;
};

TEST_F(Npy, EveryTypeThereAndBack) {
  Builder b(&context);
  for (Type type : {Type(b.getI1Type()), Type(b.getI8Type()), Type(b.getIntegerType(16)), Type(b.getI32Type()),
                    Type(b.getI64Type()), Type(b.getF16Type()), Type(b.getF32Type()), Type(b.getF64Type())}) {
    attn::HostTensor tensor = attn::HostTensor::create({2, 3}, type);
    for (int64_t i = 0; i < 6; ++i)
      tensor.setDouble(i, i - 2);
    ASSERT_FALSE(attn::writeNpy(path, tensor));
    llvm::Expected<attn::HostTensor> read = attn::readNpy(path, &context);
    ASSERT_TRUE(bool(read));
    EXPECT_EQ(read->elementType, type);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(read->data, tensor.data);
  }
}

TEST_F(Npy, ScalarsAndEmptyTensors) {
  for (llvm::SmallVector<int64_t> shape : {llvm::SmallVector<int64_t>{}, {0}, {3, 0, 2}}) {
    ASSERT_FALSE(attn::writeNpy(path, attn::HostTensor::create(shape, Builder(&context).getF32Type())));
    llvm::Expected<attn::HostTensor> read = attn::readNpy(path, &context);
    ASSERT_TRUE(bool(read));
    EXPECT_EQ(read->shape, shape);
  }
}

TEST_F(Npy, FortranOrder) {
  writeFile("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n", llvm::StringRef("\1\2\3\4\5\6"));
  llvm::Expected<attn::HostTensor> read = attn::readNpy(path, &context);
  ASSERT_TRUE(bool(read));
  for (auto [index, value] : llvm::enumerate(std::vector<int64_t>{1, 3, 5, 2, 4, 6}))
    EXPECT_EQ(read->getInt(index), value);
}

TEST_F(Npy, BFloatIsReadAsRawBytesAndWrittenAsSingle) {
  writeFile("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }\n", llvm::StringRef("\xc0\x3f\x00\xc0", 4));
  llvm::Expected<attn::HostTensor> read = attn::readNpy(path, &context);
  ASSERT_TRUE(bool(read));
  EXPECT_TRUE(read->elementType.isBF16());
  ASSERT_FALSE(attn::writeNpy(path, *read));
  llvm::Expected<attn::HostTensor> again = attn::readNpy(path, &context);
  ASSERT_TRUE(bool(again));
  EXPECT_TRUE(again->elementType.isF32());
  for (attn::HostTensor *tensor : {&*read, &*again}) {
    EXPECT_EQ(tensor->getDouble(0), 1.5);
    EXPECT_EQ(tensor->getDouble(1), -2.0);
  }
}

TEST_F(Npy, RefusesWhatItCannotRead) {
  write("no such thing");
  EXPECT_NE(error().find("is not a .npy file"), std::string::npos);
  writeFile("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "abcd");
  EXPECT_NE(error().find("'>f4'"), std::string::npos);
  writeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd");
  EXPECT_NE(error().find("is cut short"), std::string::npos);
  writeFile("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "abcd");
  EXPECT_NE(error().find("is cut short"), std::string::npos);
  writeFile("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "abcd");
  EXPECT_NE(error().find("has a header that is not understood"), std::string::npos);
}

// Read to its end, /dev/zero takes all memory.
TEST_F(Npy, Device) {
  path = "/dev/zero";
  EXPECT_EQ(error(), "/dev/zero: is a device, not a file; write a .npy file with numpy.save");
  path = "";
}

TEST_F(Npy, MissingFile) {
  path = "/nonexistent/x.npy";
  EXPECT_NE(error().find("/nonexistent/x.npy: cannot be read"), std::string::npos);
}

} // namespace
