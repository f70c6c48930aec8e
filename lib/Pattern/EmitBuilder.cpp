//===- EmitBuilder.cpp - An interval reading as IR ------------------------===//

#include "EmitBuilder.h"
#include "attn/Pattern/GuardInteger.h"
#include "attn/Runtime/Abi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace attn;
using Predicate = arith::CmpIPredicate;

EmitBuilder::EmitBuilder(OpBuilder &builder, Block &entry, const MaskProgram &program, const Captures &captures)
    : builder(builder), loc(entry.getParentOp()->getLoc()), entry(entry), program(program), captures(captures) {
  if (captures.tables.empty())
    return;
  lower = allocate(ATTN_MAX_RANK);
  upper = allocate(ATTN_MAX_RANK);
  found = allocate(2);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Value EmitBuilder::toValue(Num number) {
  if (number.value)
    return number.value;
  Value &value = constants[number.constant];
  if (!value)
    value = arith::ConstantIntOp::create(builder, loc, number.constant, 64);
  return value;
}

Value EmitBuilder::toTruth(Num number) {
  if (Value truth = truths.lookup(number.value))
    return truth;
  if (!number.value)
    return arith::ConstantIntOp::create(builder, loc, number.constant != 0, 1);
  return arith::CmpIOp::create(builder, loc, Predicate::ne, number.value, toValue(constant(0)));
}

Num EmitBuilder::fromTruth(Value truth) {
  Value number = arith::ExtUIOp::create(builder, loc, builder.getI64Type(), truth);
  truths[number] = truth;
  return fromValue(number);
}

Num EmitBuilder::add(Num a, Num b) {
  if (areConstant(a, b))
    return folder.add(a, b);
  if (!a.value && a.constant == 0)
    return b;
  if (!b.value && b.constant == 0)
    return a;
  return fromValue(arith::AddIOp::create(builder, loc, toValue(a), toValue(b)));
}

Num EmitBuilder::sub(Num a, Num b) {
  if (areConstant(a, b))
    return folder.sub(a, b);
  if (!b.value && b.constant == 0)
    return a;
  if (b.value && truths.contains(b.value) && !a.value && a.constant == 1)
    return fromTruth(arith::XOrIOp::create(builder, loc, toTruth(b), toTruth(constant(1))));
  return fromValue(arith::SubIOp::create(builder, loc, toValue(a), toValue(b)));
}

Num EmitBuilder::mul(Num a, Num b) {
  if (areConstant(a, b))
    return folder.mul(a, b);
  if (!a.value && a.constant == 1)
    return b;
  if (!b.value && b.constant == 1)
    return a;
  return fromValue(arith::MulIOp::create(builder, loc, toValue(a), toValue(b)));
}

Num EmitBuilder::floorDiv(Num a, Num b) {
  if (areConstant(a, b))
    return folder.floorDiv(a, b);
  if (!b.value && llvm::isPowerOf2_64(b.constant))
    return fromValue(arith::ShRSIOp::create(builder, loc, toValue(a), toValue(constant(llvm::Log2_64(b.constant)))));
  Value x = toValue(a), y = toValue(b);
  Value quotient = arith::DivSIOp::create(builder, loc, x, y), rest = arith::RemSIOp::create(builder, loc, x, y);
  Num below = cmp(Predicate::slt, fromValue(rest), constant(0));
  return sub(fromValue(quotient), below); // rounded to zero, that is upwards, where the rest is negative
}

Num EmitBuilder::mod(Num a, Num b) {
  if (areConstant(a, b))
    return folder.mod(a, b);
  if (!b.value && llvm::isPowerOf2_64(b.constant))
    return fromValue(arith::AndIOp::create(builder, loc, toValue(a), toValue(constant(b.constant - 1))));
  Num rest = fromValue(arith::RemSIOp::create(builder, loc, toValue(a), toValue(b)));
  return select(cmp(Predicate::slt, rest, constant(0)), add(rest, b), rest);
}

Num EmitBuilder::min(Num a, Num b) {
  if (areConstant(a, b))
    return folder.min(a, b);
  if (a.value == b.value)
    return a;
  if (!a.value)
    std::swap(a, b);
  if (truths.contains(a.value) && !b.value && (b.constant == 0 || b.constant == 1))
    return b.constant ? a : b;
  if (truths.contains(a.value) && truths.contains(b.value))
    return fromTruth(arith::AndIOp::create(builder, loc, toTruth(a), toTruth(b)));
  return fromValue(arith::MinSIOp::create(builder, loc, toValue(a), toValue(b)));
}

Num EmitBuilder::max(Num a, Num b) {
  if (areConstant(a, b))
    return folder.max(a, b);
  if (a.value == b.value)
    return a;
  if (!a.value)
    std::swap(a, b);
  if (truths.contains(a.value) && !b.value && (b.constant == 0 || b.constant == 1))
    return b.constant ? b : a;
  if (truths.contains(a.value) && truths.contains(b.value))
    return fromTruth(arith::OrIOp::create(builder, loc, toTruth(a), toTruth(b)));
  return fromValue(arith::MaxSIOp::create(builder, loc, toValue(a), toValue(b)));
}

Num EmitBuilder::cmp(Predicate predicate, Num a, Num b) {
  if (areConstant(a, b))
    return folder.cmp(predicate, a, b);
  return fromTruth(arith::CmpIOp::create(builder, loc, predicate, toValue(a), toValue(b)));
}

Num EmitBuilder::select(Num condition, Num a, Num b) {
  if (!condition.value)
    return condition.constant != 0 ? a : b;
  if (a.value == b.value && a.constant == b.constant)
    return a;
  auto isTruth = [&](Num number) {
    return number.value ? truths.contains(number.value) : number.constant == 0 || number.constant == 1;
  };
  if (isTruth(a) && isTruth(b))
    return fromTruth(arith::SelectOp::create(builder, loc, toTruth(condition), toTruth(a), toTruth(b)));
  return fromValue(arith::SelectOp::create(builder, loc, toTruth(condition), toValue(a), toValue(b)));
}

//===----------------------------------------------------------------------===//
// Captured tensors
//===----------------------------------------------------------------------===//

unsigned EmitBuilder::getCapture(Operation *op) const {
  return *captures.findTensor(program.getMask().getTensors()[MaskProgram::getTensor(op)]);
}

Value EmitBuilder::allocate(int64_t numbers) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  return LLVM::AllocaOp::create(builder, loc, pointer, builder.getI64Type(), toValue(constant(numbers)));
}

