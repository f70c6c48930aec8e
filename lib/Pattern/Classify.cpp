//===- Classify.cpp - The interval reading as a function ------------------===//

#include "attn/Pattern/Classify.h"
#include "EmitBuilder.h"
#include "attn/Runtime/Abi.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace attn;

/// What AttnKernel has room for.
static LogicalResult checkRoom(AttentionOp op, const Captures &captures) {
  if (captures.tensors.size() > ATTN_MAX_OPERANDS)
    return op.emitOpError() << "captures " << captures.tensors.size() << " tensors, but the runtime passes at most "
                            << static_cast<int>(ATTN_MAX_OPERANDS) << "; join some of them";
  if (captures.tables.size() > ATTN_MAX_TABLES)
    return op.emitOpError() << "looks up captured tensors in " << captures.tables.size()
                            << " ways in its mask, but the runtime keeps at most " << static_cast<int>(ATTN_MAX_TABLES)
                            << " tables; join some of them";
  for (Value tensor : captures.tensors)
    if (cast<ShapedType>(tensor.getType()).getRank() > ATTN_MAX_RANK)
      return op.emitOpError() << "captures a tensor of rank " << cast<ShapedType>(tensor.getType()).getRank()
                              << ", but the runtime passes at most " << static_cast<int>(ATTN_MAX_RANK);
  return success();
}

/// Declares what generated code asks the runtime.
static void declareRange(OpBuilder &builder, Location loc) {
  Operation *table = SymbolTable::getNearestSymbolTable(builder.getInsertionBlock()->getParentOp());
  if (SymbolTable::lookupSymbolIn(table, "attn_range"))
    return;
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto type = builder.getFunctionType({pointer, builder.getI64Type(), pointer, pointer, pointer}, {});
  auto function = func::FuncOp::create(builder, loc, "attn_range", type);
  function.setPrivate();
}

FailureOr<func::FuncOp> attn::emitClassify(OpBuilder &builder, AttentionOp op, StringRef name, const Captures &captures,
                                           std::optional<Reindexing> reindexing) {
  if (failed(checkRoom(op, captures)))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  if (!captures.tables.empty())
    declareRange(builder, op.getLoc());
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  SmallVector<Type> inputs(10, builder.getI64Type());
  inputs[0] = inputs[1] = pointer;
  auto function =
      func::FuncOp::create(builder, op.getLoc(), name, builder.getFunctionType(inputs, builder.getI32Type()));
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  MaskProgram program(op, reindexing.value_or(getScheduledReindexing(op)));
  EmitBuilder emitter(builder, *entry, program, captures);
  auto bound = [&](unsigned argument) { return emitter.fromValue(entry->getArgument(argument)); };
  Interval answer = program.read(emitter, {emitter.point(bound(4)), emitter.point(bound(5)),
                                           Interval{bound(6), bound(7)}, Interval{bound(8), bound(9)}});
  // All implies any: their sum is 0 for EMPTY, 1 for PARTIAL and 2 for FULL.
  static_assert(ATTN_EMPTY == 0 && ATTN_PARTIAL == 1 && ATTN_FULL == 2);
  Num kind = emitter.select(answer.hi, emitter.add(answer.lo, emitter.constant(1)), emitter.constant(0));
  Value result = arith::TruncIOp::create(builder, op.getLoc(), builder.getI32Type(), emitter.toValue(kind));
  func::ReturnOp::create(builder, op.getLoc(), result);
  return function;
}
