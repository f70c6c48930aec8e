//===- IntervalModels.cpp - How basic ops are read over intervals ---------===//

#include "attn/Pattern/IntervalModels.h"
#include "IntervalRules.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {
using Operands = ArrayRef<Interval>;
using Rule = FailureOr<Interval> (*)(Operation *, IntervalBuilder &, Operands);

template <typename Op, Rule rule>
struct Model : MaskOpInterface::ExternalModel<Model<Op, rule>, Op> {
  FailureOr<Interval> readInterval(Operation *op, IntervalBuilder &builder, Operands operands) const {
    return rule(op, builder, operands);
  }
};

template <typename Op, Rule rule>
void attach(MLIRContext *context) {
  Op::template attachInterface<Model<Op, rule>>(*context);
}

bool isBool(Value value) { return value.getType().isInteger(1); }
unsigned getWidth(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }
bool isScalar(Operation *op) { return op->getResult(0).getType().isIntOrIndex(); }
} // namespace

/// An op on integers with the same rule for every width; i1 has its own.
template <Interval (*rule)(IntervalBuilder &, Interval, Interval)>
static FailureOr<Interval> readBinary(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op) || isBool(op->getResult(0)))
    return failure();
  return rule(b, operands[0], operands[1]);
}

/// One that divides; divisors below 1 give everything.
template <Interval (*rule)(IntervalBuilder &, Interval, Interval), bool isUnsigned>
static FailureOr<Interval> readDivision(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op) || isBool(op->getResult(0)))
    return failure();
  Num one = b.constant(1), positive = b.cmp(arith::CmpIPredicate::sge, operands[1].lo, one);
  if (isUnsigned)
    positive = b.min(positive, b.cmp(arith::CmpIPredicate::sge, operands[0].lo, b.constant(0)));
  Interval divisor = {b.max(operands[1].lo, one), b.max(operands[1].hi, one)};
  return rules::guard(b, positive, rule(b, operands[0], divisor), getTypeRange(op->getResult(0).getType()));
}

/// A maximum or minimum in unsigned order, which is the signed one where nothing is negative.
template <Interval (*rule)(IntervalBuilder &, Interval, Interval)>
static FailureOr<Interval> readUnsigned(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op) || isBool(op->getResult(0)))
    return failure();
  Num natural = b.cmp(arith::CmpIPredicate::sge, b.min(operands[0].lo, operands[1].lo), b.constant(0));
  return rules::guard(b, natural, rule(b, operands[0], operands[1]), getTypeRange(op->getResult(0).getType()));
}

/// An op on truth values.
template <Interval (*rule)(IntervalBuilder &, Interval, Interval)>
static FailureOr<Interval> readLogic(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op) || !isBool(op->getResult(0)))
    return failure();
  return rule(b, operands[0], operands[1]);
}

static FailureOr<Interval> readConstant(Operation *op, IntervalBuilder &b, Operands) {
  APInt value;
  if (!isScalar(op) || getWidth(op->getResult(0).getType()) > 64 || !matchPattern(op, m_ConstantInt(&value)))
    return failure();
  return b.point(isBool(op->getResult(0)) ? value.getZExtValue() : value.getSExtValue());
}

static FailureOr<Interval> readCompare(Operation *op, IntervalBuilder &b, Operands operands) {
  arith::CmpIPredicate predicate;
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    predicate = compare.getPredicate();
  else
    predicate = *arith::symbolizeCmpIPredicate(index::stringifyIndexCmpPredicate(cast<index::CmpOp>(op).getPred()));
  if (!op->getOperand(0).getType().isIntOrIndex())
    return failure();
  Interval x = operands[0], y = operands[1];
  if (isBool(op->getOperand(0))) { // as a signed number, true is -1
    x = rules::scale(b, x, -1);
    y = rules::scale(b, y, -1);
  }
  return rules::compare(b, predicate, x, y);
}

static FailureOr<Interval> readSelect(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op) || !isBool(op->getOperand(0)))
    return failure();
  return rules::select(b, operands[0], operands[1], operands[2]);
}

/// Sign extension, and truncation where the result is narrower. As a signed number, true is -1.
static FailureOr<Interval> readSignedCast(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op))
    return failure();
  Interval x = isBool(op->getOperand(0)) ? rules::scale(b, operands[0], -1) : operands[0];
  return rules::wrap(b, x, getWidth(op->getResult(0).getType()));
}

