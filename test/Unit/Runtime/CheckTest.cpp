// Every refusal by status and message, with the outputs untouched.

#include "Function.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>

using namespace attn::test;
using testing::HasSubstr;

namespace {

struct Check : testing::Test {
  Function function = makeAttention(8, 8, true);
  Tensor q{{2, 4, 10, 8}}, k{{2, 2, 12, 8}}, v{{2, 2, 12, 8}}, out{{2, 4, 10, 8}}, lse{{2, 4, 10}};

  void SetUp() override {
    plainKernel = {[](int64_t, int64_t, int64_t, int64_t) { return true; }, 1, 48, std::vector<int>(80), 1};
    out.fill(7);
    lse.fill(7);
  }

  int call() { return function.call({&q, &k, &v, &out, &lse}); }

  /// The call fails with this status and message, and writes nothing.
  void refuse(int status, const char *message) {
    std::vector<char> before = out.bytes, lseBefore = lse.bytes;
    EXPECT_EQ(call(), status);
    EXPECT_STREQ(attn_last_error(), message);
    EXPECT_EQ(out.bytes, before);
    EXPECT_EQ(lse.bytes, lseBefore);
  }
};

TEST_F(Check, GoodArgumentsPass) {
  EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
  EXPECT_NE(out.data<float>()[0], 7);
}

TEST_F(Check, NullTensor) {
  EXPECT_EQ(function.call({&q, nullptr, &v, &out, &lse}), ATTN_NULL_ARGUMENT);
  EXPECT_STREQ(attn_last_error(), "window: argument 'k': null pointer");
}

TEST_F(Check, NullData) {
  v.dl.data = nullptr;
  refuse(ATTN_NULL_ARGUMENT, "window: argument 'v': null data");
}

TEST_F(Check, NullShape) {
  DLTensor bad = *k.get();
  bad.shape = nullptr;
  const DLTensor *args[] = {q.get(), &bad, v.get(), out.get(), lse.get()};
  EXPECT_EQ(attn_call(function.table(), function.strings.data(), function.code.data(), args, ATTN_CALL, nullptr),
            ATTN_NULL_ARGUMENT);
  EXPECT_STREQ(attn_last_error(), "window: argument 'k': null shape");
}

TEST_F(Check, Device) {
  k.dl.device.device_type = kDLCUDA;
  refuse(ATTN_WRONG_DEVICE, "window: argument 'k': device type is 2, expected 1 (CPU)");
}

TEST_F(Check, Rank) {
  lse.shape = {8, 10};
  lse.dl.ndim = 2;
  refuse(ATTN_WRONG_RANK, "window: argument 'lse': rank is 2, expected 3");
}

TEST_F(Check, Dtype) {
  k.dl.dtype = {kDLBfloat, 16, 1};
  refuse(ATTN_WRONG_DTYPE, "window: argument 'k': element type is bfloat16 (1 lanes), expected float32");
  k.dl.dtype = {kDLFloat, 32, 4};
  refuse(ATTN_WRONG_DTYPE, "window: argument 'k': element type is float32 (4 lanes), expected float32");
}

TEST_F(Check, StaticExtent) {
  k.shape[3] = 4;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'k': dimension 3 is 4, expected 8");
}

TEST_F(Check, SharedExtentNamesBothTensors) {
  v.shape[2] = 11;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'v': keys (dimension 2) is 11, but 'k' has 12");
  v.shape[2] = 12;
  out.shape[2] = 9;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'out': queries (dimension 2) is 9, but 'q' has 10");
}

TEST_F(Check, ExtentLimits) {
  k.shape[2] = int64_t(1) << 31;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'k': dimension 2 is 2147483648, expected 0 to 2147483647");
  k.shape[2] = -1;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'k': dimension 2 is -1, expected 0 to 2147483647");
}

TEST_F(Check, Heads) {
  q.shape[1] = out.shape[1] = lse.shape[1] = 3;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'q': 3 heads are not a multiple of the 2 heads of 'k'");
  k.shape[1] = v.shape[1] = 0;
  refuse(ATTN_WRONG_EXTENT, "window: argument 'q': 3 heads are not a multiple of the 0 heads of 'k'");
}

TEST_F(Check, InnerStride) {
  k.strides = {2 * 12 * 16, 12 * 16, 16, 2};
  refuse(ATTN_WRONG_STRIDE, "window: argument 'k': stride of the last dimension is 2, expected 1");
}

TEST_F(Check, StridesBeyondTheAddressSpace) {
  k.strides = {INT64_MAX / 2, 96, 8, 1};
  refuse(ATTN_WRONG_STRIDE,
         "window: argument 'k': stride 4611686018427387903 of dimension 0 reaches beyond the address space");
  k.strides = {INT64_MIN, 96, 8, 1};
  EXPECT_EQ(call(), ATTN_WRONG_STRIDE);
}

TEST_F(Check, StridesOfSingletonsMeanNothing) {
  Tensor q1{{1, 2, 10, 8}}, k1{{1, 1, 12, 8}}, out1{{1, 2, 10, 8}}, lse1{{1, 2, 10}};
  q1.strides = {-5, 80, 8, 1};
  k1.strides = {0, 123456789, 8, 1};
  out1.strides = {0, 80, 8, 1};
  EXPECT_EQ(function.call({&q1, &k1, &k1, &out1, &lse1}), ATTN_OK) << attn_last_error();
}

TEST_F(Check, Alignment) {
  k.dl.data = k.bytes.data() + 1;
  EXPECT_EQ(call(), ATTN_MISALIGNED);
  EXPECT_THAT(attn_last_error(), HasSubstr("window: argument 'k': data is at 0x"));
  EXPECT_THAT(attn_last_error(), HasSubstr(", expected a multiple of 4 bytes"));
  k.dl.data = k.bytes.data() - 3; // the offset mends it
  k.dl.byte_offset = 3;
  EXPECT_EQ(call(), ATTN_OK);
}

TEST_F(Check, OutputOverlapsInput) {
  out.dl.data = q.bytes.data();
  refuse(ATTN_OVERLAP, "window: argument 'out': shares memory with 'q'");
  Tensor buffer{{640 + 384}}; // out's last element is v's first
  out.dl.data = buffer.bytes.data();
  v.dl.data = buffer.bytes.data() + 639 * sizeof(float);
  refuse(ATTN_OVERLAP, "window: argument 'out': shares memory with 'v'");
  v.dl.data = buffer.bytes.data() + 640 * sizeof(float);
  EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
}

TEST_F(Check, OutputsOverlapEachOther) {
  lse.dl.data = out.bytes.data() + 64;
  refuse(ATTN_OVERLAP, "window: argument 'out': shares memory with 'lse'");
}

TEST_F(Check, OutputOverlapsItself) {
  out.strides = {0, 80, 8, 1};
  refuse(ATTN_OVERLAP, "window: argument 'out': its elements share memory by their strides");
  out.strides = {320, 80, 4, 1};
  refuse(ATTN_OVERLAP, "window: argument 'out': its elements share memory by their strides");
  out.strides = {80, 80, 8, 1};
  refuse(ATTN_OVERLAP, "window: argument 'out': its elements share memory by their strides");
}

/// q, k, v and out side by side in one buffer [batch, tokens, 4, heads, dim] touch no common element.
TEST_F(Check, InterleavedViewsOfOneBufferPass) {
  Tensor buffer{{2, 12, 4, 4, 8}}, lse{{2, 4, 12}};
  auto view = [&](int slot) {
    Tensor tensor{{2, 4, 12, 8}};
    tensor.strides = {12 * 4 * 4 * 8, 8, 4 * 4 * 8, 1};
    tensor.dl.data = buffer.bytes.data();
    tensor.dl.byte_offset = slot * 4 * 8 * sizeof(float);
    return tensor;
  };
  plainKernel.visits.assign(96, 0);
  Tensor q = view(0), k = view(1), v = view(2), out = view(3);
  EXPECT_EQ(function.call({&q, &k, &v, &out, &lse}), ATTN_OK) << attn_last_error();
  Tensor shifted = view(2);
  shifted.dl.byte_offset += 4 * 8 * 2; // half a head into k's or out's part
  EXPECT_EQ(function.call({&q, &k, &shifted, &out, &lse}), ATTN_OVERLAP);
}

TEST_F(Check, NegativeStridesAreMeasuredFromTheirLowEnd) {
  q.strides = {320, 80, -8, 1};
  q.dl.byte_offset = 9 * 8 * sizeof(float);
  EXPECT_EQ(call(), ATTN_OK) << attn_last_error();
  out.dl.data = q.bytes.data();
  refuse(ATTN_OVERLAP, "window: argument 'out': shares memory with 'q'");
}

TEST_F(Check, BoolTensorsComeUnderThreeNames) {
  Function function = makeAttention(8, 8, false);
  AttnTensor out = function.tensors.back();
  function.tensors.pop_back();
  function.addTensor("on", ATTN_INPUT, {12}, 6, 8);
  function.kernels[0].out = 4;
  function.tensors.push_back(out);
  Tensor q{{1, 1, 10, 8}}, kv{{1, 1, 12, 8}}, result{{1, 1, 10, 8}};
  for (DLDataType dtype : {DLDataType{6, 8, 1}, DLDataType{kDLUInt, 8, 1}, DLDataType{kDLUInt, 1, 1}}) {
    Tensor on{{12}, 6, 8};
    on.dl.dtype = dtype;
    EXPECT_EQ(function.call({&q, &kv, &kv, &on, &result}), ATTN_OK) << attn_last_error();
  }
  Tensor on{{12}, kDLInt, 8};
  EXPECT_EQ(function.call({&q, &kv, &kv, &on, &result}), ATTN_WRONG_DTYPE);
  EXPECT_STREQ(attn_last_error(), "window: argument 'on': element type is int8 (1 lanes), expected bool8");
}

TEST_F(Check, MessagesAreLongEnoughAndEnd) {
  Function function(std::string(1000, 'x').c_str());
  function.addTensor("q", ATTN_INPUT, {4});
  EXPECT_EQ(function.call({nullptr}), ATTN_NULL_ARGUMENT);
  EXPECT_EQ(strlen(attn_last_error()), 511u);
}

struct Plans : Check {
  attn_plan *plan = nullptr;
  void TearDown() override { attn_plan_free(plan); }
};

TEST_F(Plans, RunWithAPlan) {
  ASSERT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, &plan), ATTN_OK) << attn_last_error();
  EXPECT_EQ(function.call({&q, &k, &v, &out, &lse}, ATTN_CALL_RUN, &plan), ATTN_OK) << attn_last_error();
  EXPECT_NE(out.data<float>()[0], 7);
}

