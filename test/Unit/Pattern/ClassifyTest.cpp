//===- ClassifyTest.cpp - The emitted reading against the evaluator -------===//

#include "attn/Pattern/Classify.h"
#include "Spec.h"
#include "attn/Pattern/Captures.h"
#include "attn/Runtime/Tables.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/Mangling.h"
#include "llvm/Support/TargetSelect.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace mlir;
using namespace attn;
using namespace attn::test;

namespace {
/// One mask with its function and the data it is called with.
struct Case {
  Problem problem;
  Draw draw;
  std::unique_ptr<Spec> spec;
  Captures captures;
  Reindexing reindexing;
};

/// The captured tensors of a case in memory, in the element types of the spec, with the runtime's tables.
class Memory {
public:
  explicit Memory(Case &test) {
    AttnKernel kernel = {};
    memrefs.reserve(test.captures.tensors.size());
    std::vector<AttnTableSource> sources;
    std::vector<CapturedData> data = getData(*test.spec, test.problem);
    for (auto [tensor, content] : llvm::zip_equal(test.captures.tensors, data)) {
      int64_t bits = cast<ShapedType>(tensor.getType()).getElementTypeBitWidth();
      memrefs.push_back(describe(content, bits));
      int64_t code = bits == 1 ? 6 : 0; // kDLBool, kDLInt
      sources.push_back(
          {&memrefs.back(), static_cast<int64_t>(content.shape.size()), code, std::max<int64_t>(bits, 8)});
    }
    for (const Table &table : test.captures.tables)
      kernel.tables[kernel.num_tables++] = {static_cast<int64_t>(table.kind), table.operand, table.dim};
    int64_t culprit;
    EXPECT_EQ(attn_tables_build(&kernel, sources.data(), 1000, 0, &tables, &culprit), 0);
    for (AttnMemRef &memref : memrefs)
      operands.push_back(&memref);
  }
  ~Memory() { attn_tables_free(tables); }

  std::vector<AttnMemRef *> operands;
  AttnTables *tables = nullptr;

private:
  AttnMemRef describe(const CapturedData &content, int64_t bits) {
    int64_t bytes = std::max<int64_t>(bits / 8, 1), count = content.values.size(), rank = content.shape.size();
    storage.emplace_back(bytes * count);
    for (int64_t k = 0; k < count; ++k) // little-endian
      std::memcpy(storage.back().data() + k * bytes, &content.values[k], bytes);
    AttnMemRef memref = {storage.back().data(), storage.back().data(), 0, {}};
    for (int64_t dim = rank, stride = 1; dim-- > 0; stride *= content.shape[dim]) {
      memref.extents[dim] = content.shape[dim];
      memref.extents[rank + dim] = stride;
    }
    return memref;
  }

  std::vector<std::vector<char>> storage;
  std::vector<AttnMemRef> memrefs;
};

class ClassifyTest : public ::testing::Test {
protected:
  ClassifyTest() : context(makeRegistry()) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    registerBuiltinDialectTranslation(context);
    registerLLVMDialectTranslation(context);
    context.loadAllAvailableDialects();
    module = ModuleOp::create(UnknownLoc::get(&context));
  }

  /// Emits the reading of a mask as the function `classify<n>`; answers whether the mask was accepted.
  bool add(const Problem &problem, const Draw &draw) {
    ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) { return success(); });
    Case test = {problem,
                 draw,
                 std::make_unique<Spec>(context, draw.mask, problem.bottomRight ? "align(bottom_right)" : ""),
                 {},
                 {}};
    if (!test.spec->op)
      return false;
    test.captures = Captures::of(test.spec->op);
    test.reindexing = findReindexing(test.spec->op);
    OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
    std::string name = "classify" + std::to_string(cases.size());
    FailureOr<func::FuncOp> function = emitClassify(builder, test.spec->op, name, test.captures, test.reindexing);
    EXPECT_TRUE(succeeded(function));
    cases.push_back(std::move(test));
    return true;
  }

  void compile() {
    ASSERT_TRUE(succeeded(verify(*module)));
    PassManager passes(&context);
    passes.addPass(createConvertIndexToLLVMPass());
    passes.addPass(arith::createArithExpandOpsPass());
    passes.addPass(createArithToLLVMConversionPass());
    passes.addPass(createConvertFuncToLLVMPass());
    passes.addPass(createReconcileUnrealizedCastsPass());
    ASSERT_TRUE(succeeded(passes.run(*module)));
    auto created = ExecutionEngine::create(*module);
    ASSERT_TRUE(static_cast<bool>(created));
    engine = std::move(*created);
    engine->registerSymbols([](llvm::orc::MangleAndInterner interner) {
      llvm::orc::SymbolMap symbols;
      symbols[interner("attn_range")] = {llvm::orc::ExecutorAddr::fromPtr(&attn_range), llvm::JITSymbolFlags::Exported};
      return symbols;
    });
  }

  AttnClassify lookup(size_t index) {
    auto symbol = engine->lookup("classify" + std::to_string(index));
    EXPECT_TRUE(static_cast<bool>(symbol));
    return reinterpret_cast<AttnClassify>(*symbol);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::vector<Case> cases;
  std::unique_ptr<ExecutionEngine> engine;
};
} // namespace

