//===- Steps.cpp - The code of a step, a unit to each thread --------------===//
#include "Kernel.h"
#include "Parameters.h"
#include "attn/Entry/Interface.h"
#include "attn/Runtime/Device.h"
#include "attn/Support/Names.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace attn::cuda {
namespace {

/// Turns accesses of memrefs that `descriptors` describes into loads and stores.
class AccessLowering {
public:
  AccessLowering(const llvm::DenseMap<Value, Descriptor> &descriptors) : descriptors(descriptors) {}

  LogicalResult lower(Operation *op) {
    OpBuilder b(op);
    Emit e(b, op->getLoc());
    if (auto load = dyn_cast<memref::LoadOp>(op))
      load.replaceAllUsesWith(e.load(load.getType(), find(load.getMemRef()).address(e, load.getIndices())));
    else if (auto store = dyn_cast<memref::StoreOp>(op))
      e.store(store.getValueToStore(), find(store.getMemRef()).address(e, store.getIndices()));
    else if (auto dim = dyn_cast<memref::DimOp>(op); dim && dim.getConstantIndex())
      dim.replaceAllUsesWith(find(dim.getSource()).extents[*dim.getConstantIndex()]);
    else
      return op->emitError("is an access of memory that no GPU code is known for");
    op->erase();
    return success();
  }

private:
  const Descriptor &find(Value memref) const { return descriptors.find(memref)->second; }

  const llvm::DenseMap<Value, Descriptor> &descriptors;
};

/// Takes the units of a thread, or of a team: its own number, then those a grid further on.
scf::ForOp forUnits(Emit &e, Value units, int64_t team) {
  auto wide = [&](Value v) { return e.toIndex(v); };
  Value teams = e.index(ATTN_STEP_THREADS / team), block = wide(NVVM::BlockIdXOp::create(e.b, e.loc, e.b.getI32Type()));
  Value first = e.add(e.mul(block, teams), wide(e.divide(e.thread(), team)));
  Value grid = e.mul(wide(NVVM::GridDimXOp::create(e.b, e.loc, e.b.getI32Type())), teams);
  return scf::ForOp::create(e.b, e.loc, first, e.toIndex(units), grid);
}

/// What the members of a team, a warp, say to each other.
void lowerTeam(Operation *op) {
  OpBuilder b(op);
  Emit e(b, op->getLoc());
  if (auto lane = dyn_cast<gpu::LaneIdOp>(op)) {
    lane.replaceAllUsesWith(e.toIndex(e.lane()));
  } else if (auto shuffle = dyn_cast<gpu::ShuffleOp>(op)) {
    IntegerAttr mask;
    bool isButterfly =
        shuffle.getMode() == gpu::ShuffleMode::XOR && matchPattern(shuffle.getOffset(), m_Constant(&mask));
    shuffle.getShuffleResult().replaceAllUsesWith(isButterfly ? e.shuffleXor(shuffle.getValue(), mask.getInt())
                                                              : e.shuffleFrom(shuffle.getValue(), shuffle.getOffset()));
  } else {
    NVVM::SyncWarpOp::create(b, op->getLoc(), e.i32(-1));
  }
  op->erase();
}

} // namespace

LogicalResult makeStepKernel(func::FuncOp code, gpu::GPUModuleOp device) {
  OpBuilder b(code.getContext());
  Emit e(b, code.getLoc());
  ArrayRef<Type> memrefs = code.getArgumentTypes().drop_back();
  LLVM::LLVMFuncOp kernel =
      declareKernel(e, memrefs, {b.getI64Type()}, device, getDeviceName(code.getName()), ATTN_STEP_THREADS);
  ValueRange arguments(kernel.getArguments());
  unsigned next = 0;
  SmallVector<Descriptor> read = readMemRefs(e, memrefs, arguments, next);
  auto team = code->getAttrOfType<IntegerAttr>(tile::kTeamAttr);
  scf::ForOp loop = forUnits(e, arguments[next], team ? team.getInt() : 1);
  LLVM::ReturnOp::create(b, e.loc, ValueRange());
  llvm::DenseMap<Value, Descriptor> descriptors;
  for (auto [argument, descriptor] : llvm::zip(code.getArguments(), read))
    descriptors.try_emplace(argument, descriptor);
  b.setInsertionPointToStart(loop.getBody());
  IRMapping map;
  map.map(code.getArguments().back(), loop.getInductionVar());
  for (Operation &op : code.getBody().front().without_terminator())
    b.clone(op, map);
  SmallVector<Operation *> accesses, calls;
  loop.walk([&](Operation *op) {
    if (isa<memref::MemRefDialect>(op->getDialect()))
      accesses.push_back(op);
    else if (isa<gpu::LaneIdOp, gpu::ShuffleOp, gpu::BarrierOp>(op))
      calls.push_back(op);
  });
  llvm::for_each(calls, lowerTeam);
  AccessLowering lowering(descriptors);
  for (Operation *access : accesses)
    if (failed(lowering.lower(access)))
      return failure();
  code.eraseBody(); // what remains says which tensors the step takes
  return success();
}

} // namespace attn::cuda