/// Zero extension, and truncation where the result is narrower.
static FailureOr<Interval> readUnsignedCast(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op))
    return failure();
  unsigned from = getWidth(op->getOperand(0).getType()), to = getWidth(op->getResult(0).getType());
  if (from == 1)
    return operands[0];
  return to > from ? rules::zeroExtend(b, operands[0], from) : rules::wrap(b, operands[0], to);
}

/// What a captured tensor holds.
static FailureOr<Interval> readTensor(Operation *op, IntervalBuilder &b, Operands operands) {
  if (!isScalar(op))
    return failure();
  return b.range(op, operands.drop_front());
}

static void attachToArith(MLIRContext *context, arith::ArithDialect *) {
  attach<arith::ConstantOp, readConstant>(context);
  attach<arith::AddIOp, readBinary<rules::add>>(context);
  attach<arith::SubIOp, readBinary<rules::sub>>(context);
  attach<arith::MulIOp, readBinary<rules::mul>>(context);
  attach<arith::FloorDivSIOp, readDivision<rules::floorDiv, false>>(context);
  attach<arith::DivSIOp, readDivision<rules::truncDiv, false>>(context);
  attach<arith::DivUIOp, readDivision<rules::floorDiv, true>>(context);
  attach<arith::RemSIOp, readDivision<rules::rem, false>>(context);
  attach<arith::RemUIOp, readDivision<rules::mod, true>>(context);
  attach<arith::MinSIOp, readBinary<rules::min>>(context);
  attach<arith::MaxSIOp, readBinary<rules::max>>(context);
  attach<arith::MinUIOp, readUnsigned<rules::min>>(context);
  attach<arith::MaxUIOp, readUnsigned<rules::max>>(context);
  attach<arith::AndIOp, readLogic<rules::both>>(context);
  attach<arith::OrIOp, readLogic<rules::either>>(context);
  attach<arith::XOrIOp, readLogic<rules::exclusive>>(context);
  attach<arith::CmpIOp, readCompare>(context);
  attach<arith::SelectOp, readSelect>(context);
  attach<arith::ExtSIOp, readSignedCast>(context);
  attach<arith::TruncIOp, readSignedCast>(context);
  attach<arith::IndexCastOp, readSignedCast>(context);
  attach<arith::ExtUIOp, readUnsignedCast>(context);
  attach<arith::IndexCastUIOp, readUnsignedCast>(context);
}

static void attachToIndex(MLIRContext *context, index::IndexDialect *) {
  attach<index::ConstantOp, readConstant>(context);
  attach<index::BoolConstantOp, readConstant>(context);
  attach<index::AddOp, readBinary<rules::add>>(context);
  attach<index::SubOp, readBinary<rules::sub>>(context);
  attach<index::MulOp, readBinary<rules::mul>>(context);
  attach<index::FloorDivSOp, readDivision<rules::floorDiv, false>>(context);
  attach<index::DivSOp, readDivision<rules::truncDiv, false>>(context);
  attach<index::DivUOp, readDivision<rules::floorDiv, true>>(context);
  attach<index::RemSOp, readDivision<rules::rem, false>>(context);
  attach<index::RemUOp, readDivision<rules::mod, true>>(context);
  attach<index::MinSOp, readBinary<rules::min>>(context);
  attach<index::MaxSOp, readBinary<rules::max>>(context);
  attach<index::MinUOp, readUnsigned<rules::min>>(context);
  attach<index::MaxUOp, readUnsigned<rules::max>>(context);
  attach<index::CmpOp, readCompare>(context);
  attach<index::CastSOp, readSignedCast>(context);
  attach<index::CastUOp, readUnsignedCast>(context);
}

static void attachToTensor(MLIRContext *context, tensor::TensorDialect *) {
  attach<tensor::ExtractOp, readTensor>(context);
  attach<tensor::DimOp, readTensor>(context);
}

void attn::registerIntervalModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *dialect) { attachToArith(context, dialect); });
  registry.addExtension(+[](MLIRContext *context, index::IndexDialect *dialect) { attachToIndex(context, dialect); });
  registry.addExtension(
      +[](MLIRContext *context, tensor::TensorDialect *dialect) { attachToTensor(context, dialect); });
}
