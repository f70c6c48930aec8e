//===- Components.cpp - Values of 32 lanes ----------------------------------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attn::emulator {

bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

static LogicalResult appendTypes(Type type, SmallVectorImpl<Type> &types) {
  MLIRContext *context = type.getContext();
  if (isHalf(type)) {
    types.push_back(IntegerType::get(context, 16));
  } else if (isa<IndexType, LLVM::LLVMPointerType>(type)) {
    types.push_back(IntegerType::get(context, 64));
  } else if (isa<IntegerType, Float32Type, Float64Type>(type)) {
    types.push_back(type);
  } else if (auto vector = dyn_cast<VectorType>(type); vector && !vector.isScalable()) {
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      if (failed(appendTypes(vector.getElementType(), types)))
        return failure();
  } else if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    for (unsigned i = 0; i < array.getNumElements(); ++i)
      if (failed(appendTypes(array.getElementType(), types)))
        return failure();
  } else if (auto structure = dyn_cast<LLVM::LLVMStructType>(type); structure && !structure.isOpaque()) {
    for (Type element : structure.getBody())
      if (failed(appendTypes(element, types)))
        return failure();
  } else {
    return failure();
  }
  return success();
}

FailureOr<SmallVector<Type>> componentTypes(Type type) {
  SmallVector<Type> types;
  if (failed(appendTypes(type, types)))
    return failure();
  return types;
}

Type WarpBuilder::elementType(Value component) { return getElementTypeOrSelf(component.getType()); }

Value WarpBuilder::splat(Value component) {
  if (isVarying(component))
    return component;
  return vector::BroadcastOp::create(*this, loc, lanesOf(component.getType()), component);
}

void WarpBuilder::unify(MutableArrayRef<Value> components) {
  if (llvm::any_of(components, isVarying))
    for (Value &component : components)
      component = splat(component);
}

Value WarpBuilder::firstLane(Value component) {
  return isVarying(component) ? vector::ExtractOp::create(*this, loc, component, ArrayRef<int64_t>{0}).getResult()
                              : component;
}

Value WarpBuilder::anyActiveLane(Value component) {
  if (!isVarying(component) || !mask)
    return firstLane(component);
  Value lane = LLVM::CountTrailingZerosOp::create(*this, loc, getI32Type(), maskBits(), /*is_zero_poison=*/false);
  Value inside = arith::AndIOp::create(*this, loc, lane, constantInt(kLanes - 1));
  Value index = arith::IndexCastUIOp::create(*this, loc, getIndexType(), inside);
  return vector::ExtractOp::create(*this, loc, component, OpFoldResult(index));
}

Value WarpBuilder::constantInt(uint64_t value, unsigned width) {
  return arith::ConstantOp::create(*this, loc, getIntegerAttr(getIntegerType(width), APInt(width, value, false, true)));
}

Value WarpBuilder::constantLike(Type type, uint64_t bits) {
  unsigned width = type.getIntOrFloatBitWidth();
  Value integer = constantInt(bits, width);
  return isa<IntegerType>(type) ? integer : arith::BitcastOp::create(*this, loc, type, integer).getResult();
}

Value WarpBuilder::laneNumbers() {
  SmallVector<int32_t> numbers = llvm::to_vector(llvm::seq<int32_t>(0, kLanes));
  return arith::ConstantOp::create(*this, loc, DenseElementsAttr::get(lanesOf(getI32Type()), ArrayRef(numbers)));
}

Value WarpBuilder::resizeInt(Value component, unsigned width, bool isSigned) {
  unsigned from = elementType(component).getIntOrFloatBitWidth();
  Type type = likeLanes(getIntegerType(width), isVarying(component));
  if (from == width)
    return component;
  if (from > width)
    return arith::TruncIOp::create(*this, loc, type, component);
  if (isSigned)
    return arith::ExtSIOp::create(*this, loc, type, component);
  return arith::ExtUIOp::create(*this, loc, type, component);
}

static Value constantOf(WarpBuilder &b, Value like, uint64_t bits) {
  Value value = b.constantInt(bits, WarpBuilder::elementType(like).getIntOrFloatBitWidth());
  return WarpBuilder::isVarying(like) ? b.splat(value) : value;
}

