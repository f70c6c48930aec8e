//===- Kernels.h - What each tile op does in a warp -------------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_KERNELS_H
#define ATTN_LIB_CODEGEN_GPU_KERNELS_H

#include "Shape.h"

namespace attn::cuda {

/// The reference as it is subtracted: 0 for a row that has seen no key, whose scores are all -infinity.
inline Value finiteReference(Emit &e, Value reference) {
  Value none = e.cmpf(mlir::arith::CmpFPredicate::OEQ, reference, e.negativeInfinity());
  return e.select(none, e.f32(0), reference);
}

/// A score times this is in the unit of partial results.
inline Value partialUnit(Emit &e, const KernelShape &shape, Value scale) {
  return shape.natural ? e.f32(1) : e.mulf(scale, e.f32(0.25f));
}

/// fn(i) for the elements i of a tile that belong to row `row` of the lane.
template <typename Fn>
void forRow(const KernelShape &shape, size_t elements, int64_t row, Fn fn) {
  int64_t perBlock = elements / shape.rowBlocks();
  for (int64_t at = (row / 2) * perBlock; at < (row / 2 + 1) * perBlock; at += kFragmentElements)
    for (int64_t side : {0, 1})
      fn(at + 2 * (row % 2) + side);
}

/// A matrix of rows in global memory: pointer, rows, columns, elements between rows; or `heads` of them, elements
/// between heads. Row r of a tile is row r / heads of head r % heads.
struct GlobalRows {
  Value pointer, rows, columns, stride;
  int64_t heads = 1;
  Value headStride; // of several

  /// Bytes from row 0 to row `row` of a tile.
  Value offset(Emit &e, Value row, int64_t elementBytes) const {
    Value elements = e.mul(e.toI64(e.divide(row, heads)), e.toI64(stride));
    if (heads > 1)
      elements = e.add(elements, e.mul(e.toI64(e.modulo(row, heads)), e.toI64(headStride)));
    return e.mul(elements, elementBytes);
  }
  /// Do all rows start at multiples of 16 bytes?
  Value startsAtChunks(Emit &e, int64_t elementBytes) const {
    Value strides = heads > 1 ? e.either(e.toI64(stride), e.toI64(headStride)) : e.toI64(stride);
    Value address = mlir::LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI64Type(), pointer);
    return e.equal(e.bits(e.either(address, e.mul(strides, elementBytes)), 15), e.i64(0));
  }
};

/// Copies rows [row, row + count) of a matrix, or of every head, into shared memory at `to`, `capacity` rows by
/// `layout`; what lies outside the rows or columns becomes 0. All threads of the block take part. Asynchronous where
/// the chip can and where rows start at multiples of 16 bytes; otherwise element by element.
void emitFetch(Emit &e, const KernelShape &shape, const SharedLayout &layout, GlobalRows from, Value row, Value count,
               Value to, int64_t capacity);

/// The queries of a block, fetched to shared memory at `query`, as a state that has seen no key.
State emitBegin(Emit &e, const KernelShape &shape, Value query, Value factor, Value scale);

/// S = Q K^T for a tile of `keys` key rows at `key` in shared memory: [row block][column block][element].
Values emitScore(Emit &e, const KernelShape &shape, const State &state, Value key, int64_t keys);

/// The scores of a tile of `keys` keys from memory, where row and key of the tile lie `at`.
Values emitRead(Emit &e, const KernelShape &shape, const State &state, llvm::function_ref<Value(Value, Value)> at,
                Type element, int64_t keys);

/// What queries are multiplied with besides keys: the address of a row of the table for a row and a key row of the
/// tile, and of what is added to the queries (may be null).
struct DistanceRows {
  Value query; // in shared memory
  llvm::function_ref<Value(Value row, Value key)> tableRow;
  llvm::function_ref<Value(Value row)> biasRow;
  Type element; // of table and bias
};
/// Adds these products to the scores.
void emitRelative(Emit &e, const KernelShape &shape, const State &state, const DistanceRows &from, Values &scores);

/// Raises the references where needed, adds the weights to the sums and leaves them in `scores`. `exact`: a score of
/// +infinity counts as the largest number, and references are the row maxima.
void emitSoftmax(Emit &e, const KernelShape &shape, State &state, Values &scores, bool exact);

/// Adds `logits[row]`, in natural units, to the sums, one for each row that a lane shares in.
void emitSink(Emit &e, const KernelShape &shape, State &state, ValueRange logits);

/// O += P V for value rows at `value` in shared memory. `skipZero`: weight 0 adds nothing even to a NaN.
void emitAccumulate(Emit &e, const KernelShape &shape, State &state, ValueRange weights, Value value, bool skipZero);

/// Has any row of the block a sum or output that is no finite number, or lost its weights to a reference that, scaled,
/// is no f32 or is rounded far from the largest score?
Value emitCheck(Emit &e, const KernelShape &shape, const State &state);

/// Stores output rows [row, rows) and, where `lse` is not null, the log-sum-exp.
struct OutputRows {
  GlobalRows output;
  GlobalRows lse; // columns: none
};
void emitFinish(Emit &e, const KernelShape &shape, const State &state, OutputRows to, Value row);

/// Stores unnormalised rows for a merge: the sums of weighted values of all rows, then the reference and sum of each.
void emitFinishPartial(Emit &e, const KernelShape &shape, const State &state, Value partials, Value row, Value rows);

/// The log-sum-exp of a row from its reference, in the unit of partial results, and its sum.
Value logSumExp(Emit &e, const KernelShape &shape, Value reference, Value sum);

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_KERNELS_H
