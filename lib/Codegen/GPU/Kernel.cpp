//===- Kernel.cpp - From a task to the frame of a kernel ------------------===//
#include "Kernel.h"
#include "Descriptor.h"
#include "attn/Runtime/Abi.h"

using namespace mlir;

namespace attn::cuda {

int64_t placeBuffers(Operation *task, const KernelShape &shape) {
  int64_t bytes = 0;
  task->walk([&](tile::BufferOp op) {
    op->setAttr("offset", IntegerAttr::get(IntegerType::get(op.getContext(), 64), bytes));
    bytes += op.getBuffer().getType().getSlots() * slotBytes(op.getBuffer().getType(), shape);
  });
  return bytes;
}

namespace {

/// Parameters of a kernel, and the values of the task's arguments that come of them.
class FrameBuilder {
public:
  FrameBuilder(func::FuncOp task, gpu::GPUModuleOp device, const KernelShape &shape)
      : task(task), device(device), shape(shape), b(task.getContext()), e(b, task.getLoc()) {}

  LLVM::LLVMFuncOp build();

private:
  unsigned numMemRefs() { return task.getNumArguments() - tile::kNumTaskFields - 4; }
  SmallVector<Type> parameterTypes();
  LLVM::LLVMFuncOp declare();
  Value parameter() { return entry->getArgument(nextParameter++); }
  /// The value of a memref argument that its parts make.
  Value asMemRef(MemRefType type, const Descriptor &descriptor);
  Descriptor readMemRef(MemRefType type);
  Value contiguous(BlockArgument argument, Value pointer);
  void bindMemRefs();
  void bindFields();
  void bindPlan();
  Value field(Value block, int64_t index) { return e.load(b.getI64Type(), e.at(block, 8 * index)); }

  func::FuncOp task;
  gpu::GPUModuleOp device;
  const KernelShape &shape;
  OpBuilder b;
  Emit e;
  Block *entry = nullptr;
  unsigned nextParameter = 0;
  SmallVector<Descriptor> memrefs;
  IRMapping map;
  Value block, pair, batch, head;
};

// Memrefs, then blocks, offsets, runs and partial results, then the number of blocks and three distances.
SmallVector<Type> FrameBuilder::parameterTypes() {
  SmallVector<Type> types;
  for (Type type : task.getArgumentTypes().take_front(numMemRefs())) {
    types.push_back(e.pointer(kGlobal));
    types.append(2 * cast<MemRefType>(type).getRank(), b.getI64Type());
  }
  types.append(4, e.pointer(kGlobal));
  types.append(4, b.getI64Type());
  return types;
}

LLVM::LLVMFuncOp FrameBuilder::declare() {
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), parameterTypes());
  auto kernel = LLVM::LLVMFuncOp::create(b, e.loc, kernelName(task.getName()), type);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(), b.getDenseI32ArrayAttr({int32_t(shape.threads())}));
  // Without it ptxas aims at an occupancy and spills (docs/Performance.md).
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  kernel.setDenormalFpMathF32("preserve-sign");
  return kernel;
}

Descriptor FrameBuilder::readMemRef(MemRefType type) {
  Descriptor d{type, parameter(), {}, {}};
  for (Values *to : {&d.extents, &d.strides})
    for (int64_t i = 0; i < type.getRank(); ++i)
      to->push_back(e.toIndex(parameter()));
  return d;
}

Value FrameBuilder::asMemRef(MemRefType type, const Descriptor &descriptor) {
  return UnrealizedConversionCastOp::create(b, e.loc, TypeRange{type}, descriptor.parts()).getResult(0);
}

Value FrameBuilder::contiguous(BlockArgument argument, Value pointer) {
  auto type = cast<MemRefType>(argument.getType());
  Descriptor d{type, pointer, {}, {}};
  int64_t inner = 1; // extents are not asked for
  for (int64_t i = type.getRank(); i-- > 0;) {
    int64_t extent = type.getDimSize(i);
    d.extents.push_back(e.index(ShapedType::isDynamic(extent) ? 0 : extent));
    d.strides.insert(d.strides.begin(), e.index(inner));
    inner *= ShapedType::isDynamic(extent) ? 1 : extent;
  }
  std::reverse(d.extents.begin(), d.extents.end());
  return asMemRef(type, d);
}

