//===- Parameters.cpp - What a kernel is called with ----------------------===//
#include "Parameters.h"
#include "attn/Runtime/Abi.h"

using namespace mlir;

namespace attn::cuda {

ArrayRef<Type> Parameters::memrefTypes(func::FuncOp task) {
  // Behind the memrefs: the fields, then offsets, runs, scratch, partial results.
  return task.getArgumentTypes().drop_back(tile::kNumTaskFields + 4);
}

LLVM::LLVMFuncOp declareKernel(Emit &e, func::FuncOp task, gpu::GPUModuleOp device, StringRef name, int64_t threads,
                               ArrayRef<Type> more) {
  OpBuilder &b = e.b;
  SmallVector<Type> types;
  auto addMemRefs = [&](ArrayRef<Type> memrefs) {
    for (Type type : memrefs) {
      types.push_back(e.pointer(kGlobal));
      types.append(2 * cast<MemRefType>(type).getRank(), b.getI64Type());
    }
  };
  addMemRefs(Parameters::memrefTypes(task));
  types.append(4, e.pointer(kGlobal));
  types.append(5, b.getI64Type());
  addMemRefs(more);
  b.setInsertionPointToEnd(device.getBody());
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), types);
  auto kernel = LLVM::LLVMFuncOp::create(b, e.loc, name, type);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), b.getDenseI32ArrayAttr({int32_t(threads)}));
  // Without it ptxas aims at an occupancy and spills (docs/Performance.md).
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  kernel.setDenormalFpMathF32("preserve-sign");
  b.setInsertionPointToStart(kernel.addEntryBlock(b));
  return kernel;
}

Parameters Parameters::read(Emit &e, func::FuncOp task, Block &entry, ArrayRef<Type> more) {
  unsigned next = 0;
  auto take = [&] { return Value(entry.getArgument(next++)); };
  auto takeMemRefs = [&](ArrayRef<Type> types, SmallVectorImpl<Descriptor> &to) {
    for (Type type : types) {
      auto memref = cast<MemRefType>(type);
      Descriptor d{memref, take(), {}, {}};
      for (Values *sizes : {&d.extents, &d.strides})
        for (int64_t i = 0; i < memref.getRank(); ++i)
          sizes->push_back(e.toIndex(take()));
      to.push_back(std::move(d));
    }
  };
  Parameters p;
  takeMemRefs(memrefTypes(task), p.memrefs);
  for (Value *to :
       {&p.blocks, &p.offsets, &p.runs, &p.partials, &p.count, &p.perBatch, &p.perHead, &p.perPair, &p.parts})
    *to = take();
  takeMemRefs(more, p.more);
  return p;
}

Value Parameters::block(Emit &e, Value index) const {
  return e.at(blocks, e.mul(e.toI64(index), int64_t(sizeof(AttnBlock))));
}

Value Parameters::partialBytes(Emit &e, Value block, Value pair, int64_t width) const {
  Value row = field(e, block, offsetof(AttnBlock, partial_row) / 8);
  row = e.add(row, e.make<arith::MulIOp>(e.toI64(pair), perPair));
  return e.mul(row, 4 * width);
}

} // namespace attn::cuda
