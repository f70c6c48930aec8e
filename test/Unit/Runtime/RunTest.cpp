// Whole calls with a plain kernel in place of compiled code: every row is computed once, and right.

#include "Function.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace attn::test;

#ifdef ATTN_TEST_OPENMP
extern "C" void omp_set_num_threads(int);
static void setThreads(int count) { omp_set_num_threads(count); }
// Threads that libomp keeps until the end of the process are no leak of ours.
extern "C" const char *__lsan_default_suppressions() { return "leak:libomp"; }
#else
static void setThreads(int) {}
#endif

namespace {

using Random = std::mt19937;
int64_t pick(Random &random, int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(random); }
int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/// A schedule and a mask, with the lattice of the reindexing anded into it.
Function drawFunction(Random &random, int64_t dv) {
  Function function = makeAttention(8, dv, true);
  AttnKernel &kernel = function.kernels[0];
  kernel.query_tile = 16 * pick(random, 1, 3);
  kernel.tail_tile = pick(random, 1, 16);
  kernel.tail_limit = pick(random, 0, kernel.query_tile);
  kernel.key_granule = 16;
  kernel.key_tile = 16 * pick(random, 1, 3);
  kernel.group_tiles = pick(random, 1, 4);
  kernel.split_keys = pick(random, 0, 2) * 40;
  kernel.split_tasks = pick(random, 0, 2) * 30;
  kernel.align = pick(random, 0, 1);
  kernel.reindex = pick(random, 0, 2);
  kernel.reindex_size = pick(random, 1, 40);
  kernel.has_mask = kernel.reindex || pick(random, 0, 3) > 0;
  function.threads = pick(random, 0, 1);
  int64_t left = pick(random, -5, 80), right = pick(random, -5, 80), size = kernel.reindex_size,
          reindex = kernel.reindex;
  bool masked = kernel.has_mask;
  plainKernel.keep = [=](int64_t b, int64_t h, int64_t i, int64_t j) {
    if (reindex == ATTN_RESIDUE && (i - j) % size != 0)
      return false;
    if (reindex == ATTN_BLOCK && floorDiv(i, size) != floorDiv(j, size))
      return false;
    return !masked || (i - left - b <= j && j <= i + right + h);
  };
  plainKernel.step = reindex == ATTN_RESIDUE ? size : 1;
  plainKernel.tile = kernel.query_tile;
  plainKernel.scratchFloats = 100 + 3 * 8;
  return function;
}

void expectNear(Tensor &got, Tensor &wanted, const char *name) {
  size_t count = got.bytes.size() / 4;
  for (size_t k = 0; k < count; ++k) {
    float a = got.data<float>()[k], b = wanted.data<float>()[k];
    ASSERT_TRUE(a == b || std::abs(a - b) <= 2e-5f * (1 + std::abs(b)))
        << name << "[" << k << "]: " << a << " vs " << b;
  }
}

TEST(Run, RandomProblemsAgreeWithTheDefinition) {
  Random random(5);
  for (int trial = 0; trial < 400 && !testing::Test::HasFatalFailure(); ++trial) {
    SCOPED_TRACE(trial);
    int64_t b = pick(random, 0, 2), kv = pick(random, 1, 2), h = kv * pick(random, 0, 2), n = pick(random, 0, 150),
            m = pick(random, 0, 150), dv = pick(random, 1, 9);
    Function function = drawFunction(random, dv);
    Tensor q{{b, h, n, 8}}, k{{b, kv, m, 8}}, v{{b, kv, m, dv}}, out{{b, h, n, dv}}, lse{{b, h, n}};
    q.randomise(trial);
    k.randomise(trial + 1);
    v.randomise(trial + 2);
    out.fill(NAN);
    lse.fill(NAN);
    plainKernel.visits.assign(b * h * n, 0);
    setThreads(pick(random, 1, 4));
    ASSERT_EQ(function.call({&q, &k, &v, &out, &lse}), ATTN_OK) << attn_last_error();
    Tensor wanted{{b, h, n, dv}}, wantedLse{{b, h, n}};
    reference(q, k, v, function.kernels[0].align ? m - n : 0, wanted, wantedLse);
    for (int visits : plainKernel.visits)
      ASSERT_LE(visits, 1); // 0 only where there are no keys to split
    expectNear(out, wanted, "out");
    expectNear(lse, wantedLse, "lse");
  }
}

TEST(Run, EveryRowRunsOnceWithoutSplit) {
  Random random(6);
  for (int trial = 0; trial < 200 && !testing::Test::HasFatalFailure(); ++trial) {
    SCOPED_TRACE(trial);
    int64_t b = pick(random, 1, 3), h = pick(random, 1, 3), n = pick(random, 1, 300), m = pick(random, 0, 30);
    Function function = drawFunction(random, 1);
    function.kernels[0].split_keys = 0;
    Tensor q{{b, h, n, 8}}, k{{b, h, m, 8}}, v{{b, h, m, 1}}, out{{b, h, n, 1}}, lse{{b, h, n}};
    plainKernel.visits.assign(b * h * n, 0);
    ASSERT_EQ(function.call({&q, &k, &v, &out, &lse}), ATTN_OK) << attn_last_error();
    for (int visits : plainKernel.visits)
      ASSERT_EQ(visits, 1);
  }
}

/// The same bits for any number of threads, with keys split and whole, planned together and apart.
TEST(Run, ThreadsDoNotChangeABit) {
  for (int64_t splitKeys : {0, 128}) {
    Tensor q{{1, 2, 100, 8}}, k{{1, 1, 3000, 8}}, v{{1, 1, 3000, 16}}, lse{{1, 2, 100}};
    q.randomise(1);
    k.randomise(2);
    v.randomise(3);
    plainKernel = {[](int64_t, int64_t, int64_t i, int64_t j) { return j <= i; }, 1, 48, {}, 124};
    std::vector<char> first;
    for (int threads : {1, 2, 3, 7}) {
      Function function = makeAttention(8, 16, true);
      function.kernels[0].align = ATTN_BOTTOM_RIGHT;
      function.kernels[0].split_keys = splitKeys;
      function.kernels[0].split_tasks = 64;
      function.threads = 1;
      setThreads(threads);
      Tensor out{{1, 2, 100, 16}};
      plainKernel.visits.assign(200, 0);
      attn_plan *plan = nullptr;
      ASSERT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, &plan), ATTN_OK);
      ASSERT_EQ(function.call({&q, &k, &v, &out, &lse}, ATTN_CALL_RUN, &plan), ATTN_OK) << attn_last_error();
      attn_plan_free(plan);
      if (first.empty())
        first = out.bytes;
      EXPECT_EQ(first, out.bytes);
    }
  }
}

