//===- PredicateTest.cpp - Named predicates mean what they expand to --------===//
//
// The reference reads a predicate from its definition, the compiler from `expand`. Here both masks are evaluated over
// all pairs, with queries before, beside and behind the keys.
//
//===----------------------------------------------------------------------===//
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Reference/Reference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;

namespace {

constexpr int64_t kBatch = 2, kHeads = 3, kSmall = 5;

struct Predicate : testing::TestWithParam<const char *> {
  Predicate() {
    registry.insert<attn::AttnDialect, arith::ArithDialect, tensor::TensorDialect, func::FuncDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  OwningOpRef<ModuleOp> parse(llvm::StringRef mask, llvm::StringRef align) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "!t = tensor<?x?x?x1xf32>\n!s = tensor<?x?x" << kSmall << "xi32>\n"
        << "func.func @f(%q: !t, %k: !t, %v: !t, %set: !s, %doc: tensor<?x?xi32>, %len: tensor<?xi32>,"
           " %table: tensor<?x?x?xi8>) -> !t {\n  %o = attn.attention %q, %k, %v align("
        << align << ") mask(" << mask << ") : !t, !t, !t -> !t\n  return %o : !t\n}\n";
    return parseSourceString<ModuleOp>(text, ParserConfig(&context));
  }

  attn::HostTensor draw(llvm::ArrayRef<int64_t> shape, Type type, int64_t least, int64_t most) {
    attn::HostTensor tensor = attn::HostTensor::create(shape, type);
    for (int64_t i = 0, e = tensor.getNumElements(); i < e; ++i)
      tensor.setInt(i, least + int64_t(random() % uint64_t(most - least + 1)));
    return tensor;
  }

  llvm::SmallVector<attn::HostTensor> drawInputs(int64_t queries, int64_t keys) {
    Builder b(&context);
    Type f32 = b.getF32Type(), i32 = b.getI32Type();
    return {draw({kBatch, kHeads, queries, 1}, f32, -3, 3),
            draw({kBatch, kHeads, keys, 1}, f32, -3, 3),
            draw({kBatch, kHeads, keys, 1}, f32, -99, 99),
            draw({kBatch, kHeads, kSmall}, i32, -1, keys),
            draw({kBatch, keys}, i32, 0, 2),
            draw({kBatch}, i32, 0, keys),
            draw({kHeads, 4, 4}, b.getI8Type(), 0, 1)};
  }

  DialectRegistry registry;
  MLIRContext context;
  std::mt19937 random{3};
};

/// Replaces every predicate by its expansion, until all ops are basic; answers how many there were.
int expandAll(ModuleOp module) {
  int count = 0;
  for (bool changed = true; changed;) {
    changed = false;
    llvm::SmallVector<attn::MaskOpInterface> ops;
    module.walk([&](attn::MaskOpInterface op) { ops.push_back(op); });
    for (attn::MaskOpInterface op : ops) {
      OpBuilder builder(op);
      if (Value value = op.expand(builder)) {
        op->getResult(0).replaceAllUsesWith(value);
        op->erase();
        changed = true;
        ++count;
      }
    }
  }
  return count;
}

TEST_P(Predicate, MeansItsExpansion) {
  for (const char *align : {"top_left", "bottom_right"}) {
    OwningOpRef<ModuleOp> named = parse(GetParam(), align);
    ASSERT_TRUE(bool(named));
    OwningOpRef<ModuleOp> expanded = named->clone();
    ASSERT_GT(expandAll(*expanded), 0);
    for (auto [queries, keys] :
         {std::pair(40, 40), std::pair(17, 50), std::pair(50, 17), std::pair(1, 30), std::pair(30, 1)}) {
      llvm::SmallVector<attn::HostTensor> inputs = drawInputs(queries, keys), a, b;
      ASSERT_TRUE(succeeded(attn::evaluate(*named->getOps<func::FuncOp>().begin(), inputs, a)));
      ASSERT_TRUE(succeeded(attn::evaluate(*expanded->getOps<func::FuncOp>().begin(), inputs, b)));
      EXPECT_EQ(a.front().data, b.front().data) << GetParam() << ", " << align << ", " << queries << " x " << keys;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Predicate,
    testing::Values("causal", "not causal", "window(left = 3)", "window(right = 2)", "window(left = 4, right = 1)",
                    "dilated_window(left = 2, right = 1, dilation = 3)", "stride(size = 4)", "same_block(size = 6)",
                    "chunk_lookback(size = 5, before = 1)", "local_blocks(size = 7, before = 3, after = 2)",
                    "last_columns(block = 6, count = 2)", "same_row(width = 7)", "same_column(width = 7)",
                    "local_blocks_2d(width = 6, block = [2, 3], flange = [1, 2])", "neighborhood(size = 5)",
                    "neighborhood(size = 6)", "neighborhood_2d(width = 5, size = [3, 3])", "prefix(length = 9)",
                    "key_length(%len : tensor<?xi32>)", "heads(period = 3, index = 1)", "global(count = 3)",
                    "global(tokens = [2, 11])", "same_document(%doc : tensor<?x?xi32>)",
                    "block_mask(%table : tensor<?x?x?xi8>, size = 9)", "causal and column_in(%set : !s)",
                    "causal or row_in(%set : !s)", "blocked(4, window(left = 1, right = 0) or global(count = 1))"));

} // namespace
