//===- Task.h - The task function of a kernel -------------------*- C++ -*-===//
#ifndef ATTN_LIB_TILING_TASK_H
#define ATTN_LIB_TILING_TASK_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Mask.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attn {

/// One attention op on its way to a kernel.
struct KernelSource {
  AttentionOp op;
  ScheduleAttr schedule;
  Reindexing reindexing;
  Captures captures;
  bool hasMask; // is anything left to ask once the reindexing has taken its part?
  std::string name;
};

/// Natural units are what a score region speaks of; without one, powers of two need no factor between product and
/// weight.
tile::ScoreUnit getScoreUnit(AttentionOp op);

/// Builds the function that computes `queryTile` query rows at a time. Arguments: query, key, value, output,
/// log-sum-exp where asked for, captured tensors, membership bitmaps, the fields of AttnTask, then offsets, runs,
/// scratch, partials.
mlir::func::FuncOp buildTask(mlir::OpBuilder &builder, const KernelSource &source, llvm::StringRef name,
                             int64_t queryTile);

/// Builds the same function for threads that share a buffer (a GPU): one query tile per task, no scratch.
mlir::func::FuncOp buildBufferTask(mlir::OpBuilder &builder, const KernelSource &source, llvm::StringRef name);

/// Fills the body of a modify or mask op with the score or mask region of the attention, in arith, math and memref ops;
/// by the count, the logarithm of how often a key is kept is added to the score.
/// `tensors` are the memrefs of the captured tensors, `members` the bitmaps of the membership tables, `qkv` the memrefs
/// of query, key and value (only their extents are read).
struct RegionInputs {
  mlir::ValueRange tensors, members, qkv;
};
enum class ModifyBy { Score, Count, Both };
void fillMask(tile::MaskOp op, const KernelSource &source, RegionInputs inputs);
void fillModify(tile::ModifyOp op, const KernelSource &source, RegionInputs inputs, ModifyBy by);

/// What a task takes in place of queries where there are none: values.
inline mlir::Value getQueryOperand(AttentionOp op) { return op.getScores() ? op.getValue() : op.getQuery(); }

/// Does the mask, without what the reindexing makes true, still depend on anything?
bool leavesMask(AttentionOp op, const Reindexing &reindexing);

} // namespace attn

#endif // ATTN_LIB_TILING_TASK_H
