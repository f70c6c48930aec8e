//===- AttnExtents.cpp - The extents that attention and its tensors share ---===//
#include "StepVerify.h"

using namespace mlir;
using namespace attn;

static unsigned rankOf(Value tensor) { return tensor ? cast<RankedTensorType>(tensor.getType()).getRank() : 0; }

/// The dimensions of a list of rows, [batch, groups, rows], of which the first two may be missing.
static void addList(Value list, ExtentTie &batch, ExtentTie &groups, ExtentTie &rows) {
  unsigned rank = rankOf(list);
  if (rank > 1)
    batch.places.push_back({list, 0});
  if (rank > 2)
    groups.places.push_back({list, 1});
  if (rank > 0)
    rows.places.push_back({list, rank - 1});
}

SmallVector<ExtentTie> AttentionTensors::getExtentTies() const {
  ExtentTie heads = makeTie("query heads", {{output, 1}, {lse, 1}, {joinedOutput, 1}, {joinedLse, 1}});
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
  ExtentTie queries = makeTie("queries", {{output, 2}, {lse, 2}, {joinedOutput, 2}, {joinedLse, 2}});
  ExtentTie keys = makeTie("keys", {{key, 2}, {value, 2}}),
            keyHeads = makeTie("key/value heads", {{key, 1}, {value, 1}});
  SmallVector<ExtentTie> lists;
  addList(queryIndices, batch, heads, queries);
  if (rankOf(queryIndices) < 3 && query)
    heads.places.insert(heads.places.begin(), {query, 1});
  else if (query)
    lists.push_back(makeTie("heads", {{query, 1}}));
  if (!queryIndices && query)
    queries.places.insert(queries.places.begin(), {query, 2});
  else if (query)
    lists.push_back(makeTie("tokens", {{query, 2}}));
  if (keyIndices) {
    ExtentTie groups = makeTie("groups", {}), rows = makeTie("rows", {});
    addList(keyIndices, batch, groups, rows);
    lists.push_back(std::move(rows));
    if (!groups.places.empty())
      lists.push_back(std::move(groups));
  }
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
      std::move(keyHeads),
      std::move(queries),
      std::move(keys),
      makeTie(scores ? "head_dim" : "value head_dim", {{value, 3}, {output, 3}, {joinedOutput, 3}})};
  if (!scores)
    ties.insert(ties.end() - 1, std::move(features));
  if (distances)
    ties.push_back(std::move(*distances));
  llvm::append_range(ties, lists);
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
  AttentionTensors tensors{op.getQuery(),  op.getKey(),          op.getValue(),     op.getOutput(),
                           op.getLse(),    op.getJoinedOutput(), op.getJoinedLse(), {},
                           op.getScores(), op.getQueryIndices(), op.getKeyIndices()};
  for (Value tensor : {op.getSink(), op.getTable(), op.getBias()})
    if (tensor)
      tensors.perHead.push_back(tensor);
  return tensors;
}

SmallVector<ExtentTie> AttentionOp::getExtentTies() { return tensorsOf(*this).getExtentTies(); }
SmallVector<Value> AttentionOp::getContiguous() { return tensorsOf(*this).getContiguous(); }

std::optional<ExtentPlace> AttentionOp::getIndexed(Value operand) {
  if (operand && operand == getQueryIndices())
    return ExtentPlace{getQuery(), 2};
  if (operand && operand == getKeyIndices())
    return ExtentPlace{getKey(), 2};
  return std::nullopt;
}

SmallVector<ExtentMultiple> AttentionOp::getMultiples() {
  SmallVector<ExtentMultiple> multiples;
  for (auto [list, of] : {std::pair(getQueryIndices(), getQuery()), {getKeyIndices(), getKey()}})
    if (rankOf(list) == 3)
      multiples.push_back({{list, 1}, {of, 1}});
  return multiples;
}

ExtentPlace AttentionOp::getQueryHeads() {
  return rankOf(getQueryIndices()) == 3 ? ExtentPlace{getQueryIndices(), 1} : ExtentPlace{getQueryRows(), 1};
}

ExtentPlace AttentionOp::getQueryCount() {
  return getQueryIndices() ? ExtentPlace{getQueryIndices(), rankOf(getQueryIndices()) - 1}
                           : ExtentPlace{getQueryRows(), 2};
}

ExtentPlace AttentionOp::getKeyHeads() {
  return rankOf(getKeyIndices()) == 3 ? ExtentPlace{getKeyIndices(), 1} : ExtentPlace{getKeyRows(), 1};
}

ExtentPlace AttentionOp::getKeyCount() {
  return getKeyIndices() ? ExtentPlace{getKeyIndices(), rankOf(getKeyIndices()) - 1} : ExtentPlace{getKeyRows(), 2};
}
