//===- RulesMath.cpp - Functions, and conversions with a rounding -----------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attn::emulator {
namespace {

/// What becomes of one element of each operand; 16-bit floats come as f32.
using Map = llvm::function_ref<Value(ArrayRef<Value> operands, Type type)>;

LogicalResult mapElements(WarpBuilder &b, Operation *op, Map map) {
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isHalf(type) && !type.isF32() && !type.isF64())
    return op->emitError("the emulator has no ") << op->getName() << " of " << type;
  Components results;
  for (size_t i = 0, count = b.get(op->getOperand(0)).size(); i < count; ++i) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Value component = b.get(operand)[i];
      operands.push_back(isHalf(type) ? b.expandHalf(component, type) : component);
    }
    bool uniform = llvm::none_of(operands, WarpBuilder::isVarying);
    b.clearArrays();
    Value result = map(operands, isHalf(type) ? b.getF32Type() : type);
    result = uniform ? b.firstLane(result) : result;
    results.push_back(isHalf(type) ? b.narrowToHalf(result, type) : result);
  }
  b.set(op->getResult(0), std::move(results));
  return success();
}

/// Calls a function of the C library for each lane; `name` is the one of doubles.
Value callLibrary(WarpBuilder &b, StringRef name, ArrayRef<Value> operands, Type type) {
  bool isDouble = type.isF64();
  SmallVector<Value> arguments{b.addressOfFunction(isDouble ? name.str() : (name + "f").str(), type, operands.size())};
  for (Value operand : operands)
    arguments.push_back(b.putLanes(operand));
  Value out = b.reserveLanes(isDouble ? 8 : 4);
  arguments.push_back(out);
  std::string map = std::string("attn_emu_map") + (operands.size() == 2 ? "2" : "") + (isDouble ? "_f64" : "_f32");
  b.call(map, Type(), arguments);
  return b.takeLanes(out, type, 0);
}

Value exp2(WarpBuilder &b, Value operand, Type type) {
  if (type.isF64())
    return callLibrary(b, "exp2", operand, type);
  Value in = b.putLanes(operand), out = b.reserveLanes(4);
  b.call("attn_emu_exp2", Type(), {in, out});
  return b.takeLanes(out, type, 0);
}

Value one(WarpBuilder &b, Type type) { return arith::ConstantOp::create(b, b.loc, b.getFloatAttr(type, 1.0)); }

Value reciprocal(WarpBuilder &b, Value operand, Type type) {
  return arith::DivFOp::create(b, b.loc, b.splat(one(b, type)), b.splat(operand));
}

LogicalResult rewriteExp2(WarpBuilder &b, Operation *op) {
  return mapElements(b, op, [&](ArrayRef<Value> operands, Type type) { return exp2(b, operands[0], type); });
}

LogicalResult rewriteReciprocal(WarpBuilder &b, Operation *op) {
  return mapElements(b, op, [&](ArrayRef<Value> operands, Type type) { return reciprocal(b, operands[0], type); });
}

LogicalResult rewriteSqrt(WarpBuilder &b, Operation *op) {
  return mapElements(b, op, [&](ArrayRef<Value> operands, Type) -> Value {
    return math::SqrtOp::create(b, b.loc, b.splat(operands[0]));
  });
}

LogicalResult rewriteRsqrt(WarpBuilder &b, Operation *op) {
  return mapElements(b, op, [&](ArrayRef<Value> operands, Type type) -> Value {
    return reciprocal(b, math::SqrtOp::create(b, b.loc, b.splat(operands[0])), type);
  });
}