Value EmitBuilder::elementPointer(Value base, int64_t index) {
  return LLVM::GEPOp::create(builder, loc, base.getType(), builder.getI64Type(), base,
                             ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
}

FailureOr<Interval> EmitBuilder::range(Operation *op, ArrayRef<Interval> indices) {
  if (auto dim = dyn_cast<tensor::DimOp>(op)) {
    std::optional<int64_t> index = dim.getConstantIndex();
    if (!index)
      return failure();
    return readExtent(op, *index);
  }
  bool reads = isa<tensor::ExtractOp, ContainsOp>(op);
  std::optional<unsigned> table = reads ? captures.findTable(op, getCapture(op)) : std::nullopt;
  if (!table)
    return failure();
  for (auto [dim, index] : llvm::enumerate(indices)) {
    LLVM::StoreOp::create(builder, loc, toValue(index.lo), elementPointer(lower, dim));
    LLVM::StoreOp::create(builder, loc, toValue(index.hi), elementPointer(upper, dim));
  }
  func::CallOp::create(builder, loc, "attn_range", TypeRange(),
                       ValueRange{entry.getArgument(1), toValue(constant(*table)), lower, upper, found});
  auto load = [&](int64_t end) {
    return fromValue(LLVM::LoadOp::create(builder, loc, builder.getI64Type(), elementPointer(found, end)));
  };
  return Interval{load(0), load(1)};
}

/// From the descriptor of the tensor: base, data and offset, then the extents.
Interval EmitBuilder::readExtent(Operation *op, int64_t dim) {
  Value operands = entry.getArgument(0);
  Value slot = elementPointer(operands, getCapture(op));
  Value descriptor = LLVM::LoadOp::create(builder, loc, operands.getType(), slot);
  constexpr int64_t first = offsetof(AttnMemRef, extents) / sizeof(int64_t);
  Value extent = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), elementPointer(descriptor, first + dim));
  return point(fromValue(extent));
}

//===----------------------------------------------------------------------===//
// Single values
//===----------------------------------------------------------------------===//

Interval EmitBuilder::readPoint(Operation *op, ArrayRef<Interval> operands, Bounds whole) {
  Interval unknown = {constant(whole.lo), constant(whole.hi)};
  if (!isPure(op) || op->getNumRegions() != 0)
    return unknown;
  Num isPoint = constant(1);
  IRMapping mapping;
  for (auto [operand, interval] : llvm::zip_equal(op->getOperands(), operands)) {
    Type type = operand.getType();
    if (!isReadable(type))
      return unknown;
    isPoint = min(isPoint, cmp(Predicate::eq, interval.lo, interval.hi));
    Value value = toValue(interval.lo);
    if (type.isIndex())
      value = arith::IndexCastOp::create(builder, loc, type, value);
    else if (type.getIntOrFloatBitWidth() < 64)
      value = arith::TruncIOp::create(builder, loc, type, value);
    mapping.map(operand, value);
  }
  Value result = guardInteger(builder, builder.clone(*op, mapping));
  Type type = result.getType();
  if (type.isInteger(1))
    result = toValue(fromTruth(result));
  else if (type.isIndex())
    result = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), result);
  else if (type.getIntOrFloatBitWidth() < 64)
    result = arith::ExtSIOp::create(builder, loc, builder.getI64Type(), result);
  Num exact = fromValue(result);
  return {select(isPoint, exact, unknown.lo), select(isPoint, exact, unknown.hi)};
}
