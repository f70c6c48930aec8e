//===- TaskFrame.h - What every form of a task shares -----------*- C++ -*-===//
#ifndef ATTN_LIB_TILING_TASKFRAME_H
#define ATTN_LIB_TILING_TASKFRAME_H

#include "Task.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {

/// The arguments of a task function and what is made of them before its loops; the members are the values that its
/// parts share.
class TaskFrame {
protected:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;

  TaskFrame(mlir::OpBuilder &b, const KernelSource &source, int64_t queryTile)
      : b(b), loc(source.op->getLoc()), source(source), op(source.op), queryTile(queryTile),
        unit(getScoreUnit(source.op)) {}

  /// A private function with named arguments, the builder at the start of its body.
  mlir::func::FuncOp start(llvm::StringRef name);
  void finish() { mlir::func::ReturnOp::create(b, loc); }

  /// Brings products to the unit of the states.
  Value scale();
  tile::StateType stateType();
  tile::TileType tileType() { return tile::TileType::get(b.getContext(), source.schedule.getKeyTile(), queryTile); }
  /// Scores of `count` keys from `keyRow` and the query tile from `row`: products with the rows of `keys` at `slot`, or
  /// as they lie.
  Value products(Value state, Value keys, Value slot, Value row, Value keyRow, Value count);
  /// The products with distances, where there are any, on the same; `buffer` has the queries, or is null.
  Value relative(Value scores, Value state, Value buffer, Value row, Value keyRow);
  /// The score region, where there is one, on scores of the query tile from `row` and the key tile from `keyRow`.
  Value modify(Value scores, Value row, Value keyRow);
  /// How often keys are kept, where the mask counts, on the same; `modified`: and the score region.
  Value countKept(Value scores, Value row, Value keyRow, bool modified);
  Value mask(Value scores, Value row, Value keyRow);
  /// Is this task one of the parts of split keys?
  Value isPartial();
  /// Runs `storePartial` in a part of split keys, `store` elsewhere.
  void storeTile(llvm::function_ref<void()> storePartial, llvm::function_ref<void()> store);
  /// The state, with the logit of the sink where there is one.
  Value addSink(Value state);

  int64_t pack() { return source.schedule.getPack(); }
  int64_t step() { return source.reindexing.step(); }
  Value position(Value token, Value row) { return add(token, mul(row, step())); }
  Value index(int64_t v); // constants stand at the start, each once
  Value add(Value x, Value y) { return b.createOrFold<mlir::arith::AddIOp>(loc, x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<mlir::arith::SubIOp>(loc, x, y); }
  Value mul(Value x, int64_t y) { return b.createOrFold<mlir::arith::MulIOp>(loc, x, index(y)); }
  Value min(Value x, Value y) { return b.createOrFold<mlir::arith::MinSIOp>(loc, x, y); }
  Value max(Value x, Value y) { return b.createOrFold<mlir::arith::MaxSIOp>(loc, x, y); }
  Value compare(mlir::arith::CmpIPredicate p, Value x, Value y) {
    return b.createOrFold<mlir::arith::CmpIOp>(loc, p, x, y);
  }
  Value load(Value memref, ValueRange at) { return mlir::memref::LoadOp::create(b, loc, memref, at); }
  Value captured(Value tensor) { return tensors[*source.captures.findTensor(tensor)]; }
  Value toIndex(Value v) { return mlir::arith::IndexCastOp::create(b, loc, b.getIndexType(), v); }

  mlir::OpBuilder &b;
  mlir::Location loc;
  const KernelSource &source;
  AttentionOp op;
  int64_t queryTile;
  tile::ScoreUnit unit;

  Value query, key, value, output, lse;
  llvm::SmallVector<Value> tensors, members, field;
  Value offsets, runs, scratch, partials;
  Value dim, valueDim;
  Value factor; // scale()
  // Rows of the class: token, token + step, ...; of packed heads, one matrix each.
  Value queryView, keyView, valueView, outputView, scoresView, lseRow;

private:
  llvm::SmallVector<mlir::Type> argumentTypes();
  void bindArguments();
  void nameArguments(mlir::func::FuncOp fn);
  void makeViews();
  Value view(Value tensor, Value head, Value token, Value count, int64_t heads = 1);
  Value viewScores(Value tensor);
  Value lseView();
  Value modifyBy(Value scores, Value row, Value keyRow, ModifyBy by);
  int64_t powerOf2In(int64_t rows);
  Value positionAtMultiple(Value token, Value row, int64_t multiple);
  template <typename RegionOp>
  RegionOp region(Value scores, Value row, Value keyRow);
  RegionInputs regionInputs() { return {tensors, members, qkv}; }

  mlir::Block *entry = nullptr;
  llvm::SmallVector<Value> qkv;
  llvm::DenseMap<int64_t, Value> constants;
};

} // namespace attn

#endif // ATTN_LIB_TILING_TASKFRAME_H
