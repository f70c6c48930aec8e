// A small compiler of its own: builds a module in memory, an attention op whose mask is made by C++ calls, and prints
// it.
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Register.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
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
  OperationState state(loc, attn::AttentionOp::getOperationName(), body->getArguments(), tensor);
  state.addRegion();
  state.addRegion();
  auto attention = cast<attn::AttentionOp>(builder.create(state));
  buildMask(builder, attention);
  func::ReturnOp::create(builder, loc, attention.getOutput());
}

int main() {
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
  return 0;
}
