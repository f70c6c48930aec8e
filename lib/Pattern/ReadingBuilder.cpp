//===- ReadingBuilder.cpp - Numbers of an interval reading ----------------===//

#include "ReadingBuilder.h"
#include "mlir/IR/Builders.h"
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

Interval ValueBuilder::readPoint(Operation *op, ArrayRef<Interval> operands, Bounds whole) {
  Interval unknown = {constant(whole.lo), constant(whole.hi)};
  SmallVector<Attribute> attributes;
  for (auto [operand, interval] : llvm::zip_equal(op->getOperands(), operands)) {
    if (!operand.getType().isIntOrIndex() || interval.lo.constant != interval.hi.constant)
      return unknown;
    attributes.push_back(getAttribute(operand.getType(), interval.lo.constant));
  }
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
