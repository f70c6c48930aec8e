//===- ReadingTest.cpp - Readings of random masks against brute force -----===//

#include "Draw.h"
#include "Spec.h"
#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Mask.h"
#include "mlir/IR/Diagnostics.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
struct Box {
  int64_t b, h, iLo, iHi, jLo, jHi;
};

class ReadingTest : public ::testing::Test {
protected:
  ReadingTest() : context(makeRegistry()) {}

  MLIRContext context;
};

Box drawBox(Generator &generator, const Problem &p) {
  Box box;
  box.b = generator.below(p.batches);
  box.h = generator.below(p.heads);
  int64_t side = generator.below(4) ? 12 : 1;
  int64_t row = generator.below(p.queries);
  box.iLo = row + p.queryOffset();
  box.iHi = std::min(row + generator.below(side), p.queries - 1) + p.queryOffset();
  box.jLo = generator.below(p.keys);
  box.jHi = std::min(box.jLo + generator.below(side), p.keys - 1);
  return box;
}

AttnRunKind bruteForce(const Draw &draw, const Problem &p, const Box &box) {
  bool all = true, any = false;
  for (int64_t i = box.iLo; i <= box.iHi; ++i)
    for (int64_t j = box.jLo; j <= box.jHi; ++j) {
      bool keep = draw.keep(p, {box.b, box.h, i, j});
      all &= keep;
      any |= keep;
    }
  return all ? ATTN_FULL : any ? ATTN_PARTIAL : ATTN_EMPTY;
}

std::string describe(const Draw &draw, const Problem &p, const Box &box) {
  return draw.mask + "\nN " + std::to_string(p.queries) + " M " + std::to_string(p.keys) +
         (p.bottomRight ? " bottom_right" : "") + " b " + std::to_string(box.b) + " h " + std::to_string(box.h) +
         " i " + std::to_string(box.iLo) + ".." + std::to_string(box.iHi) + " j " + std::to_string(box.jLo) + ".." +
         std::to_string(box.jHi);
}
} // namespace

TEST_F(ReadingTest, IsNeverWrong) {
  Generator generator(20240801);
  int64_t boxes = 0, rejected = 0, partial = 0, needless = 0;
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  for (int64_t draw = 0; draw < 12000; ++draw) {
    Problem p = generator.drawProblem();
    Draw mask = generator.drawMask();
    Spec spec(context, mask.mask, p.bottomRight ? "align(bottom_right)" : "");
    if (!spec.op) { // the verifier has found that the mask keeps nothing
      ++rejected;
      continue;
    }
    MaskEvaluator evaluator = makeEvaluator(spec, p);
    for (int64_t k = 0; k < 5; ++k) {
      Box box = drawBox(generator, p);
      AttnRunKind expected = bruteForce(mask, p, box);
      AttnRunKind read = evaluator.classify(box.b, box.h, box.iLo, box.iHi, box.jLo, box.jHi);
      ++boxes;
      partial += read == ATTN_PARTIAL;
      needless += read == ATTN_PARTIAL && expected != ATTN_PARTIAL;
      bool single = box.iLo == box.iHi && box.jLo == box.jHi;
      ASSERT_TRUE(read == expected || (read == ATTN_PARTIAL && !single))
          << "read " << read << ", is " << expected << "\n"
          << describe(mask, p, box);
      bool keep = mask.keep(p, {box.b, box.h, box.iLo, box.jLo});
      ASSERT_EQ(evaluator.keep(box.b, box.h, box.iLo, box.jLo), keep) << describe(mask, p, box);
    }
  }
  EXPECT_GT(boxes, 50000);
  EXPECT_LT(rejected, 1200);
  RecordProperty("partial", partial);
  RecordProperty("needless", needless);
  EXPECT_LT(needless * 5, boxes); // far from always "partial"
}

TEST_F(ReadingTest, IsExactForConditionsOnOneForm) {
  Generator generator(20240802);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
  int64_t boxes = 0;
  for (int64_t draw = 0; draw < 1200; ++draw) {
    Problem p = generator.drawProblem();
    Draw mask = generator.drawAffineMask();
    Spec spec(context, mask.mask, p.bottomRight ? "align(bottom_right)" : "");
    if (!spec.op)
      continue;
    MaskEvaluator evaluator = makeEvaluator(spec, p);
    for (int64_t k = 0; k < 5; ++k, ++boxes) {
      Box box = drawBox(generator, p);
      ASSERT_EQ(evaluator.classify(box.b, box.h, box.iLo, box.iHi, box.jLo, box.jHi), bruteForce(mask, p, box))
          << describe(mask, p, box);
    }
  }
  EXPECT_GT(boxes, 4000);
}
