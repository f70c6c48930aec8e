//===- NamesTest.cpp - Arguments and results keep the names of the spec -----===//
#include "attn/Support/Names.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

using Strings = std::vector<std::string>;

struct Names {
  Strings arguments, results;
};

/// The names of the only function of `text`.
Names read(llvm::StringRef text, bool reparse = false) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  context.allowUnregisteredDialects();
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text), {});
  OwningOpRef<ModuleOp> module = attn::parseSpec(source, &context);
  if (!module)
    return {};
  if (!reparse) {
    auto func = *module->getOps<func::FuncOp>().begin();
    auto arguments = attn::getArgumentNames(func), results = attn::getResultNames(func);
    return {Strings(arguments.begin(), arguments.end()), Strings(results.begin(), results.end())};
  }
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module->print(stream);
  return read(printed);
}

TEST(Names, OfOneAttention) {
  Names names = read(R"(func.func @f(%q: f32, %k: f32) -> f32 {
    %o = "attn.attention"(%q, %k) : (f32, f32) -> f32
    return %o : f32
  })");
  EXPECT_EQ(names.arguments, (Strings{"q", "k"}));
  EXPECT_EQ(names.results, (Strings{"out"}));
}

TEST(Names, LogSumExpAndSeveralResults) {
  Names names = read(R"(func.func @f(%q: f32) -> (f32, f32, f32) {
    %o:2 = "attn.attention"(%q) : (f32) -> (f32, f32)
    %p = "attn.attention"(%q) : (f32) -> f32
    return %o#0, %o#1, %p : f32, f32, f32
  })");
  EXPECT_EQ(names.results, (Strings{"out0", "lse", "out1"}));
}

TEST(Names, AreIdentifiersAndDiffer) {
  Names names = read(R"(func.func @f(%0: f32, %double: f32, %a.b: f32, %a_b: f32, %out: f32) -> f32 {
    return %0 : f32
  })");
  EXPECT_EQ(names.arguments, (Strings{"arg0", "double_", "a_b", "a_b_1", "out"}));
  EXPECT_EQ(names.results, (Strings{"out_1"}));
}

TEST(Names, SurvivePrintingAndParsing) {
  Names names = read("func.func @f(%query: f32, %doc: f32) -> f32 { return %query : f32 }", /*reparse=*/true);
  EXPECT_EQ(names.arguments, (Strings{"query", "doc"}));
}

TEST(Names, GivenAttributesWin) {
  Names names = read(R"(func.func @f(%a: f32 {attn.name = "q"}) -> (f32 {attn.name = "context"}) { return %a : f32 })");
  EXPECT_EQ(names.arguments, (Strings{"q"}));
  EXPECT_EQ(names.results, (Strings{"context"}));
}

TEST(Names, OfADeclaration) {
  Names names = read("func.func private @f(f32, f32 {attn.name = \"k\"}) -> f32");
  EXPECT_EQ(names.arguments, (Strings{"arg0", "k"}));
  EXPECT_EQ(names.results, (Strings{"out"}));
}

TEST(Names, BrokenSpecGivesNoModule) { EXPECT_TRUE(read("func.func @f(%q: nonsense)").arguments.empty()); }

} // namespace
