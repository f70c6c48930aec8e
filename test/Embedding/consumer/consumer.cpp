// A small compiler of its own: consumer OUT.o builds a module in memory, an attention op whose mask is made by C++
// calls, prints it, and compiles it to an object file.
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Register.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// causal and window(left = 127)
static void buildMask(OpBuilder &builder, attn::AttentionOp attention) {
  OpBuilder::InsertionGuard guard(builder);
  Block *mask = attention.addMaskBlock();
  builder.setInsertionPointToEnd(mask);
  Location loc = attention.getLoc();
  Value i = mask->getArgument(2), j = mask->getArgument(3);
  Value past = attn::CausalOp::create(builder, loc, i, j);
  Value near = attn::WindowOp::create(builder, loc, i, j, builder.getI64IntegerAttr(127), {});
  attn::YieldOp::create(builder, loc, arith::AndIOp::create(builder, loc, past, near));
}

static void buildFunction(OpBuilder &builder, ModuleOp module) {
  Location loc = builder.getUnknownLoc();
  auto tensor = RankedTensorType::get({1, 4, ShapedType::kDynamic, 64}, builder.getF32Type());
  builder.setInsertionPointToEnd(module.getBody());
  auto func = func::FuncOp::create(builder, loc, "f", builder.getFunctionType({tensor, tensor, tensor}, {tensor}));
  Block *body = func.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  ValueRange qkv = body->getArguments();
  auto attention = attn::AttentionOp::create(builder, loc, qkv[0], qkv[1], qkv[2], tensor);
  buildMask(builder, attention);
  func::ReturnOp::create(builder, loc, attention.getOutput());
}

static int fail(llvm::StringRef message) {
  llvm::errs() << "consumer: " << message << "\n";
  return 1;
}

static int writeObject(ModuleOp module, llvm::StringRef path) {
  std::string error;
  FailureOr<attn::TargetModel> target = attn::TargetModel::get("native", "", error);
  if (failed(target))
    return fail(error);
  attn::CompileOptions options;
  options.target = *target;
  options.threads = false;
  auto object = attn::compileToObject(module, options);
  if (failed(object))
    return fail("the module does not compile");
  std::error_code code;
  llvm::raw_fd_ostream file(path, code);
  if (code)
    return fail(code.message());
  file << (*object)->getBuffer();
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 2)
    return fail("usage: consumer OUT.o");
  DialectRegistry registry;
  registry.insert<func::FuncDialect, arith::ArithDialect>();
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();

  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder builder(&context);
  buildFunction(builder, *module);
  if (failed(verify(*module)))
    return 1;
  module->print(llvm::outs());
  return writeObject(*module, argv[1]);
}