Value WarpBuilder::expandHalf(Value bits, Type half) {
  bool lanes = isVarying(bits);
  if (half.isF16()) {
    Value value = arith::BitcastOp::create(*this, loc, likeLanes(half, lanes), bits);
    return arith::ExtFOp::create(*this, loc, likeLanes(getF32Type(), lanes), value);
  }
  Value wide = resizeInt(bits, 32, false);
  wide = arith::ShLIOp::create(*this, loc, wide, constantOf(*this, wide, 16));
  return arith::BitcastOp::create(*this, loc, likeLanes(getF32Type(), lanes), wide);
}

// To bf16 by hand, to the nearest and to even between: few hosts have an instruction for it.
Value WarpBuilder::narrowToHalf(Value value, Type half) {
  bool lanes = isVarying(value);
  Type i16 = likeLanes(getI16Type(), lanes);
  if (half.isF16()) {
    Value narrow = arith::TruncFOp::create(*this, loc, likeLanes(half, lanes), value);
    return arith::BitcastOp::create(*this, loc, i16, narrow);
  }
  Value bits = arith::BitcastOp::create(*this, loc, likeLanes(getI32Type(), lanes), value);
  Value sixteen = constantOf(*this, bits, 16);
  Value high = arith::ShRUIOp::create(*this, loc, bits, sixteen);
  Value odd = arith::AndIOp::create(*this, loc, high, constantOf(*this, bits, 1));
  Value bias = arith::AddIOp::create(*this, loc, odd, constantOf(*this, bits, 0x7fff));
  Value rounded = arith::ShRUIOp::create(*this, loc, arith::AddIOp::create(*this, loc, bits, bias), sixteen);
  Value isNaN = arith::CmpFOp::create(*this, loc, arith::CmpFPredicate::UNO, value, value);
  Value result = arith::SelectOp::create(*this, loc, isNaN, constantOf(*this, bits, 0x7fff), rounded);
  return resizeInt(result, 16, false);
}

// The integer that `parts` make together, the first one lowest.
static Value joinBits(WarpBuilder &b, ArrayRef<Value> parts, unsigned width) {
  Value whole;
  unsigned offset = 0;
  for (Value part : parts) {
    unsigned partWidth = WarpBuilder::elementType(part).getIntOrFloatBitWidth();
    Value bits = b.resizeInt(part, width, false);
    if (offset != 0) {
      Value shift = b.constantInt(offset, width);
      bits = arith::ShLIOp::create(b, b.loc, bits, WarpBuilder::isVarying(bits) ? b.splat(shift) : shift);
    }
    whole = whole ? arith::OrIOp::create(b, b.loc, whole, bits).getResult() : bits;
    offset += partWidth;
  }
  return whole;
}

static Value takeBits(WarpBuilder &b, Value whole, unsigned offset, unsigned width) {
  if (offset != 0) {
    Value shift = b.constantInt(offset, WarpBuilder::elementType(whole).getIntOrFloatBitWidth());
    whole = arith::ShRUIOp::create(b, b.loc, whole, WarpBuilder::isVarying(whole) ? b.splat(shift) : shift);
  }
  return b.resizeInt(whole, width, false);
}

static Value castBits(WarpBuilder &b, Value value, Type type) {
  if (WarpBuilder::elementType(value) == type)
    return value;
  return arith::BitcastOp::create(b, b.loc, b.likeLanes(type, WarpBuilder::isVarying(value)), value);
}

// Elements are joined to the wider of the two widths, then split.
FailureOr<Components> WarpBuilder::regroup(ArrayRef<Value> components, Type type) {
  unsigned fromWidth = elementType(components.front()).getIntOrFloatBitWidth();
  unsigned toWidth = type.getIntOrFloatBitWidth(), width = std::max(fromWidth, toWidth);
  if (width % fromWidth || width % toWidth || components.size() * fromWidth % width)
    return failure();
  Components parts(components), results;
  unify(parts);
  for (Value &part : parts)
    part = castBits(*this, part, getIntegerType(fromWidth));
  size_t perWord = width / fromWidth;
  for (size_t i = 0; i < parts.size(); i += perWord) {
    Value word = joinBits(*this, ArrayRef(parts).slice(i, perWord), width);
    for (unsigned offset = 0; offset < width; offset += toWidth)
      results.push_back(castBits(*this, takeBits(*this, word, offset, toWidth), type));
  }
  return results;
}

} // namespace attn::emulator
