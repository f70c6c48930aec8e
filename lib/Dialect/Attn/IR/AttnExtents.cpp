//===- AttnExtents.cpp - The extents that attention and its tensors share ---===//
#include "StepVerify.h"

using namespace mlir;
using namespace attn;

SmallVector<ExtentTie> AttentionTensors::getExtentTies() const {
  ExtentTie heads = makeTie("query heads", {{query, 1}, {output, 1}, {lse, 1}, {joinedOutput, 1}, {joinedLse, 1}});
  ExtentTie features = makeTie("head_dim", {{query, 3}, {key, 3}});
  std::optional<ExtentTie> distances;
  for (Value tensor : perHead) {
    unsigned rank = cast<RankedTensorType>(tensor.getType()).getRank();
    heads.places.push_back({tensor, 0});
    if (rank > 1)
      features.places.push_back({tensor, rank - 1});
    if (rank > 2)
      distances = makeTie("distances", {{tensor, 1}});
  }
  ExtentTie batch =
      makeTie("batch", {{query, 0}, {key, 0}, {value, 0}, {output, 0}, {lse, 0}, {joinedOutput, 0}, {joinedLse, 0}});
  ExtentTie queries = makeTie("queries", {{query, 2}, {output, 2}, {lse, 2}, {joinedOutput, 2}, {joinedLse, 2}});
  ExtentTie keys = makeTie("keys", {{key, 2}, {value, 2}});
  if (scores) {
    unsigned rank = cast<RankedTensorType>(scores.getType()).getRank();
    if (rank == 4)
      batch.places.push_back({scores, 0});
    heads.places.push_back({scores, rank - 3});
    queries.places.push_back({scores, rank - 2});
    keys.places.push_back({scores, rank - 1});
  }
  SmallVector<ExtentTie> ties{
      std::move(batch),
      std::move(heads),
      makeTie("key/value heads", {{key, 1}, {value, 1}}),
      std::move(queries),
      std::move(keys),
      makeTie(scores ? "head_dim" : "value head_dim", {{value, 3}, {output, 3}, {joinedOutput, 3}})};
  if (!scores)
    ties.insert(ties.end() - 1, std::move(features));
  if (distances)
    ties.push_back(std::move(*distances));
  return ties;
}

SmallVector<Value> AttentionTensors::getContiguous() const {
  SmallVector<Value> tensors;
  for (Value tensor : {query, key, value, output, joinedOutput, scores})
    if (tensor)
      tensors.push_back(tensor);
  for (Value tensor : perHead)
    if (cast<RankedTensorType>(tensor.getType()).getRank() > 1)
      tensors.push_back(tensor);
  return tensors;
}

static AttentionTensors tensorsOf(AttentionOp op) {
  AttentionTensors tensors{op.getQuery(),     op.getKey(), op.getValue(),
                           op.getOutput(),    op.getLse(), op.getJoinedOutput(),
                           op.getJoinedLse(), {},          op.getScores()};
  for (Value tensor : {op.getSink(), op.getTable(), op.getBias()})
    if (tensor)
      tensors.perHead.push_back(tensor);
  return tensors;
}

SmallVector<ExtentTie> AttentionOp::getExtentTies() { return tensorsOf(*this).getExtentTies(); }
SmallVector<Value> AttentionOp::getContiguous() { return tensorsOf(*this).getContiguous(); }
