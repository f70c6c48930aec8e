//===- AttnExtents.cpp - The extents that attention and its tensors share ---===//
#include "StepVerify.h"

using namespace mlir;
using namespace attn;

SmallVector<ExtentTie> AttentionTensors::getExtentTies() const {
  ExtentTie heads = makeTie("query heads", {{query, 1}, {output, 1}, {lse, 1}, {joinedOutput, 1}, {joinedLse, 1}});
  for (Value tensor : perHead)
    heads.places.push_back({tensor, 0});
  return {
      makeTie("batch", {{query, 0}, {key, 0}, {value, 0}, {output, 0}, {lse, 0}, {joinedOutput, 0}, {joinedLse, 0}}),
      std::move(heads),
      makeTie("key/value heads", {{key, 1}, {value, 1}}),
      makeTie("queries", {{query, 2}, {output, 2}, {lse, 2}, {joinedOutput, 2}, {joinedLse, 2}}),
      makeTie("keys", {{key, 2}, {value, 2}}),
      makeTie("head_dim", {{query, 3}, {key, 3}}),
      makeTie("value head_dim", {{value, 3}, {output, 3}, {joinedOutput, 3}})};
}

SmallVector<Value> AttentionTensors::getContiguous() const {
  SmallVector<Value> tensors{query, key, value, output};
  if (joinedOutput)
    tensors.push_back(joinedOutput);
  return tensors;
}

static AttentionTensors tensorsOf(AttentionOp op) {
  AttentionTensors tensors{op.getQuery(), op.getKey(),          op.getValue(),     op.getOutput(),
                           op.getLse(),   op.getJoinedOutput(), op.getJoinedLse(), {}};
  if (op.getSink())
    tensors.perHead.push_back(op.getSink());
  return tensors;
}

SmallVector<ExtentTie> AttentionOp::getExtentTies() { return tensorsOf(*this).getExtentTies(); }
SmallVector<Value> AttentionOp::getContiguous() { return tensorsOf(*this).getContiguous(); }
