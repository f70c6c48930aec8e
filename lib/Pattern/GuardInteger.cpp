//===- GuardInteger.cpp - Integer ops that are always defined ----------------===//

#include "attn/Pattern/GuardInteger.h"
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

static bool isShift(Operation *op) {
  return isa<arith::ShLIOp, arith::ShRSIOp, arith::ShRUIOp, index::ShlOp, index::ShrSOp, index::ShrUOp>(op);
}

/// Has `op` a result whatever its first operand is?
static bool isHarmless(Operation *op, unsigned bits) {
  APInt known;
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&known)))
    return false;
  return isShift(op) ? known.ult(bits) : !known.isZero() && !known.isAllOnes();
}

Value attn::guardInteger(OpBuilder &builder, Operation *op) {
  Value result = op->getResult(0);
  if (!isSignedDivision(op) && !isUnsignedDivision(op) && !isShift(op))
    return result;
  Location loc = op->getLoc();
  Type type = result.getType();
  unsigned bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  if (isHarmless(op, bits))
    return result;
  auto constant = [&](const APInt &v) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, v));
  };
  auto equal = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, x, y);
  };
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Value zero = constant(APInt(bits, 0)), bad;
  if (isShift(op)) // negative amounts are large ones
    bad = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ugt, op->getOperand(1),
                                constant(APInt(bits, bits - 1)));
  else
    bad = equal(op->getOperand(1), zero);
  if (isSignedDivision(op)) {
    Value least = equal(op->getOperand(0), constant(APInt::getSignedMinValue(bits)));
    Value minusOne = equal(op->getOperand(1), constant(APInt::getAllOnes(bits)));
    bad = arith::OrIOp::create(builder, loc, bad, arith::AndIOp::create(builder, loc, least, minusOne));
  }
  Value harmless = constant(APInt(bits, isShift(op) ? 0 : 1));
  op->setOperand(1, arith::SelectOp::create(builder, loc, bad, harmless, op->getOperand(1)));
  builder.setInsertionPointAfter(op);
  auto guarded = arith::SelectOp::create(builder, loc, bad, zero, result);
  result.replaceAllUsesExcept(guarded, guarded);
  return guarded;
}