/// C functions by the name of the op or intrinsic.
const llvm::StringMap<StringRef> &libraryNames() {
  static const llvm::StringMap<StringRef> names = [] {
    llvm::StringMap<StringRef> all;
    for (StringRef name :
         {"acos", "acosh", "asin",  "asinh", "atan",  "atan2", "atanh", "cbrt", "cos",  "cosh", "erf",
          "erfc", "exp",   "expm1", "log",   "log10", "log1p", "log2",  "sin",  "sinh", "tan",  "tanh"})
      all[("math." + name).str()] = name;
    for (StringRef name : {"exp", "log", "log10", "log2", "pow", "sin", "cos", "tan", "tanh"})
      all[("llvm.intr." + name).str()] = name;
    all["math.powf"] = "pow";
    all["arith.remf"] = "fmod";
    all["llvm.frem"] = "fmod";
    all["llvm.nvvm.lg2.approx.f"] = all["llvm.nvvm.lg2.approx.ftz.f"] = "log2";
    all["llvm.nvvm.sin.approx.f"] = all["llvm.nvvm.sin.approx.ftz.f"] = "sin";
    all["llvm.nvvm.cos.approx.f"] = all["llvm.nvvm.cos.approx.ftz.f"] = "cos";
    return all;
  }();
  return names;
}

LogicalResult rewriteLibraryCall(WarpBuilder &b, Operation *op) {
  StringRef function = libraryNames().lookup(instructionName(op));
  return mapElements(b, op,
                     [&](ArrayRef<Value> operands, Type type) { return callLibrary(b, function, operands, type); });
}

/// Two f32, the high half first, to one register of 16-bit floats.
LogicalResult packPair(WarpBuilder &b, Operation *op, Value high, Value low) {
  Type half = getElementTypeOrSelf(op->getResult(0).getType());
  Components operands{b.getOne(low), b.getOne(high)};
  b.unify(operands);
  Components results;
  for (Value operand : operands)
    results.push_back(b.narrowToHalf(operand, half));
  b.set(op->getResult(0), std::move(results));
  return success();
}

template <typename Op>
LogicalResult rewriteConvertPair(WarpBuilder &b, Operation *op) {
  auto convert = cast<Op>(op);
  if (convert.getRnd() != NVVM::FPRoundingMode::RN || convert.getRelu() || convert.getRandomBits() ||
      convert.getSat() != NVVM::SaturationMode::NONE)
    return op->emitError("the emulator rounds to nearest (rnd = rn), without relu or saturation");
  return packPair(b, op, convert.getSrcHi(), convert.getSrcLo());
}

LogicalResult rewritePackIntrinsic(WarpBuilder &b, Operation *op) {
  return packPair(b, op, op->getOperand(0), op->getOperand(1));
}

} // namespace

void addMathRules(RuleTable &rules) {
  for (StringRef name : {"math.exp2", "llvm.intr.exp2", "llvm.nvvm.ex2.approx.f", "llvm.nvvm.ex2.approx.ftz.f",
                         "llvm.nvvm.ex2.approx", "llvm.nvvm.ex2.approx.ftz"})
    rules[name] = {rewriteExp2};
  for (StringRef name : {"nvvm.rcp.approx.ftz.f", "llvm.nvvm.rcp.approx.ftz.f", "llvm.nvvm.rcp.rn.f"})
    rules[name] = {rewriteReciprocal};
  for (StringRef name : {"math.rsqrt", "llvm.nvvm.rsqrt.approx.f", "llvm.nvvm.rsqrt.approx.ftz.f"})
    rules[name] = {rewriteRsqrt};
  for (StringRef name : {"llvm.nvvm.sqrt.approx.f", "llvm.nvvm.sqrt.approx.ftz.f", "llvm.nvvm.sqrt.rn.f"})
    rules[name] = {rewriteSqrt};
  for (const auto &entry : libraryNames())
    rules[entry.getKey()] = {rewriteLibraryCall};
  rules["nvvm.convert.f32x2.to.f16x2"] = {rewriteConvertPair<NVVM::ConvertF32x2ToF16x2Op>};
  rules["nvvm.convert.f32x2.to.bf16x2"] = {rewriteConvertPair<NVVM::ConvertF32x2ToBF16x2Op>};
  for (StringRef name : {"llvm.nvvm.ff2bf16x2.rn", "llvm.nvvm.ff2f16x2.rn"})
    rules[name] = {rewritePackIntrinsic};
}

} // namespace attn::emulator
