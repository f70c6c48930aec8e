//===- HostCode.cpp - From the runtime's operands to a function's ---------===//
#include "HostCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn::entry {

// Denormals cost a hundred cycles each and can be weights of any tile; the caller's mode is put back afterwards.
void HostCode::withoutDenormals(llvm::function_ref<void()> body) {
  if (!x86)
    return body();
  Value one = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(1));
  Value place = LLVM::AllocaOp::create(b, loc, ptr, b.getI32Type(), one);
  auto call = [&](StringRef name) { LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), ValueRange{place}); };
  call("llvm.x86.sse.stmxcsr");
  Value old = LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
  Value bits = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(0x8040)); // FTZ and DAZ
  LLVM::StoreOp::create(b, loc, LLVM::OrOp::create(b, loc, old, bits), place);
  call("llvm.x86.sse.ldmxcsr");
  body();
  LLVM::StoreOp::create(b, loc, old, place);
  call("llvm.x86.sse.ldmxcsr");
}

Value HostCode::descriptor(Value data, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, MemRefType type) {
  Type i64 = b.getI64Type(), extents = LLVM::LLVMArrayType::get(i64, sizes.size());
  auto layout = LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, i64, extents, extents});
  Value d = LLVM::PoisonOp::create(b, loc, layout);
  auto set = [&](Value v, ArrayRef<int64_t> at) { d = LLVM::InsertValueOp::create(b, loc, d, v, at); };
  set(data, {0});
  set(data, {1});
  set(constant(0, i64), {2});
  for (auto [i, size] : llvm::enumerate(sizes)) {
    set(constant(size, i64), {3, int64_t(i)});
    set(constant(strides[i], i64), {4, int64_t(i)});
  }
  return UnrealizedConversionCastOp::create(b, loc, type, d).getResult(0);
}

Value HostCode::loadMemRef(Value operands, int64_t i, MemRefType type) {
  Type i64 = b.getI64Type(), extents = LLVM::LLVMArrayType::get(i64, type.getRank());
  SmallVector<Type> parts{ptr, ptr, i64};
  if (type.getRank())
    parts.append(2, extents);
  auto layout = LLVM::LLVMStructType::getLiteral(b.getContext(), parts);
  Value loaded = LLVM::LoadOp::create(b, loc, layout, field(operands, i, ptr));
  return UnrealizedConversionCastOp::create(b, loc, type, loaded).getResult(0);
}

std::string HostCode::makeTask(func::FuncOp callee, unsigned skipped) {
  std::string name = (callee.getName() + ".entry").str();
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType(SmallVector<Type>(6, ptr), {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  Value operands = fn.getArgument(0), fields = fn.getArgument(1);
  SmallVector<Value> args;
  int64_t operand = 0, number = 0, data = 2;
  for (Type type : callee.getArgumentTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && number == 0) { // tensors come first
      if (operand == int64_t(skipped))
        ++operand;
      args.push_back(loadMemRef(operands, operand++, memref));
    } else if (!memref) {
      Value v = field(fields, number++, b.getI64Type());
      args.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(), v));
    } else {
      bool matrix = memref.getRank() == 2;
      int64_t any = int64_t(1) << 40;
      args.push_back(matrix ? descriptor(fn.getArgument(data), {any, 3}, {3, 1}, memref)
                            : descriptor(fn.getArgument(data), {any}, {1}, memref));
      ++data;
    }
  }
  withoutDenormals([&] { func::CallOp::create(b, loc, callee, args); });
  func::ReturnOp::create(b, loc);
  return name;
}

std::string HostCode::makeStep(func::FuncOp callee) {
  std::string name = (callee.getName() + ".entry").str();
  Type i64 = b.getI64Type();
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  SmallVector<Value> args;
  for (auto [i, type] : llvm::enumerate(callee.getArgumentTypes().drop_back()))
    args.push_back(loadMemRef(fn.getArgument(0), i, cast<MemRefType>(type)));
  auto toIndex = [&](Value v) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), v); };
  withoutDenormals([&] {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto units = scf::ForOp::create(b, loc, toIndex(fn.getArgument(1)), toIndex(fn.getArgument(2)), one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(units.getBody());
    args.push_back(units.getInductionVar());
    func::CallOp::create(b, loc, callee, args);
  });
  func::ReturnOp::create(b, loc);
  return name;
}

} // namespace attn::entry
