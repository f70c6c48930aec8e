//===- WarpBuilder.cpp - Kernel code for one thread to host code for a warp -===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cstddef>

using namespace mlir;

namespace attn::emulator {

WarpBuilder::WarpBuilder(ModuleOp host, LLVM::LLVMFuncOp kernel, const RuleTable &rules, const SharedLayout &shared,
                         Program &program)
    : OpBuilder(host.getContext()), loc(UnknownLoc::get(host.getContext())), host(host), kernel(kernel), rules(rules),
      shared(shared), program(program), uniformity(kernel, rules) {}

LogicalResult WarpBuilder::build(StringRef name) {
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), {pointer, pointer});
  setInsertionPointToEnd(host.getBody());
  auto function = LLVM::LLVMFuncOp::create(*this, loc, name, type);
  Block *entry = function.addEntryBlock(*this);
  setInsertionPointToStart(entry);
  warp = entry->getArgument(0);
  Value bytes = constantInt(0);
  arrays = LLVM::AllocaOp::create(*this, loc, pointer, getI8Type(), bytes, /*alignment=*/64);
  if (!kernel.getBody().hasOneBlock())
    return kernel.emitError("the emulator wants structured control flow, scf.for, scf.if and scf.while; this body has "
                            "branches between blocks");
  if (failed(setArguments(entry->getArgument(1))) || failed(rewriteBlock(kernel.getBody().front(), Value())))
    return failure();
  LLVM::ReturnOp::create(*this, loc, ValueRange());
  bytes.getDefiningOp()->setAttr("value", getI32IntegerAttr(arrayBytes));
  return success();
}

LogicalResult WarpBuilder::setArguments(Value arguments) {
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  for (BlockArgument argument : kernel.getArguments()) {
    auto types = componentTypes(argument.getType());
    if (failed(types) || types->size() != 1)
      return kernel.emitError("kernel argument ") << argument.getArgNumber() << " has type " << argument.getType()
                                                  << "; the emulator passes scalars and pointers";
    Value slot = LLVM::GEPOp::create(*this, loc, pointer, pointer, arguments,
                                     ArrayRef<LLVM::GEPArg>{int32_t(argument.getArgNumber())});
    Value address = LLVM::LoadOp::create(*this, loc, pointer, slot);
    set(argument, {LLVM::LoadOp::create(*this, loc, types->front(), address)});
  }
  return success();
}

LogicalResult WarpBuilder::rewriteBlock(Block &block, Value newMask) {
  Value oldMask = std::exchange(mask, newMask);
  uint64_t region = program.regions.size();
  program.regions.emplace_back();
  countRegion(region);
  std::map<std::string, uint64_t> counts;
  for (Operation &op : block)
    if (!isa<LLVM::ReturnOp>(op) && !(op.hasTrait<OpTrait::IsTerminator>() && op.getParentOp() != kernel))
      if (failed(rewrite(op, &counts)))
        return failure();
  program.regions[region] = std::move(counts);
  mask = oldMask;
  return success();
}

LogicalResult WarpBuilder::rewrite(Operation &op, std::map<std::string, uint64_t> *counts) {
  const Rule *rule = findRule(rules, &op);
  if (!rule)
    return op.emitError("the emulator has no rule for this op");
  if (failed(requireChip(&op, rule->chip)))
    return failure();
  if (rule->counted)
    ++(*counts)[instructionName(&op).str()];
  clearArrays();
  return rule->rewrite(*this, &op);
}

LogicalResult WarpBuilder::requireChip(Operation *op, unsigned chip) const {
  if (program.chip >= chip)
    return success();
  return op->emitError("needs sm_") << chip << ", but the chip is sm_" << program.chip;
}

void WarpBuilder::countRegion(uint64_t region) {
  if (!program.counts)
    return;
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  Value counters = loadFromWarp(pointer, offsetof(Warp, regionCounts));
  Value counter =
      LLVM::GEPOp::create(*this, loc, pointer, getI64Type(), counters, ArrayRef<LLVM::GEPArg>{int32_t(region)});
  Value old = LLVM::LoadOp::create(*this, loc, getI64Type(), counter);
  LLVM::StoreOp::create(*this, loc, arith::AddIOp::create(*this, loc, old, constantInt(1, 64)), counter);
}

ArrayRef<Value> WarpBuilder::get(Value value) const {
  auto it = values.find(value);
  assert(it != values.end() && "an operand before its definition");
  return it->second;
}

Value WarpBuilder::getOne(Value value) const {
  assert(get(value).size() == 1 && "a scalar");
  return get(value).front();
}

void WarpBuilder::set(Value value, Components components) { values[value] = std::move(components); }

