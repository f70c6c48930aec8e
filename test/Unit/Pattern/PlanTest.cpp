//===- PlanTest.cpp - Plans of masks, and figures taken from them ---------===//

#include "attn/Pattern/Plan.h"
#include "Spec.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
class PlanTest : public ::testing::Test {
protected:
  PlanTest() : context(makeRegistry()) {}

  /// Marks the pairs of all runs with their kinds and checks what runs promise about each other.
  std::vector<int> paint(const MaskPlan &plan, const Problem &p, const PlanTiles &tiles, int64_t b, int64_t h) {
    std::vector<int> kinds(p.queries * p.keys, ATTN_EMPTY);
    for (int64_t c = 0; c < plan.getPlan().classes; ++c) {
      AttnClassRows rows = plan.getClassRows(c);
      for (int64_t tile = 0; tile * tiles.query < rows.query_count; ++tile) {
        int32_t end = 0;
        for (const AttnRun &run : plan.getRuns(b, h, c, tile)) {
          EXPECT_LE(end, run.begin);
          EXPECT_LT(run.begin, run.end);
          EXPECT_EQ(run.begin % tiles.granule, 0);
          EXPECT_NE(run.kind, ATTN_EMPTY);
          end = run.end;
          for (int64_t q = tile * tiles.query; q < std::min((tile + 1) * tiles.query, rows.query_count); ++q)
            for (int64_t k = run.begin; k < run.end; ++k)
              kinds[(rows.query_token + q * rows.query_step) * p.keys + rows.key_token + k * rows.key_step] = run.kind;
        }
        EXPECT_LE(end, rows.key_count);
      }
    }
    return kinds;
  }

  void checkPlan(const MaskPlan &plan, const Draw &draw, const Problem &p, const PlanTiles &tiles) {
    int64_t computed = 0, kept = 0;
    for (int64_t b = 0; b < p.batches; ++b)
      for (int64_t h = 0; h < p.heads; ++h) {
        std::vector<int> kinds = paint(plan, p, tiles, b, h);
        for (int64_t q = 0; q < p.queries; ++q)
          for (int64_t j = 0; j < p.keys; ++j) {
            bool keep = draw.keep(p, {b, h, q + p.queryOffset(), j});
            int kind = kinds[q * p.keys + j];
            ASSERT_TRUE(kind == ATTN_PARTIAL || (kind == ATTN_FULL) == keep) << draw.mask << " at " << q << ", " << j;
            computed += kind != ATTN_EMPTY;
            kept += keep;
          }
      }
    EXPECT_EQ(plan.countComputedPairs(), computed) << draw.mask;
    EXPECT_EQ(plan.countKeptPairs(), kept) << draw.mask;
    EXPECT_EQ(plan.countPairs(), p.batches * p.heads * p.queries * p.keys);
  }

  /// Every block of tokens is in the list that its pairs ask for, or in that of partial ones.
  void checkBlockLists(const MaskPlan &plan, const Draw &draw, const Problem &p, int64_t size) {
    BlockLists lists = plan.toBlockLists(size, size);
    ASSERT_EQ(lists.rows, (p.queries + size - 1) / size);
    for (int64_t b = 0; b < p.batches; ++b)
      for (int64_t h = 0; h < p.heads; ++h)
        for (int64_t r = 0; r < lists.rows; ++r)
          for (int64_t c = 0; c * size < p.keys; ++c) {
            int64_t row = ((lists.batches == 1 ? 0 : b) * lists.heads + (lists.heads == 1 ? 0 : h)) * lists.rows + r;
            auto listed = [&](const BlockLists::Lists &list) {
              auto begin = list.indices.begin() + row * list.columns;
              return std::find(begin, begin + list.counts[row], c) != begin + list.counts[row];
            };
            bool all = true, any = false;
            for (int64_t q = r * size; q < std::min((r + 1) * size, p.queries); ++q)
              for (int64_t j = c * size; j < std::min((c + 1) * size, p.keys); ++j) {
                bool keep = draw.keep(p, {b, h, q + p.queryOffset(), j});
                all &= keep;
                any |= keep;
              }
            bool partial = listed(lists.partial), full = listed(lists.full);
            ASSERT_TRUE(!(partial && full) && (!full || all) && (partial || full || !any)) << draw.mask;
          }
  }

  MLIRContext context;
};
} // namespace

TEST_F(PlanTest, CoversExactlyWhatIsKept) {
  Generator generator(20240804);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  int64_t plans = 0, reindexed = 0;
  while (plans < 600) {
    Problem p = generator.drawProblem();
    Draw draw = plans % 3 ? generator.drawMask() : generator.drawReindexedMask();
    Spec spec(context, draw.mask, p.bottomRight ? "align(bottom_right)" : "");
    if (!spec.op)
      continue;
    ++plans;
    Reindexing reindexing = findReindexing(spec.op);
    reindexed += reindexing.kind != ReindexKind::Dense;
    MaskEvaluator evaluator = makeEvaluator(spec, p, reindexing);
    int64_t granule = generator.between(1, 4);
    PlanTiles tiles = {generator.between(1, 8), granule * generator.between(1, 3), granule};
    MaskPlan plan(evaluator, tiles);
    checkPlan(plan, draw, p, tiles);
    checkBlockLists(plan, draw, p, generator.between(1, 9));
    if (HasFatalFailure())
      return;
  }
  EXPECT_GT(reindexed, 150);
}

