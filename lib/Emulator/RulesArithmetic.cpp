//===- RulesArithmetic.cpp - Element by element -----------------------------===//
//
// Most ops are built again, as they are, on vectors of 32. 16-bit floats are computed in f32 and rounded: for one
// addition, multiplication, division or square root that is the correctly rounded result.
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attn::emulator {
namespace {

/// Component `index` of each operand, all lanes or all scalar.
SmallVector<Value> operandsAt(WarpBuilder &b, Operation *op, size_t index) {
  SmallVector<Value> components;
  for (Value operand : op->getOperands()) {
    ArrayRef<Value> all = b.get(operand);
    components.push_back(all[all.size() == 1 ? 0 : index]);
  }
  b.unify(components);
  return components;
}

/// The same op on other operands.
Value buildLike(WarpBuilder &b, Operation *op, ValueRange operands, Type type) {
  OperationState state(b.loc, op->getName().getStringRef());
  state.addOperands(operands);
  state.addTypes(type);
  state.propertiesAttr = op->getPropertiesAsAttribute();
  return b.create(state)->getResult(0);
}

Type resultElement(Operation *op) { return getElementTypeOrSelf(op->getResult(0).getType()); }

Value buildElement(WarpBuilder &b, Operation *op, SmallVector<Value> operands) {
  for (auto [component, operand] : llvm::zip_equal(operands, op->getOperands()))
    if (Type type = getElementTypeOrSelf(operand.getType()); isHalf(type))
      component = b.expandHalf(component, type);
  Type type = resultElement(op);
  bool lanes = llvm::any_of(operands, WarpBuilder::isVarying);
  Type computed = isHalf(type) ? b.getF32Type() : componentTypes(type)->front();
  Value result = buildLike(b, op, operands, b.likeLanes(computed, lanes));
  return isHalf(type) ? b.narrowToHalf(result, type) : result;
}

using Element = llvm::function_ref<Value(SmallVector<Value> operands)>;

LogicalResult forElements(WarpBuilder &b, Operation *op, Element element) {
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()), SmallVector<Type>(op->getResultTypes())))
    if (failed(componentTypes(type)))
      return op->emitError("the emulator does not know values of type ") << type;
  size_t count = componentTypes(op->getResult(0).getType())->size();
  Components results;
  for (size_t i = 0; i < count; ++i)
    results.push_back(element(operandsAt(b, op, i)));
  b.set(op->getResult(0), std::move(results));
  return success();
}

LogicalResult elementwise(WarpBuilder &b, Operation *op) {
  return forElements(b, op, [&](SmallVector<Value> operands) { return buildElement(b, op, std::move(operands)); });
}

/// Values move without a change of their bits.
LogicalResult rewriteSelect(WarpBuilder &b, Operation *op) {
  return forElements(b, op, [&](SmallVector<Value> operands) -> Value {
    return arith::SelectOp::create(b, b.loc, operands[0], operands[1], operands[2]);
  });
}

Value constantLikeValue(WarpBuilder &b, Value like, const APInt &bits) {
  Value value = arith::ConstantOp::create(b, b.loc, b.getIntegerAttr(WarpBuilder::elementType(like), bits));
  return WarpBuilder::isVarying(like) ? b.splat(value) : value;
}

// Division by zero and MIN / -1 trap on hosts, also in lanes that are not active; there 1 divides instead.
LogicalResult rewriteDivision(WarpBuilder &b, Operation *op, bool isSigned) {
  return forElements(b, op, [&](SmallVector<Value> operands) {
    Value dividend = operands[0], divisor = operands[1];
    unsigned width = WarpBuilder::elementType(divisor).getIntOrFloatBitWidth();
    auto equals = [&](Value value, const APInt &bits) -> Value {
      return arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::eq, value, constantLikeValue(b, value, bits));
    };
    Value bad = equals(divisor, APInt::getZero(width));
    if (isSigned) {
      Value overflow = arith::AndIOp::create(b, b.loc, equals(dividend, APInt::getSignedMinValue(width)),
                                             equals(divisor, APInt::getAllOnes(width)));
      bad = arith::OrIOp::create(b, b.loc, bad, overflow);
    }
    operands[1] = arith::SelectOp::create(b, b.loc, bad, constantLikeValue(b, divisor, APInt(width, 1)), divisor);
    return buildElement(b, op, std::move(operands));
  });
}

LogicalResult rewriteSignedDivision(WarpBuilder &b, Operation *op) { return rewriteDivision(b, op, true); }
LogicalResult rewriteUnsignedDivision(WarpBuilder &b, Operation *op) { return rewriteDivision(b, op, false); }

LogicalResult rewriteExtF(WarpBuilder &b, Operation *op) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType()), to = resultElement(op);
  return forElements(b, op, [&](SmallVector<Value> operands) {
    Value value = isHalf(from) ? b.expandHalf(operands[0], from) : operands[0];
    if (isHalf(from) && to.isF32())
      return value;
    return arith::ExtFOp::create(b, b.loc, b.likeLanes(to, WarpBuilder::isVarying(value)), value).getResult();
  });
}

