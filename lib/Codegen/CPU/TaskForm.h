//===- TaskForm.h - The tasks that there is CPU code for --------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_CPU_TASKFORM_H
#define ATTN_LIB_CODEGEN_CPU_TASKFORM_H

#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn::cpu {

/// The slot that a state lives in: states are updated in place, so all states of a chain share it. Null where it comes
/// from elsewhere than slots, tile ops, scf.for and scf.if.
tile::SlotOp findSlot(mlir::Value state);

/// What stands between the products and a softmax, which one micro-kernel does together. `score` is null where it is
/// anything else than score or read, relative, modify and mask, in this order.
struct ScoreChain {
  tile::ScoreOp score;
  tile::ReadOp read;
  tile::RelativeOp relative;
  tile::ModifyOp modify;
  tile::MaskOp mask;

  /// Are scores looked at one by one behind the products?
  bool rowByRow() const { return read || relative || modify || mask; }

  static ScoreChain of(tile::SoftmaxOp softmax);
};

/// Fails, with an error at its place, where an op of the task stands in no form that there is code for.
mlir::LogicalResult checkTaskForm(mlir::func::FuncOp task);

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_TASKFORM_H
