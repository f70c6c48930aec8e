//===- RulesStructure.cpp - Constants, and the elements of vectors and structs -===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace attn::emulator {
namespace {

Value constantElement(WarpBuilder &b, Attribute attr) {
  auto number = dyn_cast<FloatAttr>(attr);
  if (!number)
    return b.constantInt(cast<IntegerAttr>(attr).getValue().getZExtValue(),
                         componentTypes(cast<IntegerAttr>(attr).getType())->front().getIntOrFloatBitWidth());
  if (isHalf(number.getType()))
    return b.constantInt(number.getValue().bitcastToAPInt().getZExtValue(), 16);
  return arith::ConstantOp::create(b, b.loc, number);
}

LogicalResult rewriteConstant(WarpBuilder &b, Operation *op) {
  Attribute attr = op->getAttr("value");
  Components components;
  if (isa<FloatAttr, IntegerAttr>(attr)) {
    components.push_back(constantElement(b, attr));
  } else if (auto dense = dyn_cast<DenseElementsAttr>(attr)) {
    for (Attribute element : dense.getValues<Attribute>())
      components.push_back(constantElement(b, element));
  } else {
    return op->emitError("the emulator knows numbers and dense vectors as constants, not ") << attr;
  }
  b.set(op->getResult(0), std::move(components));
  return success();
}

LogicalResult fill(WarpBuilder &b, Operation *op, uint64_t bits) {
  auto types = componentTypes(op->getResult(0).getType());
  if (failed(types))
    return op->emitError("the emulator does not know values of type ") << op->getResult(0).getType();
  Components components;
  for (Type type : *types)
    components.push_back(b.constantLike(type, bits & llvm::maskTrailingOnes<uint64_t>(type.getIntOrFloatBitWidth())));
  b.set(op->getResult(0), std::move(components));
  return success();
}

LogicalResult rewriteZero(WarpBuilder &b, Operation *op) { return fill(b, op, 0); }
/// A NaN, so that a use shows.
LogicalResult rewriteUndefined(WarpBuilder &b, Operation *op) { return fill(b, op, ~uint64_t(0)); }

/// The components of the element at `position` of a value of `type`.
std::pair<size_t, size_t> findElement(Type type, ArrayRef<int64_t> position) {
  size_t offset = 0;
  for (size_t depth = 0; depth < position.size(); ++depth) {
    if (auto vector = dyn_cast<VectorType>(type)) {
      ArrayRef<int64_t> shape = vector.getShape();
      ArrayRef<int64_t> rest = position.drop_front(depth);
      size_t size = vector.getNumElements();
      for (auto [index, extent] : llvm::zip(rest, shape)) {
        size /= extent;
        offset += index * size;
      }
      return {offset, size};
    }
    int64_t index = position[depth];
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
      type = array.getElementType();
      offset += index * componentTypes(type)->size();
      continue;
    }
    ArrayRef<Type> body = cast<LLVM::LLVMStructType>(type).getBody();
    for (Type before : body.take_front(index))
      offset += componentTypes(before)->size();
    type = body[index];
  }
  return {offset, componentTypes(type)->size()};
}

LogicalResult extract(WarpBuilder &b, Operation *op, Value container, ArrayRef<int64_t> position) {
  auto [offset, size] = findElement(container.getType(), position);
  b.set(op->getResult(0), Components(b.get(container).slice(offset, size)));
  return success();
}

LogicalResult insert(WarpBuilder &b, Operation *op, Value container, Value element, ArrayRef<int64_t> position) {
  auto [offset, size] = findElement(container.getType(), position);
  Components components(b.get(container));
  llvm::copy(b.get(element), components.begin() + offset);
  b.set(op->getResult(0), std::move(components));
  return success();
}

LogicalResult rewriteExtractValue(WarpBuilder &b, Operation *op) {
  auto extractOp = cast<LLVM::ExtractValueOp>(op);
  return extract(b, op, extractOp.getContainer(), extractOp.getPosition());
}

LogicalResult rewriteInsertValue(WarpBuilder &b, Operation *op) {
  auto insertOp = cast<LLVM::InsertValueOp>(op);
  return insert(b, op, insertOp.getContainer(), insertOp.getValue(), insertOp.getPosition());
}

FailureOr<int64_t> constantPosition(Operation *op, Value position) {
  APInt value;
  if (!matchPattern(position, m_ConstantInt(&value)))
    return op->emitError("the emulator keeps the elements of a vector apart: their position must be a constant");
  return value.getSExtValue();
}

LogicalResult rewriteExtractElement(WarpBuilder &b, Operation *op) {
  auto extractOp = cast<LLVM::ExtractElementOp>(op);
  auto position = constantPosition(op, extractOp.getPosition());
  return failed(position) ? failure() : extract(b, op, extractOp.getVector(), *position);
}

