//===- RulesMemory.cpp - Addresses, loads and stores ------------------------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace attn::emulator {
namespace {

/// Generic pointers point to global memory: nothing here makes them of others.
constexpr unsigned kGenericSpace = 0, kGlobalSpace = 1, kSharedSpace = 3, kMaxAccessBytes = 16;

bool isGlobal(unsigned space) { return space == kGenericSpace || space == kGlobalSpace; }

/// Bytes from one element to the next; fails for structs, whose layout nothing here needs.
FailureOr<uint64_t> strideOf(Type type) {
  if (auto array = dyn_cast<LLVM::LLVMArrayType>(type)) {
    auto element = strideOf(array.getElementType());
    return failed(element) ? element : FailureOr<uint64_t>(*element * array.getNumElements());
  }
  if (auto vector = dyn_cast<VectorType>(type)) {
    auto element = strideOf(vector.getElementType());
    return failed(element) ? element : FailureOr<uint64_t>(*element * vector.getNumElements());
  }
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  if (!type.isIntOrFloat())
    return failure();
  return std::max(8u, type.getIntOrFloatBitWidth()) / 8;
}

LogicalResult rewriteGEP(WarpBuilder &b, Operation *op) {
  auto gep = cast<LLVM::GEPOp>(op);
  Value address = b.getOne(gep.getBase());
  Type type = gep.getElemType();
  bool first = true;
  for (auto index : gep.getIndices()) {
    // The first index steps over whole elements, each further one goes inside.
    if (auto array = dyn_cast<LLVM::LLVMArrayType>(type); array && !first)
      type = array.getElementType();
    else if (!first)
      return op->emitError("the emulator steps into arrays only");
    first = false;
    auto stride = strideOf(type);
    if (failed(stride))
      return op->emitError("the emulator does not know the size of ") << type;
    auto constant = dyn_cast<IntegerAttr>(index);
    Value number = constant ? b.constantInt(constant.getValue().getSExtValue(), 64)
                            : b.resizeInt(b.getOne(cast<Value>(index)), 64, /*isSigned=*/true);
    SmallVector<Value> terms{address, number, b.constantInt(*stride, 64)};
    b.unify(terms);
    address = arith::AddIOp::create(b, b.loc, terms[0], arith::MulIOp::create(b, b.loc, terms[1], terms[2]));
  }
  b.set(gep.getResult(), {address});
  return success();
}

LogicalResult rewriteAddressOf(WarpBuilder &b, Operation *op) {
  auto address = cast<LLVM::AddressOfOp>(op);
  auto offset = b.sharedOffset(address.getGlobalName());
  if (failed(offset))
    return op->emitError("the emulator knows variables in shared memory only (addr_space = 3)");
  b.set(address.getResult(), {b.constantInt(*offset, 64)});
  return success();
}

LogicalResult rewriteSpaceCast(WarpBuilder &b, Operation *op) {
  auto cast = llvm::cast<LLVM::AddrSpaceCastOp>(op);
  for (Type type : {cast.getArg().getType(), cast.getRes().getType()})
    if (!isGlobal(llvm::cast<LLVM::LLVMPointerType>(type).getAddressSpace()))
      return op->emitError("the emulator keeps generic pointers to global memory only; ") << type << " is another";
  b.set(cast.getRes(), {b.getOne(cast.getArg())});
  return success();
}

/// How a value lies in memory.
struct Layout {
  bool shared;
  Type element;
  unsigned width, count;
};

FailureOr<Layout> layoutOf(Operation *op, Value pointer, Type type) {
  unsigned space = cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace();
  if (!isGlobal(space) && space != kSharedSpace)
    return op->emitError("the emulator accesses global (1) and shared (3) memory, not address space ") << space;
  auto types = componentTypes(type);
  if (failed(types) || types->empty() || !llvm::all_equal(*types))
    return op->emitError("the emulator does not know values of type ") << type << " in memory";
  unsigned width = std::max(8u, types->front().getIntOrFloatBitWidth()) / 8;
  unsigned count = types->size();
  if (!llvm::isPowerOf2_32(width * count) || width * count > kMaxAccessBytes)
    return op->emitError("one access moves 1, 2, 4, 8 or 16 bytes, not ") << width * count;
  return Layout{space == kSharedSpace, types->front(), width, count};
}

/// The lanes of an access: where all agree on the address, one of them stands for all.
Value accessMask(WarpBuilder &b, bool uniform) { return uniform ? b.constantInt(1) : b.maskBits(); }

LogicalResult rewriteLoad(WarpBuilder &b, Operation *op) {
  auto load = cast<LLVM::LoadOp>(op);
  auto layout = layoutOf(op, load.getAddr(), load.getType());
  if (failed(layout))
    return failure();
  Value address = b.getOne(load.getAddr());
  bool uniform = !WarpBuilder::isVarying(address);
  Value addresses = b.putLanes(address), out = b.reserveLanes(layout->width * layout->count);
  b.call("attn_emu_load", Type(),
         {b.getWarp(), b.site(op), accessMask(b, uniform), b.constantInt(layout->shared), addresses,
          b.constantInt(layout->width), b.constantInt(layout->count), out});
  Components components;
  for (unsigned i = 0; i < layout->count; ++i)
    components.push_back(uniform ? b.takeFirstLane(out, layout->element, i) : b.takeLanes(out, layout->element, i));
  b.set(load.getResult(), std::move(components));
  return success();
}

LogicalResult rewriteStore(WarpBuilder &b, Operation *op) {
  auto store = cast<LLVM::StoreOp>(op);
  auto layout = layoutOf(op, store.getAddr(), store.getValue().getType());
  if (failed(layout))
    return failure();
  Value addresses = b.putLanes(b.getOne(store.getAddr())), in = b.putLanes(b.get(store.getValue()));
  b.call("attn_emu_store", Type(),
         {b.getWarp(), b.site(op), b.maskBits(), b.constantInt(layout->shared), addresses, b.constantInt(layout->width),
          b.constantInt(layout->count), in});
  return success();
}

} // namespace

void addMemoryRules(RuleTable &rules) {
  rules["llvm.getelementptr"] = {rewriteGEP};
  rules["llvm.mlir.addressof"] = {rewriteAddressOf, Agreement::Always, /*counted=*/false};
  rules["llvm.addrspacecast"] = {rewriteSpaceCast, Agreement::Operands, /*counted=*/false};
  rules["llvm.load"] = {rewriteLoad};
  rules["llvm.store"] = {rewriteStore};
}

} // namespace attn::emulator
