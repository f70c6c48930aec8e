//===- TaskForm.cpp - The tasks that there is CPU code for ----------------===//
#include "TaskForm.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn::cpu {

/// The state that `state` is an update of, or stands for; null where that is not known.
static Value previousState(Value state) {
  if (auto argument = dyn_cast<BlockArgument>(state)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop ? loop.getTiedLoopInit(argument)->get() : Value();
  }
  Operation *op = state.getDefiningOp();
  unsigned result = cast<OpResult>(state).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getInitArgs()[result];
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return branch.thenYield().getOperand(result);
  if (auto softmax = dyn_cast<tile::SoftmaxOp>(op))
    return softmax.getState();
  if (auto accumulate = dyn_cast<tile::AccumulateOp>(op))
    return accumulate.getState();
  return isa<tile::BeginOp, tile::ClearOp, tile::RestartOp, tile::SinkOp>(op) ? op->getOperand(0) : Value();
}

tile::SlotOp findSlot(Value state) {
  while (state) {
    if (auto slot = state.getDefiningOp<tile::SlotOp>())
      return slot;
    state = previousState(state);
  }
  return nullptr;
}

ScoreChain ScoreChain::of(tile::SoftmaxOp softmax) {
  ScoreChain chain;
  Value scores = softmax.getScores();
  if ((chain.mask = scores.getDefiningOp<tile::MaskOp>()))
    scores = chain.mask.getTile();
  if ((chain.modify = scores.getDefiningOp<tile::ModifyOp>()))
    scores = chain.modify.getTile();
  if ((chain.relative = scores.getDefiningOp<tile::RelativeOp>()))
    scores = chain.relative.getTile();
  chain.score = scores.getDefiningOp<tile::ScoreOp>();
  chain.read = scores.getDefiningOp<tile::ReadOp>();
  return chain;
}

namespace {

class FormCheck {
public:
  explicit FormCheck(func::FuncOp task) : task(task) {}

  LogicalResult run() {
    WalkResult walked = task.walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(check(op)); });
    return failure(walked.wasInterrupted());
  }

private:
  LogicalResult check(Operation *op) {
    for (Value v : llvm::concat<Value>(SmallVector<Value>(op->getOperands()), SmallVector<Value>(op->getResults())))
      if (isa<tile::StateType>(v.getType()) && failed(checkState(op, v)))
        return failure();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return checkSame(op, loop.getInits(), loop.getYieldedValues());
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && branch.elseBlock())
      return checkSame(op, branch.thenYield().getOperands(), branch.elseYield().getOperands());
    if (auto softmax = dyn_cast<tile::SoftmaxOp>(op))
      return checkSoftmax(softmax);
    if (auto accumulate = dyn_cast<tile::AccumulateOp>(op))
      return checkAccumulate(accumulate);
    bool isTile = isa_and_present<tile::AttnTileDialect>(op->getDialect());
    if (!isTile || isa<tile::SlotOp, tile::BeginOp, tile::ClearOp, tile::RestartOp, tile::ScoreOp, tile::ReadOp,
                       tile::RelativeOp, tile::ModifyOp, tile::MaskOp, tile::YieldOp, tile::CheckOp, tile::SinkOp,
                       tile::FinishOp, tile::FinishPartialOp>(op))
      return success();
    return op->emitError() << "'" << op->getName()
                           << "' has no CPU code: it is of a task for a GPU; leave warps out of "
                           << "the schedule";
  }

  LogicalResult checkState(Operation *op, Value state) {
    tile::SlotOp slot = findSlot(state);
    if (!slot)
      return op->emitError()
             << "'" << op->getName() << "' has a state that comes from no attn_tile.slot; states of a "
             << "CPU task live in slots of its workspace, and pass through tile ops, scf.for and scf.if";
    if (!first)
      first = slot;
    if (slot.getState().getType() == first.getState().getType() && slot.getKeyTile() == first.getKeyTile())
      return success();
    InFlightDiagnostic error = slot.emitError("differs from another slot of this task in type or key_tile; make them "
                                              "alike: a task has one set of micro-kernels");
    error.attachNote(first.getLoc()) << "the other slot";
    return error;
  }

  LogicalResult checkSame(Operation *op, ValueRange ones, ValueRange others) {
    for (auto [one, other] : llvm::zip_equal(ones, others))
      if (isa<tile::StateType>(one.getType()) && findSlot(one) != findSlot(other))
        return op->emitError() << "'" << op->getName()
                               << "' hands on a state of one of two slots; a state stays in its "
                               << "slot";
    return success();
  }

  LogicalResult checkSoftmax(tile::SoftmaxOp op) {
    ScoreChain chain = ScoreChain::of(op);
    if (!chain.score && !chain.read)
      return op.emitError(
          "its scores are not those of attn_tile.score or attn_tile.read, then attn_tile.relative, attn_tile.modify "
          "and "
          "attn_tile.mask in this order (all but the first may be missing), but a CPU computes all of these as one");
    if (chain.score && !isa<MemRefType>(chain.score.getKey().getType()))
      return chain.score.emitError("reads keys from a buffer, which a CPU has not; take them from a memref");
    bool isOwn = !chain.relative || findSlot(chain.relative.getState()) == findSlot(op.getState());
    Value state = chain.score ? chain.score.getState() : chain.read.getState();
    if (isOwn && findSlot(state) == findSlot(op.getState()))
      return success();
    return op.emitError("its scores are those of another state; use those of its own");
  }

  // Weights lie in one place of the workspace, until the next tile.
  LogicalResult checkAccumulate(tile::AccumulateOp op) {
    auto softmax = op.getWeights().getDefiningOp<tile::SoftmaxOp>();
    if (!softmax || softmax->getBlock() != op->getBlock() || findSlot(softmax.getState()) != findSlot(op.getState()))
      return op.emitError("its weights are not those of an attn_tile.softmax of the same state in the same block");
    for (Operation *between = softmax->getNextNode(); between != op; between = between->getNextNode())
      if (between->getNumRegions() || isa<tile::SoftmaxOp>(between))
        return op.emitError("another tile may be computed between it and its attn_tile.softmax; put it right behind");
    if (isa<MemRefType>(op.getValue().getType()))
      return success();
    return op.emitError("reads values from a buffer, which a CPU has not; take them from a memref");
  }

  func::FuncOp task;
  tile::SlotOp first;
};

} // namespace

LogicalResult checkTaskForm(func::FuncOp task) { return FormCheck(task).run(); }

} // namespace attn::cpu