LogicalResult rewriteInsertElement(WarpBuilder &b, Operation *op) {
  auto insertOp = cast<LLVM::InsertElementOp>(op);
  auto position = constantPosition(op, insertOp.getPosition());
  return failed(position) ? failure() : insert(b, op, insertOp.getVector(), insertOp.getValue(), *position);
}

LogicalResult rewriteVectorExtract(WarpBuilder &b, Operation *op) {
  auto extractOp = cast<vector::ExtractOp>(op);
  if (extractOp.hasDynamicPosition())
    return op->emitError("the emulator keeps the elements of a vector apart: their position must be a constant");
  return extract(b, op, extractOp.getSource(), extractOp.getStaticPosition());
}

LogicalResult rewriteVectorInsert(WarpBuilder &b, Operation *op) {
  auto insertOp = cast<vector::InsertOp>(op);
  if (insertOp.hasDynamicPosition())
    return op->emitError("the emulator keeps the elements of a vector apart: their position must be a constant");
  return insert(b, op, insertOp.getDest(), insertOp.getValueToStore(), insertOp.getStaticPosition());
}

LogicalResult rewriteFromElements(WarpBuilder &b, Operation *op) {
  Components components;
  for (Value operand : op->getOperands())
    llvm::append_range(components, b.get(operand));
  b.set(op->getResult(0), std::move(components));
  return success();
}

LogicalResult rewriteToElements(WarpBuilder &b, Operation *op) {
  for (auto [result, component] : llvm::zip_equal(op->getResults(), b.get(op->getOperand(0))))
    b.set(result, {component});
  return success();
}

LogicalResult rewriteVectorShuffle(WarpBuilder &b, Operation *op) {
  auto shuffle = cast<vector::ShuffleOp>(op);
  if (shuffle.getV1VectorType().getRank() != 1)
    return op->emitError("the emulator shuffles vectors of one dimension only");
  Components all(b.get(shuffle.getV1())), results;
  llvm::append_range(all, b.get(shuffle.getV2()));
  for (int64_t position : shuffle.getMask())
    results.push_back(all[std::max<int64_t>(position, 0)]); // -1: any
  b.set(op->getResult(0), std::move(results));
  return success();
}

LogicalResult rewriteBroadcast(WarpBuilder &b, Operation *op) {
  ArrayRef<Value> source = b.get(op->getOperand(0));
  size_t size = componentTypes(op->getResult(0).getType())->size();
  if (source.size() != 1)
    return op->emitError("the emulator broadcasts scalars only");
  b.set(op->getResult(0), Components(size, source.front()));
  return success();
}

LogicalResult rewriteBitcast(WarpBuilder &b, Operation *op) {
  auto from = componentTypes(op->getOperand(0).getType()), to = componentTypes(op->getResult(0).getType());
  if (failed(from) || failed(to) || from->empty() || to->empty())
    return op->emitError("the emulator does not know these types");
  auto results = b.regroup(b.get(op->getOperand(0)), to->front());
  if (failed(results) || results->size() != to->size())
    return op->emitError("the emulator cannot regroup these widths");
  b.set(op->getResult(0), std::move(*results));
  return success();
}

/// Forwards its (first) operand: llvm.freeze and the like.
LogicalResult forward(WarpBuilder &b, Operation *op) {
  b.set(op->getResult(0), Components(b.get(op->getOperand(0))));
  return success();
}

} // namespace

void addStructureRules(RuleTable &rules) {
  auto add = [&](StringRef name, auto rewrite) { rules[name] = {rewrite, Agreement::Operands, /*counted=*/false}; };
  add("arith.constant", rewriteConstant);
  add("llvm.mlir.constant", rewriteConstant);
  add("llvm.mlir.zero", rewriteZero);
  add("llvm.mlir.undef", rewriteUndefined);
  add("llvm.mlir.poison", rewriteUndefined);
  add("ub.poison", rewriteUndefined);
  add("llvm.freeze", forward);
  add("llvm.intr.expect", forward);
  add("llvm.extractvalue", rewriteExtractValue);
  add("llvm.insertvalue", rewriteInsertValue);
  add("llvm.extractelement", rewriteExtractElement);
  add("llvm.insertelement", rewriteInsertElement);
  add("vector.extract", rewriteVectorExtract);
  add("vector.insert", rewriteVectorInsert);
  add("vector.from_elements", rewriteFromElements);
  add("vector.to_elements", rewriteToElements);
  add("vector.shuffle", rewriteVectorShuffle);
  add("vector.broadcast", rewriteBroadcast);
  add("vector.shape_cast", forward);
  add("arith.bitcast", rewriteBitcast);
  add("llvm.bitcast", rewriteBitcast);
  add("vector.bitcast", rewriteBitcast);
}

} // namespace attn::emulator
