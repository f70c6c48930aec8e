//===- Parameters.cpp - What a kernel is called with ----------------------===//
#include "Parameters.h"
#include "attn/Runtime/Abi.h"

using namespace mlir;

namespace attn::cuda {

ArrayRef<Type> Parameters::memrefTypes(func::FuncOp task) {
  // Behind the memrefs: the fields, then offsets, runs, scratch, partial results.
  return task.getArgumentTypes().drop_back(tile::kNumTaskFields + 4);
}

static void addMemRefTypes(Emit &e, ArrayRef<Type> memrefs, SmallVectorImpl<Type> &to) {
  for (Type type : memrefs) {
    to.push_back(e.pointer(kGlobal));
    to.append(2 * cast<MemRefType>(type).getRank(), e.b.getI64Type());
  }
}

LLVM::LLVMFuncOp declareKernel(Emit &e, ArrayRef<Type> memrefs, ArrayRef<Type> rest, gpu::GPUModuleOp device,
                               StringRef name, int64_t threads) {
  OpBuilder &b = e.b;
  SmallVector<Type> types;
  addMemRefTypes(e, memrefs, types);
  llvm::append_range(types, rest);
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

LLVM::LLVMFuncOp declareKernel(Emit &e, func::FuncOp task, gpu::GPUModuleOp device, StringRef name, int64_t threads,
                               ArrayRef<Type> more) {
  SmallVector<Type> rest(4, e.pointer(kGlobal));
  rest.append(5, e.b.getI64Type());
  addMemRefTypes(e, more, rest);
  return declareKernel(e, Parameters::memrefTypes(task), rest, device, name, threads);
}

SmallVector<Descriptor> readMemRefs(Emit &e, ArrayRef<Type> memrefs, ValueRange arguments, unsigned &next) {
  SmallVector<Descriptor> descriptors;
  for (Type type : memrefs) {
    auto memref = cast<MemRefType>(type);
    Descriptor d{memref, arguments[next++], {}, {}};
    for (Values *to : {&d.extents, &d.strides})
      for (int64_t i = 0; i < memref.getRank(); ++i)
        to->push_back(e.toIndex(arguments[next++]));
    descriptors.push_back(std::move(d));
  }
  return descriptors;
}

Parameters Parameters::read(Emit &e, func::FuncOp task, Block &entry, ArrayRef<Type> more) {
  unsigned next = 0;
  Parameters p;
  p.memrefs = readMemRefs(e, memrefTypes(task), ValueRange(entry.getArguments()), next);
  for (Value *to :
       {&p.blocks, &p.offsets, &p.runs, &p.partials, &p.count, &p.perBatch, &p.perHead, &p.perPair, &p.parts})
    *to = entry.getArgument(next++);
  p.more = readMemRefs(e, more, ValueRange(entry.getArguments()), next);
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
