//===- ExpandTest.cpp - Expansion, captures and shapes of masks -----------===//

#include "attn/Pattern/Expand.h"
#include "Spec.h"
#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Mask.h"
#include "gtest/gtest.h"
#include <map>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
class ExpandTest : public ::testing::Test {
protected:
  ExpandTest() : context(makeRegistry()) {}

  Reindexing reindexingOf(const std::string &mask, const std::string &tensor = "tensor<?x?x?x64xf32>") {
    Spec spec(context, mask, "", tensor);
    return spec.op ? findReindexing(spec.op) : Reindexing{ReindexKind::Dense, -1};
  }

  /// Expands the mask of `spec` into a new function and answers its ops by name.
  std::map<std::string, int> expandedOps(Spec &spec, const Reindexing *reindexing = nullptr) {
    OpBuilder builder(&context);
    builder.setInsertionPointToEnd(spec.module->getBody());
    Type index = builder.getIndexType();
    auto function = func::FuncOp::create(
        builder, spec.op.getLoc(), "g",
        builder.getFunctionType({index, index, index, index, index, index}, {builder.getI1Type()}));
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToEnd(entry);
    ExpandOptions options;
    options.numQueries = entry->getArgument(4);
    options.numKeys = entry->getArgument(5);
    options.reindexing = reindexing;
    options.capture = [&](Value tensor) -> Value {
      (void)function.insertArgument(6, tensor.getType(), {}, tensor.getLoc());
      return entry->getArgument(6);
    };
    Value keep = expandMaskInto(builder, *spec.op.getMaskBlock(), entry->getArguments().take_front(4), options);
    func::ReturnOp::create(builder, spec.op.getLoc(), keep);
    EXPECT_TRUE(succeeded(function.verify()));
    std::map<std::string, int> names;
    for (Operation &op : *entry)
      ++names[op.getName().getStringRef().str()];
    return names;
  }

  MLIRContext context;
};

const Reindexing kDense = {};
Reindexing residue(int64_t size) { return {ReindexKind::Residue, size}; }
Reindexing block(int64_t size) { return {ReindexKind::Block, size}; }
} // namespace

TEST_F(ExpandTest, FindsReindexings) {
  EXPECT_EQ(reindexingOf("mask(causal)"), kDense);
  EXPECT_EQ(reindexingOf("mask(stride(128))"), residue(128));
  EXPECT_EQ(reindexingOf("mask(same_column(64) and causal)"), residue(64));
  EXPECT_EQ(reindexingOf("mask(dilated_window(left = 3, dilation = 5))"), residue(5));
  EXPECT_EQ(reindexingOf("mask(same_block(256) and causal)"), block(256));
  EXPECT_EQ(reindexingOf("mask(causal and same_row(64))"), block(64));
  EXPECT_EQ(reindexingOf("mask(causal and (window(left = 127) or stride(128)))"), kDense);
  EXPECT_EQ(reindexingOf("mask(stride(1))"), kDense);
}

TEST_F(ExpandTest, TakesTheReindexingThatLeavesTheLeastWork) {
  EXPECT_EQ(reindexingOf("mask(stride(3) and stride(8))"), residue(8));
  EXPECT_EQ(reindexingOf("mask(same_block(64) and same_block(256))"), block(64));
  EXPECT_EQ(reindexingOf("mask(stride(2) and same_block(64))"), block(64));
  EXPECT_EQ(reindexingOf("mask(stride(32) and same_block(64))", "tensor<1x1x1024x64xf32>"), residue(32));
}

