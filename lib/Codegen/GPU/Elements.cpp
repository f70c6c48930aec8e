//===- Elements.cpp - Score and mask regions in a warp --------------------===//
//
// The region is written out once per element of a lane. What depends on the row alone, the column alone or neither is
// the same text for many elements and remains once after common subexpressions are shared.
//
//===----------------------------------------------------------------------===//
#include "Elements.h"
#include "RegionCode.h"

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

/// fn(code of the region, its arguments behind the score, element)
template <typename RegionOp>
void forArguments(Emit &e, const KernelShape &shape, RegionOp op, Values &scores,
                  function_ref<void(const RegionCode &, Values, Value &)> fn) {
  RegionCode code(op.getBody().front(), std::is_same_v<RegionOp, tile::ModifyOp> ? 1 : 0, op.getNonnegative());
  int64_t pack = op.getPack(), step = static_cast<int32_t>(op.getStep());
  Value batch = e.toI32(op.getBatch()), firstHead = e.toI32(op.getHead()), firstQuery = e.toI32(op.getQuery()),
        firstKey = e.toI32(op.getKey()), queries = e.toI32(op.getNumQueries()), keys = e.toI32(op.getNumKeys());
  forElements(e, shape, scores, [&](Value row, Value column, Value &score) {
    Value query = e.add(firstQuery, e.mul(e.divide(row, pack), step)), key = e.add(firstKey, e.mul(column, step));
    Values arguments{batch, e.add(firstHead, e.modulo(row, pack)), query, key, queries, keys};
    llvm::append_range(arguments, op.getCaptured());
    fn(code, arguments, score);
  });
}

} // namespace

void emitModify(Emit &e, const KernelShape &shape, tile::ModifyOp op, Values &scores) {
  forArguments(e, shape, op, scores, [&](const RegionCode &code, Values arguments, Value &score) {
    arguments.insert(arguments.begin(), score);
    score = code.write(e, arguments);
  });
}

void emitMask(Emit &e, const KernelShape &shape, tile::MaskOp op, Values &scores) {
  Value none = e.negativeInfinity();
  forArguments(e, shape, op, scores, [&](const RegionCode &code, const Values &arguments, Value &score) {
    score = e.select(code.write(e, arguments), score, none);
  });
}

void emitClip(Emit &e, const KernelShape &shape, Value count, Values &scores) {
  Value limit = e.toI32(count), none = e.negativeInfinity();
  forElements(e, shape, scores,
              [&](Value, Value column, Value &score) { score = e.select(e.less(column, limit), score, none); });
}

} // namespace attn::cuda