TEST_F(Plans, OtherExtentsAreRefused) {
  ASSERT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, &plan), ATTN_OK);
  Tensor k11{{2, 2, 11, 8}};
  EXPECT_EQ(function.call({&q, &k11, &k11, &out, &lse}, ATTN_CALL_RUN, &plan), ATTN_WRONG_PLAN);
  EXPECT_STREQ(attn_last_error(), "window: the plan was made for keys = 12, but 'k' has 11");
  EXPECT_EQ(out.data<float>()[0], 7);
}

TEST_F(Plans, OtherFunctionsAreRefused) {
  ASSERT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, &plan), ATTN_OK);
  Function other = makeAttention(8, 8, true);
  EXPECT_EQ(other.call({&q, &k, &v, &out, &lse}, ATTN_CALL_RUN, &plan), ATTN_WRONG_PLAN);
  EXPECT_STREQ(attn_last_error(), "window: the plan was made by another function");
}

TEST_F(Plans, NullPlans) {
  EXPECT_EQ(function.call({&q, &k, &v, &out, &lse}, ATTN_CALL_RUN, &plan), ATTN_NULL_ARGUMENT);
  EXPECT_STREQ(attn_last_error(), "window: the plan is null");
  EXPECT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, nullptr), ATTN_NULL_ARGUMENT);
  attn_plan_free(nullptr);
}

} // namespace