TEST_F(ExpandTest, FindsReindexingsInPlainArithmetic) {
  auto region = [](const std::string &body) {
    return "mask {\n^bb0(%b: index, %h: index, %i: index, %j: index):\n" + body + "attn.yield %keep : i1 }";
  };
  const std::string constants = "%c0 = arith.constant 0 : index\n%c6 = arith.constant 6 : index\n";
  EXPECT_EQ(reindexingOf(region(constants + R"(
    %x = arith.remui %i, %c6 : index
    %y = arith.remui %j, %c6 : index
    %keep = arith.cmpi eq, %y, %x : index
  )")),
            residue(6));
  EXPECT_EQ(reindexingOf(region(constants + R"(
    %d = arith.subi %j, %i : index
    %e = arith.addi %d, %c6 : index
    %r = arith.remsi %e, %c6 : index
    %keep = arith.cmpi eq, %r, %c0 : index
  )")),
            residue(6));
  EXPECT_EQ(reindexingOf(region(constants + R"(
    %x = arith.divui %i, %c6 : index
    %y = index.floordivs %j, %c6
    %keep = arith.cmpi eq, %y, %x : index
  )")),
            block(6));
  EXPECT_EQ(reindexingOf(region(constants + R"(
    %d = arith.subi %i, %j : index
    %r = arith.remsi %d, %c6 : index
    %keep = arith.cmpi ne, %r, %c0 : index
  )")),
            kDense);
}

TEST_F(ExpandTest, DropsTheConjunctOfTheReindexing) {
  Spec spec(context, "mask(dilated_window(left = 3, right = 2, dilation = 5))");
  ASSERT_TRUE(spec.op);
  Reindexing reindexing = findReindexing(spec.op);
  auto names = expandedOps(spec, &reindexing);
  EXPECT_EQ(names.count("arith.remsi"), 0u);
  EXPECT_EQ(names["arith.cmpi"], 2);
  Reindexing multiple = residue(10), other = residue(7);
  Spec again(context, "mask(stride(5) and causal)");
  EXPECT_EQ(expandedOps(again, &multiple)["arith.cmpi"], 1);
  Spec third(context, "mask(stride(5) and causal)");
  EXPECT_EQ(expandedOps(third, &other)["arith.cmpi"], 2);
}

TEST_F(ExpandTest, LeavesOnlyBasicOps) {
  for (const char *mask : {"mask(causal and not window(left = 3))", "mask(neighborhood(7) or last_columns(8, 2))",
                           "mask(blocked(64, window(left = 1, right = 1) or in_table(%set : tensor<?x?xi32>)))",
                           "mask(same_document(%doc : tensor<?x?xi32>) and key_length(%len : tensor<?xi32>))",
                           "mask(local_blocks_2d(width = 16, block = [2, 4], flange = [1, 1]))",
                           "mask(block_mask(%table : tensor<?x?xi1>, size = 16))"}) {
    Spec spec(context, mask);
    ASSERT_TRUE(spec.op) << mask;
    for (auto [name, count] : expandedOps(spec))
      EXPECT_TRUE(StringRef(name).starts_with("arith.") || name == "tensor.extract" || name == "attn.contains" ||
                  name == "func.return")
          << name << " in " << mask;
  }
}

TEST_F(ExpandTest, FindsCapturesAndTables) {
  Spec spec(context, "mask(same_document(%doc : tensor<?x?xi32>) and key_length(%len : tensor<?xi32>) and "
                     "blocked(64, in_table(%set : tensor<?x?xi32>)))");
  ASSERT_TRUE(spec.op);
  Captures captures = Captures::of(spec.op);
  ASSERT_EQ(captures.tensors.size(), 3u);
  auto function = cast<func::FuncOp>(spec.op->getParentOp());
  EXPECT_EQ(captures.tensors[0], function.getArgument(4));
  EXPECT_EQ(captures.tensors[1], function.getArgument(3));
  EXPECT_EQ(captures.tensors[2], function.getArgument(5));
  ASSERT_EQ(captures.tables.size(), 3u);
  EXPECT_EQ(captures.tables[0], (Table{Table::Kind::Range, 0, 1}));
  EXPECT_EQ(captures.tables[1], (Table{Table::Kind::Range, 1, 0}));
  EXPECT_EQ(captures.tables[2], (Table{Table::Kind::Members, 2, 1}));
  MaskDependence dependence = getMaskDependence(spec.op);
  EXPECT_TRUE(dependence.batch);
  EXPECT_FALSE(dependence.head);
}

TEST_F(ExpandTest, FindsBlockSizes) {
  Spec spec(context, "mask(blocked(64, window(left = 1, right = 1)) or same_block(256) and causal)");
  ASSERT_TRUE(spec.op);
  EXPECT_EQ(blockSizes(spec.op), (SmallVector<int64_t>{64, 256}));
}