void FrameBuilder::bindMemRefs() {
  for (BlockArgument argument : task.getArguments().take_front(numMemRefs())) {
    auto type = cast<MemRefType>(argument.getType());
    memrefs.push_back(readMemRef(type));
    map.map(argument, asMemRef(type, memrefs.back()));
  }
}

// The block's record says what is the same for all pairs of batch and head.
void FrameBuilder::bindFields() {
  Value blocks = entry->getArgument(entry->getNumArguments() - 8);
  Value count = e.toI32(entry->getArgument(entry->getNumArguments() - 4));
  Value number = NVVM::BlockIdXOp::create(b, e.loc, b.getI32Type());
  block = e.at(blocks, e.mul(e.toI64(e.make<arith::RemUIOp>(number, count)), int64_t(sizeof(AttnBlock))));
  pair = e.toIndex(e.make<arith::DivUIOp>(number, count));
  Value heads = memrefs[0].extents[1], keyHeads = memrefs[1].extents[1];
  batch = e.make<arith::DivUIOp>(pair, heads);
  head = e.make<arith::RemUIOp>(pair, heads);
  Value group = e.make<arith::DivUIOp>(heads, keyHeads);
  for (int64_t i = 0; i < tile::kNumTaskFields; ++i) {
    Value value = i == tile::kBatch     ? batch
                  : i == tile::kHead    ? head
                  : i == tile::kKeyHead ? e.make<arith::DivUIOp>(head, group)
                                        : e.toIndex(field(block, i));
    map.map(task.getArgument(numMemRefs() + i), value);
  }
}

void FrameBuilder::bindPlan() {
  parameter(); // blocks, read above
  Value offsets = parameter(), runs = parameter(), partials = parameter();
  parameter(); // their number
  Value perBatch = parameter(), perHead = parameter(), perPair = parameter();
  Value tile = field(block, offsetof(AttnBlock, plan_tile) / 8);
  tile = e.add(tile, e.make<arith::MulIOp>(e.toI64(batch), perBatch));
  tile = e.add(tile, e.make<arith::MulIOp>(e.toI64(head), perHead));
  Value row = field(block, offsetof(AttnBlock, partial_row) / 8);
  row = e.add(row, e.make<arith::MulIOp>(e.toI64(pair), perPair));
  auto last = task.getArguments().take_back(4);
  map.map(last[0], contiguous(last[0], e.at(offsets, e.mul(tile, 8))));
  map.map(last[1], contiguous(last[1], runs));
  map.map(last[2], contiguous(last[2], partials)); // scratch: nobody reads it
  map.map(last[3], contiguous(last[3], e.at(partials, e.mul(row, 4 * (shape.valueDim + 2)))));
}

LLVM::LLVMFuncOp FrameBuilder::build() {
  b.setInsertionPointToEnd(device.getBody());
  LLVM::LLVMFuncOp kernel = declare();
  entry = kernel.addEntryBlock(b);
  b.setInsertionPointToStart(entry);
  bindMemRefs();
  bindFields();
  bindPlan();
  for (Operation &op : task.getBody().front().without_terminator())
    b.clone(op, map);
  LLVM::ReturnOp::create(b, e.loc, ValueRange());
  return kernel;
}

} // namespace

std::string kernelName(StringRef task) {
  std::string name = task.str();
  std::replace(name.begin(), name.end(), '.', '$'); // PTX knows no dots in names
  return name;
}

LLVM::LLVMFuncOp makeKernel(func::FuncOp task, gpu::GPUModuleOp device, const KernelShape &shape) {
  return FrameBuilder(task, device, shape).build();
}

} // namespace attn::cuda