TEST_F(ClassifyTest, AgreesWithTheEvaluator) {
  Generator generator(20240803);
  while (cases.size() < 250) {
    Problem problem = generator.drawProblem();
    add(problem, generator.below(4) ? generator.drawMask() : generator.drawAffineMask());
  }
  compile();
  int64_t weaker = 0, boxes = 0;
  for (size_t index = 0; index < cases.size(); ++index) {
    Case &test = cases[index];
    const Problem &p = test.problem;
    AttnClassify classify = lookup(index);
    Memory memory(test);
    MaskEvaluator evaluator = makeEvaluator(*test.spec, p, test.reindexing);
    for (int64_t k = 0; k < 40; ++k, ++boxes) {
      int64_t b = generator.below(p.batches), h = generator.below(p.heads), row = generator.below(p.queries),
              jLo = generator.below(p.keys);
      int64_t iLo = row + p.queryOffset(), side = k % 4 ? 12 : 1;
      int64_t iHi = std::min(row + generator.below(side), p.queries - 1) + p.queryOffset();
      int64_t jHi = std::min(jLo + generator.below(side), p.keys - 1);
      int32_t emitted = classify(memory.operands.data(), memory.tables, p.queries, p.keys, b, h, iLo, iHi, jLo, jHi);
      int32_t expected = evaluator.classify(b, h, iLo, iHi, jLo, jHi);
      // An op that could trap is computed by the evaluator alone.
      ASSERT_TRUE(emitted == expected || emitted == ATTN_PARTIAL)
          << test.draw.mask << "\nemitted " << emitted << " expected " << expected << " i " << iLo << ".." << iHi
          << " j " << jLo << ".." << jHi;
      weaker += emitted != expected;
    }
  }
  EXPECT_LT(weaker * 100, boxes);
}

TEST_F(ClassifyTest, RefusesMoreTablesThanThereIsRoomFor) {
  std::string body, last = "%t";
  for (int k = 0; k < 17; ++k)
    body += "%e" + std::to_string(k) + " = tensor.extract %c" + std::to_string(k) + "[%j] : tensor<4xi1>\n";
  std::string constants, keep = "%e0";
  for (int k = 0; k < 17; ++k)
    constants += "%c" + std::to_string(k) + " = arith.constant dense<" +
                 (k & 1 ? "true" : "[true, false, true, false]") + "> : tensor<4xi1>\n";
  for (int k = 1; k < 17; ++k) {
    body += "%a" + std::to_string(k) + " = arith.andi " + keep + ", %e" + std::to_string(k) + " : i1\n";
    keep = "%a" + std::to_string(k);
  }
  std::string text = "!t = tensor<?x?x?x64xf32>\nfunc.func @f(%q: !t, %k: !t, %v: !t) -> !t {\n" + constants +
                     "%o = attn.attention %q, %k, %v mask {\n^bb0(%b: index, %h: index, %i: index, %j: index):\n" +
                     body + "attn.yield " + keep + " : i1 } : !t, !t, !t -> !t\nreturn %o : !t }";
  auto parsed = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(parsed);
  AttentionOp op;
  parsed->walk([&](AttentionOp found) { op = found; });
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  EXPECT_TRUE(failed(emitClassify(builder, op, "f", Captures::of(op))));
  EXPECT_NE(message.find("in 17 ways in its mask, but the runtime keeps at most 16 tables"), std::string::npos)
      << message;
}
