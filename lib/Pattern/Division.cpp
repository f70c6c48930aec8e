//===- Division.cpp - Integer division that is always defined -------------===//

#include "attn/Pattern/Division.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

static bool isSignedDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::CeilDivSIOp, arith::FloorDivSIOp, arith::RemSIOp, index::DivSOp, index::CeilDivSOp,
             index::FloorDivSOp, index::RemSOp>(op);
}

static bool isUnsignedDivision(Operation *op) {
  return isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, index::DivUOp, index::CeilDivUOp, index::RemUOp>(op);
}

Value attn::guardDivision(OpBuilder &builder, Operation *op) {
  Value result = op->getResult(0);
  APInt known;
  if (!isSignedDivision(op) && !isUnsignedDivision(op))
    return result;
  if (matchPattern(op->getOperand(1), m_ConstantInt(&known)) && !known.isZero() && !known.isAllOnes())
    return result;
  Location loc = op->getLoc();
  Type type = result.getType();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  auto constant = [&](const APInt &v) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, v));
  };
  auto equal = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, x, y);
  };
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Value zero = constant(APInt(bits, 0)), bad = equal(op->getOperand(1), zero);
  if (isSignedDivision(op)) {
    Value least = equal(op->getOperand(0), constant(APInt::getSignedMinValue(bits)));
    Value minusOne = equal(op->getOperand(1), constant(APInt::getAllOnes(bits)));
    bad = arith::OrIOp::create(builder, loc, bad, arith::AndIOp::create(builder, loc, least, minusOne));
  }
  op->setOperand(1, arith::SelectOp::create(builder, loc, bad, constant(APInt(bits, 1)), op->getOperand(1)));
  builder.setInsertionPointAfter(op);
  auto guarded = arith::SelectOp::create(builder, loc, bad, zero, result);
  result.replaceAllUsesExcept(guarded, guarded);
  return guarded;
}