TEST_F(PlanTest, CountsTiles) {
  Spec spec(context, "mask(causal and window(left = 255))");
  MaskEvaluator evaluator(spec.op, {2, 3, 1, 1024, 1024});
  MaskPlan plan(evaluator, {128, 128, 64});
  MaskPlan::TileCounts counts = plan.countTiles();
  // A tile row: the diagonal and the last tile of the window are partial, the one between is full.
  EXPECT_EQ(counts.full, 6 * 7);
  EXPECT_EQ(counts.partial, 6 * (8 + 6));
  EXPECT_EQ(counts.empty, 6 * 64 - counts.full - counts.partial);
  EXPECT_EQ(plan.countKeptPairs(), 6 * (255 * 256 / 2 + 769 * 256));
  EXPECT_EQ(plan.countFlops(64, 32), plan.countComputedPairs() * 192);
  EXPECT_EQ(plan.countBytes(64, 32, 4), 2 * (3 + 1) * 1024 * 96 * 4);
}

TEST_F(PlanTest, CostsWhatIsKeptAtAnyLength) {
  Spec spec(context, "mask(causal and (window(left = 255) or global(count = 4)))");
  int64_t length = 1 << 20;
  MaskEvaluator evaluator(spec.op, {1, 1, 1, length, length});
  MaskPlan plan(evaluator, {48, 128, 16});
  EXPECT_LT(plan.getDensity(), 0.0004);
  EXPECT_LT(plan.getPlan().num_runs, length / 48 * 6);
  EXPECT_EQ(plan.countKeptPairs(1 << 16), std::nullopt); // it would look at every row
  EXPECT_EQ(plan.toBlockLists(128, 128).partial.columns, 3);
}

TEST_F(PlanTest, KnowsConstantsAndNotMissingData) {
  Spec spec(context, "mask(key_length(%len : tensor<?xi32>))");
  MaskEvaluator unknown(spec.op, {2, 1, 1, 8, 8});
  EXPECT_EQ(unknown.classify(0, 0, 0, 7, 0, 7), ATTN_PARTIAL);
  EXPECT_TRUE(unknown.keep(0, 0, 0, 0));
  MaskEvaluator known(spec.op, {2, 1, 1, 8, 8}, {{{2}, {3, 8}}});
  EXPECT_EQ(known.classify(0, 0, 0, 7, 0, 7), ATTN_PARTIAL);
  EXPECT_EQ(known.classify(0, 0, 0, 7, 3, 7), ATTN_EMPTY);
  EXPECT_EQ(known.classify(1, 0, 0, 7, 0, 7), ATTN_FULL);
  EXPECT_FALSE(known.keep(0, 0, 0, 3));
}

TEST_F(PlanTest, ReadsConstantTensors) {
  Spec spec(context, "mask(key_length(%limit : tensor<i32>))");
  ASSERT_TRUE(spec.op);
  MaskEvaluator evaluator(spec.op, {1, 1, 1, 8, 8});
  EXPECT_EQ(evaluator.classify(0, 0, 0, 7, 0, 4), ATTN_FULL);
  EXPECT_EQ(evaluator.classify(0, 0, 0, 7, 5, 7), ATTN_EMPTY);
}

TEST_F(PlanTest, SaysNothingOfNumbersItDoesNotRead) {
  for (const char *body : {R"(
    %n = arith.index_cast %j : index to i64
    %x = arith.sitofp %n : i64 to f32
    %c = arith.constant 3.0 : f32
    %keep = arith.cmpf olt, %x, %c : f32
  )"}) {
    Spec spec(context, "mask {\n^bb0(%b: index, %h: index, %i: index, %j: index):" + std::string(body) +
                           "attn.yield %keep : i1 }");
    ASSERT_TRUE(spec.op) << body;
    MaskEvaluator evaluator(spec.op, {1, 1, 1, 8, 8});
    EXPECT_EQ(evaluator.classify(0, 0, 0, 7, 4, 7), ATTN_PARTIAL);
    EXPECT_EQ(evaluator.classify(0, 0, 0, 0, 4, 4), ATTN_PARTIAL);
  }
}

namespace {
/// A predicate of another dialect that means its operand and has a rule of its own, which here claims nothing is kept.
struct BitcastModel : MaskOpInterface::ExternalModel<BitcastModel, arith::BitcastOp> {
  Value expand(Operation *op, OpBuilder &) const { return op->getOperand(0); }
  FailureOr<Interval> readInterval(Operation *, IntervalBuilder &builder, ArrayRef<Interval>) const {
    return builder.point(int64_t(0));
  }
};
} // namespace

TEST_F(PlanTest, PrefersTheRuleOfAPredicateToItsMeaning) {
  DialectRegistry registry = makeRegistry();
  registry.addExtension(
      +[](MLIRContext *context, arith::ArithDialect *) { arith::BitcastOp::attachInterface<BitcastModel>(*context); });
  MLIRContext extended(registry);
  Spec spec(extended, R"(mask {
    ^bb0(%b: index, %h: index, %i: index, %j: index):
      %past = attn.causal %i, %j
      %keep = arith.bitcast %past : i1 to i1
      attn.yield %keep : i1
  })");
  ASSERT_TRUE(spec.op);
  MaskEvaluator evaluator(spec.op, {1, 1, 1, 8, 8});
  EXPECT_EQ(evaluator.classify(0, 0, 0, 7, 0, 7), ATTN_EMPTY);
}

TEST_F(PlanTest, NoMaskIsFull) {
  Spec spec(context, "");
  MaskEvaluator evaluator(spec.op, {1, 2, 1, 100, 70});
  MaskPlan plan(evaluator, {48, 128, 16});
  EXPECT_EQ(plan.countComputedPairs(), 2 * 100 * 70);
  EXPECT_EQ(plan.countTiles().full, 2 * 3);
  EXPECT_EQ(plan.countTiles().partial, 0);
}