FailureOr<uint64_t> WarpBuilder::sharedOffset(StringRef global) const {
  auto it = shared.offsets.find(global);
  if (it == shared.offsets.end())
    return failure();
  return it->second;
}

Value WarpBuilder::maskBits() { return toBits(mask); }

Value WarpBuilder::toBits(Value lanes) {
  if (!lanes)
    return constantInt(kFullMask);
  Value one = vector::BitCastOp::create(*this, loc, VectorType::get({1}, getI32Type()), lanes);
  return vector::ExtractOp::create(*this, loc, one, ArrayRef<int64_t>{0});
}

Value WarpBuilder::andMask(Value condition) {
  return mask ? arith::AndIOp::create(*this, loc, mask, splat(condition)).getResult() : splat(condition);
}

Value WarpBuilder::isAnyActive(Value lanes) {
  return arith::CmpIOp::create(*this, loc, arith::CmpIPredicate::ne, toBits(lanes), constantInt(0));
}

LLVM::LLVMFuncOp WarpBuilder::declare(StringRef function, Type result, TypeRange arguments) {
  if (auto known = host.lookupSymbol<LLVM::LLVMFuncOp>(function))
    return known;
  InsertionGuard guard(*this);
  setInsertionPointToStart(host.getBody());
  return LLVM::LLVMFuncOp::create(*this, loc, function,
                                  LLVM::LLVMFunctionType::get(result, llvm::to_vector(arguments)));
}

Value WarpBuilder::addressOfFunction(StringRef name, Type type, unsigned count) {
  return LLVM::AddressOfOp::create(*this, loc, declare(name, type, SmallVector<Type>(count, type)));
}

Value WarpBuilder::call(StringRef function, Type result, ValueRange arguments) {
  Type returned = result ? result : LLVM::LLVMVoidType::get(getContext());
  auto op = LLVM::CallOp::create(*this, loc, declare(function, returned, arguments.getTypes()), arguments);
  return result ? op.getResult() : Value();
}

Value WarpBuilder::arrayAt(unsigned offset) {
  return LLVM::GEPOp::create(*this, loc, arrays.getType(), getI8Type(), arrays,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)});
}

static unsigned bytesOf(Type type) { return std::max(8u, type.getIntOrFloatBitWidth()) / 8; }

Value WarpBuilder::reserveLanes(unsigned bytesPerLane) {
  Value array = arrayAt(used);
  used = llvm::alignTo(used + bytesPerLane * kLanes, 64);
  arrayBytes = std::max(arrayBytes, used);
  return array;
}

Value WarpBuilder::putLanes(ArrayRef<Value> components) {
  unsigned bytes = 0;
  for (Value component : components)
    bytes += bytesOf(elementType(component));
  Value array = reserveLanes(bytes);
  unsigned offset = 0;
  for (Value component : components) {
    Value lanes = splat(component);
    if (elementType(lanes).isInteger(1))
      lanes = arith::ExtUIOp::create(*this, loc, lanesOf(getI8Type()), lanes);
    Value target =
        LLVM::GEPOp::create(*this, loc, array.getType(), getI8Type(), array, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
    LLVM::StoreOp::create(*this, loc, lanes, target, /*alignment=*/32);
    offset += bytesOf(elementType(lanes)) * kLanes;
  }
  return array;
}

Value WarpBuilder::takeLanes(Value array, Type type, unsigned index) {
  Type stored = type.isInteger(1) ? getI8Type() : type;
  Value from = LLVM::GEPOp::create(*this, loc, array.getType(), getI8Type(), array,
                                   ArrayRef<LLVM::GEPArg>{int32_t(index * bytesOf(type) * kLanes)});
  Value lanes = LLVM::LoadOp::create(*this, loc, lanesOf(stored), from, /*alignment=*/32);
  return stored == type ? lanes : resizeInt(lanes, 1, false);
}

Value WarpBuilder::takeFirstLane(Value array, Type type, unsigned index) {
  Type stored = type.isInteger(1) ? getI8Type() : type;
  Value from = LLVM::GEPOp::create(*this, loc, array.getType(), getI8Type(), array,
                                   ArrayRef<LLVM::GEPArg>{int32_t(index * bytesOf(type) * kLanes)});
  Value value = LLVM::LoadOp::create(*this, loc, stored, from);
  return stored == type ? value : resizeInt(value, 1, false);
}

Value WarpBuilder::loadFromWarp(Type type, unsigned offset) {
  Value from =
      LLVM::GEPOp::create(*this, loc, warp.getType(), getI8Type(), warp, ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  return LLVM::LoadOp::create(*this, loc, type, from, /*alignment=*/4);
}

Value WarpBuilder::site(Operation *op) {
  program.sites.push_back({op->getLoc(), instructionName(op).str()});
  return constantInt(program.sites.size() - 1);
}

} // namespace attn::emulator
