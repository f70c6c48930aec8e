//===- AttnTileStates.cpp - How states may be used ------------------------===//
//
// A target may update a state in the memory that it lies in. So what an op has updated, or a loop or branch has taken,
// is there no longer: nothing behind may use it, but the result instead.
//
//===----------------------------------------------------------------------===//
#include "AttnTileStates.h"

using namespace mlir;
using namespace attn::tile;

static bool onlyReads(Operation *op) { return isa<ScoreOp, ReadOp, RelativeOp, CheckOp>(op); }

/// Whether `op` may run after `update`, of which it is no part.
static bool isBehind(Operation *op, Operation *update) {
  for (Operation *at = update; at; at = at->getParentOp())
    if (Operation *other = at->getBlock() ? at->getBlock()->findAncestorOpInBlock(*op) : nullptr)
      return at == other || at->isBeforeInBlock(other);
  return true;
}

static LogicalResult verifyUpdate(OpOperand &use) {
  Operation *update = use.getOwner();
  Value state = use.get();
  Region *loop = getEnclosingRepetitiveRegion(update);
  if (loop && !loop->isAncestor(state.getParentRegion()))
    return update->emitOpError()
           << "updates, in a loop, a state from outside it; carry the state through the loop (T21)";
  for (OpOperand &other : state.getUses()) {
    Operation *op = other.getOwner();
    if (&other == &use || insideMutuallyExclusiveRegions(update, op) || !isBehind(op, update))
      continue;
    InFlightDiagnostic error =
        op->emitOpError() << "uses a state that another op has updated or finished; use the result of that op (T21)";
    error.attachNote(update->getLoc()) << "the other op";
    return error;
  }
  return success();
}

LogicalResult attn::tile::verifyStateUses(Operation *op) {
  auto verify = [](Value v) {
    if (!isa<StateType>(v.getType()))
      return success();
    for (OpOperand &use : v.getUses())
      if (!onlyReads(use.getOwner()) && failed(verifyUpdate(use)))
        return failure();
    return success();
  };
  for (Value operand : op->getOperands())
    if (failed(verify(operand)))
      return failure();
  for (Value result : op->getResults())
    if (failed(verify(result)))
      return failure();
  return success();
}