LogicalResult rewriteTruncF(WarpBuilder &b, Operation *op) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType()), to = resultElement(op);
  if (from.isF64() && isHalf(to))
    return op->emitError("the emulator rounds f64 to f32 only, not to ") << to << " in one step";
  return forElements(b, op, [&](SmallVector<Value> operands) -> Value {
    if (isHalf(to))
      return b.narrowToHalf(operands[0], to);
    return arith::TruncFOp::create(b, b.loc, b.likeLanes(to, WarpBuilder::isVarying(operands[0])), operands[0]);
  });
}

/// The low and the high half of a product.
LogicalResult rewriteLongProduct(WarpBuilder &b, Operation *op, bool isSigned) {
  unsigned width = componentTypes(op->getResult(0).getType())->front().getIntOrFloatBitWidth();
  Components low, high;
  for (size_t i = 0, count = b.get(op->getOperand(0)).size(); i < count; ++i) {
    SmallVector<Value> operands = operandsAt(b, op, i);
    for (Value &operand : operands)
      operand = b.resizeInt(operand, 2 * width, isSigned);
    Value product = arith::MulIOp::create(b, b.loc, operands[0], operands[1]);
    low.push_back(b.resizeInt(product, width, false));
    Value shift = constantLikeValue(b, product, APInt(2 * width, width));
    high.push_back(b.resizeInt(arith::ShRUIOp::create(b, b.loc, product, shift), width, false));
  }
  b.set(op->getResult(0), std::move(low));
  b.set(op->getResult(1), std::move(high));
  return success();
}

LogicalResult rewriteSignedLongProduct(WarpBuilder &b, Operation *op) { return rewriteLongProduct(b, op, true); }
LogicalResult rewriteUnsignedLongProduct(WarpBuilder &b, Operation *op) { return rewriteLongProduct(b, op, false); }

LogicalResult resizeElements(WarpBuilder &b, Operation *op, bool isSigned) {
  unsigned width = componentTypes(resultElement(op))->front().getIntOrFloatBitWidth();
  return forElements(b, op, [&](SmallVector<Value> operands) { return b.resizeInt(operands[0], width, isSigned); });
}

LogicalResult resizeSigned(WarpBuilder &b, Operation *op) { return resizeElements(b, op, true); }
LogicalResult resizeUnsigned(WarpBuilder &b, Operation *op) { return resizeElements(b, op, false); }

} // namespace

void addArithmeticRules(RuleTable &rules) {
  for (StringRef name :
       {"addf",  "addi",  "andi",     "cmpf",    "cmpi",  "divf",  "fptosi", "fptoui", "maximumf", "maxnumf",
        "maxsi", "maxui", "minimumf", "minnumf", "minsi", "minui", "mulf",   "muli",   "negf",     "ori",
        "shli",  "shrsi", "shrui",    "sitofp",  "subf",  "subi",  "uitofp", "xori"})
    rules[("arith." + name).str()] = {elementwise};
  for (StringRef name : {"absf", "absi", "ceil", "copysign", "ctlz", "ctpop", "cttz", "floor", "fma", "isfinite",
                         "isinf", "isnan", "isnormal", "round", "roundeven", "sqrt", "trunc"})
    rules[("math." + name).str()] = {elementwise};
  for (StringRef name :
       {"add",          "and",           "ashr",         "fadd",        "fcmp",       "fdiv",       "fmul",
        "fneg",         "fptosi",        "fptoui",       "fsub",        "icmp",       "lshr",       "mul",
        "or",           "shl",           "sitofp",       "sub",         "uitofp",     "xor",        "intr.abs",
        "intr.ceil",    "intr.copysign", "intr.ctpop",   "intr.fabs",   "intr.floor", "intr.fma",   "intr.fmuladd",
        "intr.maximum", "intr.maxnum",   "intr.minimum", "intr.minnum", "intr.rint",  "intr.round", "intr.roundeven",
        "intr.smax",    "intr.smin",     "intr.sqrt",    "intr.trunc",  "intr.umax",  "intr.umin"})
    rules[("llvm." + name).str()] = {elementwise};
  for (StringRef name : {"arith.ceildivsi", "arith.divsi", "arith.floordivsi", "arith.remsi", "llvm.sdiv", "llvm.srem"})
    rules[name] = {rewriteSignedDivision};
  for (StringRef name : {"arith.ceildivui", "arith.divui", "arith.remui", "llvm.udiv", "llvm.urem"})
    rules[name] = {rewriteUnsignedDivision};
  rules["arith.mulsi_extended"] = {rewriteSignedLongProduct};
  rules["arith.mului_extended"] = {rewriteUnsignedLongProduct};
  for (StringRef name : {"arith.extsi", "arith.index_cast", "arith.trunci", "llvm.sext", "llvm.trunc"})
    rules[name] = {resizeSigned};
  for (StringRef name : {"arith.extui", "arith.index_castui", "llvm.inttoptr", "llvm.ptrtoint", "llvm.zext"})
    rules[name] = {resizeUnsigned};
  for (StringRef name : {"arith.select", "llvm.select"})
    rules[name] = {rewriteSelect};
  for (StringRef name : {"arith.extf", "llvm.fpext"})
    rules[name] = {rewriteExtF};
  for (StringRef name : {"arith.truncf", "llvm.fptrunc"})
    rules[name] = {rewriteTruncF};
}

} // namespace attn::emulator
