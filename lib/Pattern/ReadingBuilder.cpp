//===- ReadingBuilder.cpp - Numbers of an interval reading ----------------===//

#include "ReadingBuilder.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/IR/OpDefinition.h"

using namespace mlir;
using namespace attn;

Num ValueBuilder::cmp(arith::CmpIPredicate predicate, Num a, Num b) {
  int64_t x = a.constant, y = b.constant;
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return constant(x == y);
  case arith::CmpIPredicate::ne:
    return constant(x != y);
  case arith::CmpIPredicate::slt:
    return constant(x < y);
  case arith::CmpIPredicate::sle:
    return constant(x <= y);
  case arith::CmpIPredicate::sgt:
    return constant(x > y);
  case arith::CmpIPredicate::sge:
    return constant(x >= y);
  case arith::CmpIPredicate::ult:
    return constant(uint64_t(x) < uint64_t(y));
  case arith::CmpIPredicate::ule:
    return constant(uint64_t(x) <= uint64_t(y));
  case arith::CmpIPredicate::ugt:
    return constant(uint64_t(x) > uint64_t(y));
  case arith::CmpIPredicate::uge:
    return constant(uint64_t(x) >= uint64_t(y));
  }
  llvm_unreachable("unknown comparison");
}

/// The value as an attribute of an integer or index type.
static Attribute getAttribute(Type type, int64_t value) {
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return IntegerAttr::get(type, APInt(64, value, true).sextOrTrunc(width));
}

/// An op of the index dialect on 64 bits. Its own folders give up where 32 bits would answer differently.
static std::optional<int64_t> computeIndexOp(Operation *op, int64_t a, int64_t b) {
  APInt x(64, a, true), y(64, b, true);
  if (isa<index::AddOp>(op))
    return (x + y).getSExtValue();
  if (isa<index::SubOp>(op))
    return (x - y).getSExtValue();
  if (isa<index::MulOp>(op))
    return (x * y).getSExtValue();
  if (isa<index::MaxUOp>(op))
    return llvm::APIntOps::umax(x, y).getSExtValue();
  if (isa<index::MinUOp>(op))
    return llvm::APIntOps::umin(x, y).getSExtValue();
  if (isa<index::DivUOp>(op) && b != 0)
    return x.udiv(y).getSExtValue();
  if (isa<index::RemUOp>(op) && b != 0)
    return x.urem(y).getSExtValue();
  if (isa<index::AndOp>(op))
    return a & b;
  if (isa<index::OrOp>(op))
    return a | b;
  if (isa<index::XOrOp>(op))
    return a ^ b;
  return std::nullopt;
}

Interval ValueBuilder::readPoint(Operation *op, ArrayRef<Interval> operands, Bounds whole) {
  Interval unknown = {constant(whole.lo), constant(whole.hi)};
  SmallVector<Attribute> attributes;
  for (auto [operand, interval] : llvm::zip_equal(op->getOperands(), operands)) {
    if (!isReadable(operand.getType()) || interval.lo.constant != interval.hi.constant)
      return unknown;
    attributes.push_back(getAttribute(operand.getType(), interval.lo.constant));
  }
  if (operands.size() == 2)
    if (std::optional<int64_t> result = computeIndexOp(op, operands[0].lo.constant, operands[1].lo.constant))
      return point(*result);
  SmallVector<OpFoldResult> folded;
  if (failed(op->fold(attributes, folded)) || folded.size() != 1)
    return unknown;
  auto result = dyn_cast_or_null<IntegerAttr>(dyn_cast<Attribute>(folded[0]));
  if (auto same = dyn_cast<Value>(folded[0])) // a fold to an operand
    for (auto [operand, attribute] : llvm::zip_equal(op->getOperands(), attributes))
      if (operand == same)
        result = cast<IntegerAttr>(attribute);
  if (!result)
    return unknown;
  bool isBool = result.getType().isInteger(1);
  return point(isBool ? result.getValue().getZExtValue() : result.getValue().getSExtValue());
}
