//===- Elements.cpp - Score and mask regions in a warp --------------------===//
//
// The region is written out once per element of a lane. What depends on the row alone, the column alone or neither is
// the same text for many elements and remains once after common subexpressions are shared.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace attn::cuda {
namespace {

/// fn(row, column, element): row and column of the tile, i32.
void forElements(Emit &e, const KernelShape &shape, Values &scores, function_ref<void(Value, Value, Value &)> fn) {
  LanePlace place(e, shape);
  int64_t columns = scores.size() / kFragmentElements / shape.rowBlocks();
  for (int64_t block = 0; block < shape.rowBlocks(); ++block)
    for (int64_t half : {0, 1}) {
      Value row = place.row(e, block, half);
      for (int64_t column = 0; column < columns; ++column)
        for (int64_t side : {0, 1})
          fn(row, e.add(place.column, column * kFragmentColumns + side),
             scores[(block * columns + column) * kFragmentElements + 2 * half + side]);
    }
}

// An index outside reads the nearest element; of an empty tensor nothing is ever read, as it is refused.
Value clamped(Emit &e, memref::LoadOp load, IRMapping &map) {
  Value memref = map.lookupOrDefault(load.getMemRef());
  Values indices;
  for (auto [dim, index] : llvm::enumerate(load.getIndices())) {
    Value last = e.sub(memref::DimOp::create(e.b, e.loc, memref, dim), e.index(1));
    indices.push_back(e.max(e.min(map.lookupOrDefault(index), last), e.index(0)));
  }
  return memref::LoadOp::create(e.b, e.loc, memref, indices);
}

Value inlineRegion(Emit &e, Block &body, ValueRange arguments) {
  IRMapping map;
  map.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator()) {
    if (auto load = dyn_cast<memref::LoadOp>(op))
      map.map(load.getResult(), clamped(e, load, map));
    else
      e.b.clone(op, map);
  }
  return map.lookupOrDefault(body.getTerminator()->getOperand(0));
}

template <typename RegionOp>
void inlineForElements(Emit &e, const KernelShape &shape, RegionOp op, Values &scores,
                       function_ref<Value(Value, ValueRange)> apply) {
  auto position = [&](Value first, Value at) { return e.add(first, e.mul(e.toIndex(at), op.getStep())); };
  forElements(e, shape, scores, [&](Value row, Value column, Value &score) {
    int64_t pack = op.getPack();
    Value query = position(op.getQuery(), e.divide(row, pack)), key = position(op.getKey(), column);
    Value head = e.add(op.getHead(), e.toIndex(e.modulo(row, pack)));
    Values arguments{op.getBatch(), head, query, key, op.getNumQueries(), op.getNumKeys()};
    llvm::append_range(arguments, op.getCaptured());
    score = apply(score, arguments);
  });
}

} // namespace

void emitModify(Emit &e, const KernelShape &shape, tile::ModifyOp op, Values &scores) {
  inlineForElements(e, shape, op, scores, [&](Value score, ValueRange arguments) {
    Values all{score};
    llvm::append_range(all, arguments);
    return inlineRegion(e, op.getBody().front(), all);
  });
}

void emitMask(Emit &e, const KernelShape &shape, tile::MaskOp op, Values &scores) {
  Value none = e.negativeInfinity();
  inlineForElements(e, shape, op, scores, [&](Value score, ValueRange arguments) {
    return e.select(inlineRegion(e, op.getBody().front(), arguments), score, none);
  });
}

void emitClip(Emit &e, const KernelShape &shape, Value count, Values &scores) {
  Value limit = e.toI32(count), none = e.negativeInfinity();
  forElements(e, shape, scores,
              [&](Value, Value column, Value &score) { score = e.select(e.less(column, limit), score, none); });
}

} // namespace attn::cuda
