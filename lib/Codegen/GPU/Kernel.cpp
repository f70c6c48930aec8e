//===- Kernel.cpp - From a task to the frame of a kernel ------------------===//
#include "Kernel.h"
#include "Parameters.h"
#include "attn/Runtime/Abi.h"
#include "attn/Runtime/Device.h"
#include "attn/Support/Names.h"

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

/// The values of a task's arguments, from the parameters of its kernel.
class Binder {
public:
  Binder(Emit &e, func::FuncOp task, const Parameters &parameters, const KernelShape &shape)
      : e(e), task(task), parameters(parameters), shape(shape) {}

  IRMapping bind();

private:
  /// The value of a memref argument that its parts make.
  Value asMemRef(const Descriptor &descriptor) {
    return UnrealizedConversionCastOp::create(e.b, e.loc, TypeRange{descriptor.type}, descriptor.parts()).getResult(0);
  }
  Value contiguous(BlockArgument argument, Value pointer);
  void bindFields(ValueRange arguments);
  void bindPlan(ValueRange arguments);

  Emit &e;
  func::FuncOp task;
  const Parameters &parameters;
  const KernelShape &shape;
  IRMapping map;
  Value block, pair, batch, packedHeads;
};

Value Binder::contiguous(BlockArgument argument, Value pointer) {
  auto type = cast<MemRefType>(argument.getType());
  Descriptor d{type, pointer, {}, {}};
  int64_t inner = 1;
  for (int64_t i = type.getRank(); i-- > 0;) {
    bool open = type.isDynamicDim(i); // nobody asks for that extent
    d.extents.insert(d.extents.begin(), e.index(open ? 0 : type.getDimSize(i)));
    d.strides.insert(d.strides.begin(), e.index(inner));
    inner *= open ? 1 : type.getDimSize(i);
  }
  return asMemRef(d);
}

// The block's record says what is the same for all pairs of batch and head.
void Binder::bindFields(ValueRange arguments) {
  Value number = NVVM::BlockIdXOp::create(e.b, e.loc, e.b.getI32Type()), count = e.toI32(parameters.count);
  block = parameters.block(e, e.make<arith::RemUIOp>(number, count));
  pair = e.toIndex(e.make<arith::DivUIOp>(number, count));
  Value heads = parameters.memrefs[3].extents[1], keyHeads = parameters.memrefs[1].extents[1];
  Value packs = e.divide(heads, shape.pack);
  batch = e.make<arith::DivUIOp>(pair, packs);
  packedHeads = e.make<arith::RemUIOp>(pair, packs);
  Value head = e.mul(packedHeads, shape.pack);
  Value group = e.make<arith::DivUIOp>(heads, keyHeads);
  for (auto [i, argument] : llvm::enumerate(arguments))
    map.map(argument, i == tile::kBatch     ? batch
                      : i == tile::kHead    ? head
                      : i == tile::kKeyHead ? e.make<arith::DivUIOp>(head, group)
                                            : e.toIndex(Parameters::field(e, block, i)));
}

void Binder::bindPlan(ValueRange arguments) {
  Value tile = Parameters::field(e, block, offsetof(AttnBlock, plan_tile) / 8);
  tile = e.add(tile, e.make<arith::MulIOp>(e.toI64(batch), parameters.perBatch));
  tile = e.add(tile, e.make<arith::MulIOp>(e.toI64(packedHeads), parameters.perHead));
  Value own = e.at(parameters.partials, parameters.partialBytes(e, block, pair, attn_partial_floats(shape.valueDim)));
  Value pointers[] = {e.at(parameters.offsets, e.mul(tile, 8)), parameters.runs, own /*scratch: not used*/, own};
  for (auto [argument, pointer] : llvm::zip_equal(arguments, pointers))
    map.map(argument, contiguous(cast<BlockArgument>(argument), pointer));
}

IRMapping Binder::bind() {
  auto arguments = task.getArguments();
  for (auto [argument, descriptor] : llvm::zip(arguments, parameters.memrefs))
    map.map(argument, asMemRef(descriptor));
  bindFields(ValueRange(arguments).slice(parameters.memrefs.size(), tile::kNumTaskFields));
  bindPlan(ValueRange(arguments).take_back(4));
  return map;
}

/// Says that most tiles are full. LLVM then leaves in the branch over the mask what only masks need: out of the loop it
/// would take registers from the products. It heeds that only in functions with a count of entries, whatever number.
void expectFullTiles(Emit &e, LLVM::LLVMFuncOp kernel) {
  kernel.setFunctionEntryCount(1);
  kernel.walk([&](tile::ClipOp clip) {
    auto branch = dyn_cast<scf::IfOp>(clip->getParentOp());
    if (!branch)
      return;
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPoint(branch);
    Value no = arith::ConstantIntOp::create(e.b, e.loc, e.b.getI1Type(), 0);
    branch.getConditionMutable().assign(LLVM::ExpectOp::create(e.b, e.loc, branch.getCondition(), no));
  });
}

} // namespace

LLVM::LLVMFuncOp makeKernel(func::FuncOp task, gpu::GPUModuleOp device, const KernelShape &shape) {
  OpBuilder b(task.getContext());
  Emit e(b, task.getLoc());
  LLVM::LLVMFuncOp kernel = declareKernel(e, task, device, getDeviceName(task.getName()), shape.threads());
  Parameters parameters = Parameters::read(e, task, kernel.getBody().front());
  IRMapping map = Binder(e, task, parameters, shape).bind();
  for (Operation &op : task.getBody().front().without_terminator())
    b.clone(op, map);
  expectFullTiles(e, kernel);
  LLVM::ReturnOp::create(b, e.loc, ValueRange());
  return kernel;
}

} // namespace attn::cuda