/// Two kernels with an intermediate between them, and a constant captured by the mask of the second.
const int32_t one = 1;
void *getOne() { return const_cast<int32_t *>(&one); }
int32_t classifyByConstant(AttnMemRef *const *operands, const AttnTables *tables, int64_t, int64_t, int64_t, int64_t,
                           int64_t, int64_t, int64_t, int64_t) {
  int64_t range[2];
  attn_range(tables, 0, nullptr, nullptr, range);
  EXPECT_EQ(*static_cast<int32_t *>(operands[0]->data), 1);
  EXPECT_EQ(range[0], 1);
  EXPECT_EQ(range[1], 1);
  return ATTN_FULL;
}

/// Two kernels; what the second reads of the first is an intermediate, or an output that a plan is made without.
static void runTwoKernels(AttnTensorRole role) {
  Function function = makeAttention(8, 8, true);
  AttnTensor middle = function.tensors[3]; // as out
  middle.role = role;
  function.tensors.push_back(middle);
  int64_t constant = function.addTensor("one", ATTN_CONSTANT, {}, kDLInt, 32);
  function.tensors[constant].constant = function.addCode(getOne);
  AttnKernel second = function.kernels[0];
  function.kernels[0].out = second.query = 5;
  function.kernels[0].lse = -1;
  second.num_captured = second.num_tables = 1;
  second.captured[0] = constant;
  second.code_classify = function.addCode(classifyByConstant);
  function.kernels.push_back(second);

  Tensor q{{1, 2, 60, 8}}, k{{1, 2, 33, 8}}, v{{1, 2, 33, 8}}, out{{1, 2, 60, 8}}, lse{{1, 2, 60}};
  q.randomise(1);
  k.randomise(2);
  v.randomise(3);
  plainKernel = {[](int64_t, int64_t, int64_t, int64_t) { return true; }, 1, 48, std::vector<int>(120), 124};
  attn_plan *plan = nullptr;
  ASSERT_EQ(function.call({&q, &k, &v}, ATTN_CALL_PLAN, &plan), ATTN_OK) << attn_last_error();
  Tensor written{{1, 2, 60, 8}};
  std::vector<Tensor *> arguments{&q, &k, &v, &out, &lse};
  if (role == ATTN_OUTPUT)
    arguments.push_back(&written);
  ASSERT_EQ(function.call(arguments, ATTN_CALL_RUN, &plan), ATTN_OK) << attn_last_error();
  attn_plan_free(plan);
  Tensor between{{1, 2, 60, 8}}, wanted{{1, 2, 60, 8}}, wantedLse{{1, 2, 60}};
  reference(q, k, v, 0, between, wantedLse);
  reference(between, k, v, 0, wanted, wantedLse);
  expectNear(out, wanted, "out");
  expectNear(lse, wantedLse, "lse");
  if (role == ATTN_OUTPUT)
    expectNear(written, between, "the output between");
}

TEST(Run, KernelsInOrderWithIntermediatesAndConstants) { runTwoKernels(ATTN_TEMPORARY); }
TEST(Run, KernelsInOrderWithAnOutputBetween) { runTwoKernels(ATTN_OUTPUT); }

} // namespace
