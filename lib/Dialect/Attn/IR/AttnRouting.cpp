//===- AttnRouting.cpp - The steps that choose who attends to whom ----------===//
#include "StepVerify.h"
#include <cmath>

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

static LogicalResult verifyEps(Operation *op, const APFloat &eps, StringRef constraint) {
  double value = eps.convertToDouble();
  if (std::isfinite(value) && value >= 0)
    return success();
  return op->emitOpError() << "has eps(" << value << "); give a finite number of at least 0 " << constraint;
}

LogicalResult verifyF32(Operation *op, ArrayRef<Value> tensors, StringRef constraint) {
  for (Value tensor : tensors)
    if (tensor && !typeOf(tensor).getElementType().isF32())
      return op->emitOpError() << describeTensor(op, tensor) << " is " << tensor.getType()
                               << ", but must be of f32; convert it " << constraint;
  return success();
}

ExtentTie makeFixedTie(StringRef name, ExtentPlace place, ExtentPlace any, int64_t extent) {
  bool isKnown = !typeOf(place.tensor).isDynamicDim(place.dim);
  return isKnown ? makeTie(name, {place}) : makeTie(name, {place}, ExtentRule{any, 0, extent, 1});
}

LogicalResult verifyFixed(Operation *op, ExtentPlace place, int64_t extent, StringRef constraint) {
  RankedTensorType type = typeOf(place.tensor);
  if (type.isDynamicDim(place.dim) || type.getDimSize(place.dim) == extent)
    return success();
  return op->emitOpError() << describeTensor(op, place.tensor) << " is " << type << ", but dimension " << place.dim
                           << " must be " << extent << "; change one of them " << constraint;
}

LogicalResult verifyLike(Operation *op, ValueRange like, StringRef constraint) {
  for (Value tensor : like)
    if (int64_t rank = typeOf(tensor).getRank(); rank != 3 && rank != 4)
      return op->emitOpError() << describeTensor(op, tensor) << " is " << tensor.getType()
                               << ", but must have rank 3 or 4, [batch, heads, tokens] and perhaps more; reshape it "
                               << constraint;
  return success();
}

LogicalResult verifySameIntegers(Operation *op, Value a, Value b, StringRef constraint) {
  if (typeOf(a).getElementType() == typeOf(b).getElementType())
    return success();
  return op->emitOpError() << describeTensor(op, b) << " has elements of type " << typeOf(b).getElementType()
                           << " where " << describeTensor(op, a) << " has " << typeOf(a).getElementType()
                           << "; make them one type " << constraint;
}

LogicalResult verifyPositive(Operation *op, StringRef name, int64_t value, StringRef constraint) {
  if (value >= 1)
    return success();
  return op->emitOpError() << "has " << name << "(" << value << "); give a number of at least 1 " << constraint;
}

void appendLike(SmallVectorImpl<ExtentTie> &ties, ValueRange like, unsigned batch, unsigned tokens) {
  ExtentTie heads = makeTie("heads", {});
  for (Value tensor : like) {
    ties[batch].places.push_back({tensor, 0});
    heads.places.push_back({tensor, 1});
    ties[tokens].places.push_back({tensor, 2});
  }
  if (!like.empty())
    ties.push_back(heads);
}

//===----------------------------------------------------------------------===//
// normalize_rows
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> NormalizeRowsOp::getExtentTies() {
  auto tie = [&](StringRef name, unsigned dim) { return makeTie(name, {{getInput(), dim}, {getOutput(), dim}}); };
  return {tie("batch", 0), tie("heads", 1), tie("tokens", 2), tie("head_dim", 3)};
}

SmallVector<Value> NormalizeRowsOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult NormalizeRowsOp::verify() {
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E30)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, tokens, head_dim]", "(E30)")) ||
      failed(verifySameElements(*this, getInput(), getOutput())) || failed(verifyEps(*this, getEps(), "(E30)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// row_scores
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> RowScoresOp::getExtentTies() {
  int64_t count = typeOf(getCentroids()).getDimSize(1);
  return {makeTie("batch", {{getInput(), 0}, {getScores(), 0}}),
          makeTie("heads", {{getInput(), 1}, {getCentroids(), 0}}),
          makeTie("centroids", {{getCentroids(), 1}}),
          makeTie("groups", {{getScores(), 1}}, ExtentRule{{getInput(), 1}, count, 0, 1}),
          makeTie("tokens", {{getInput(), 2}, {getScores(), 2}}),
          makeTie("head_dim", {{getInput(), 3}, {getCentroids(), 2}})};
}

SmallVector<Value> RowScoresOp::getContiguous() { return {getInput(), getCentroids()}; }

LogicalResult RowScoresOp::verify() {
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E31)")) ||
      failed(verifyRank(*this, getCentroids(), 3, "[heads, centroids, head_dim]", "(E31)")) ||
      failed(verifyRank(*this, getScores(), 3, "[batch, heads * centroids, tokens]", "(E31)")) ||
      failed(verifySameElements(*this, getInput(), getCentroids())) || failed(verifyF32(*this, getScores(), "(E31)")))
    return failure();
  if (typeOf(getCentroids()).isDynamicDim(1))
    return emitOpError() << "operand 1 is " << getCentroids().getType()
                         << ", but the number of centroids, dimension 1, must be known; put it into the type (E31)";
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// top_rows
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> TopRowsOp::getExtentTies() {
  return {makeTie("batch", {{getScores(), 0}, {getRows(), 0}}), makeTie("groups", {{getScores(), 1}, {getRows(), 1}}),
          makeTie("tokens", {{getScores(), 2}}), makeFixedTie("rows", {getRows(), 2}, {getScores(), 2}, getCount())};
}

SmallVector<Value> TopRowsOp::getContiguous() { return {}; }

LogicalResult TopRowsOp::verify() {
  if (failed(verifyPositive(*this, "count", getCount(), "(E32)")) ||
      failed(verifyRank(*this, getScores(), 3, "[batch, groups, tokens]", "(E32)")) ||
      failed(verifyRank(*this, getRows(), 3, "[batch, groups, count]", "(E32)")) ||
      failed(verifyF32(*this, getScores(), "(E32)")) || failed(verifyFixed(*this, {getRows(), 2}, getCount(), "(E32)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// invert_rows
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> InvertRowsOp::getExtentTies() {
  SmallVector<ExtentTie> ties{makeTie("batch", {{getRows(), 0}, {getPlaces(), 0}}),
                              makeTie("groups", {{getRows(), 1}, {getPlaces(), 1}}), makeTie("rows", {{getRows(), 2}}),
                              makeTie("tokens", {{getPlaces(), 2}})};
  appendLike(ties, getLike(), /*batch=*/0, /*tokens=*/3);
  return ties;
}

SmallVector<Value> InvertRowsOp::getContiguous() { return {}; }

std::optional<ExtentPlace> InvertRowsOp::getIndexed(Value operand) {
  return operand == getRows() ? std::optional<ExtentPlace>({getPlaces(), 2}) : std::nullopt;
}

SmallVector<ExtentMultiple> InvertRowsOp::getMultiples() { return {{{getRows(), 1}, {getLike().front(), 1}}}; }

LogicalResult InvertRowsOp::verify() {
  if (failed(verifyRank(*this, getRows(), 3, "[batch, groups, rows]", "(E33)")) ||
      failed(verifyRank(*this, getPlaces(), 3, "[batch, groups, tokens]", "(E33)")))
    return failure();
  if (getLike().empty())
    return emitOpError("is like no tensor; name one that has its tokens (E33)");
  if (failed(verifyLike(*this, getLike(), "(E33)")) ||
      failed(verifySameIntegers(*this, getRows(), getPlaces(), "(E33)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// scatter_mean and scatter_rows
//===----------------------------------------------------------------------===//

static LogicalResult verifyScatter(Operation *op, Value input, Value places, Value output, StringRef constraint) {
  if (failed(verifyRank(op, input, 4, "[batch, groups, rows, head_dim]", constraint)) ||
      failed(verifyRank(op, places, 3, "[batch, groups, tokens]", constraint)) ||
      failed(verifyRank(op, output, 4, "[batch, heads, tokens, head_dim]", constraint)))
    return failure();
  return verifySameElements(op, input, output);
}

SmallVector<ExtentTie> ScatterMeanOp::getExtentTies() {
  return {makeTie("batch", {{getInput(), 0}, {getPlaces(), 0}, {getOutput(), 0}}),
          makeTie("groups", {{getInput(), 1}, {getPlaces(), 1}}),
          makeTie("heads", {{getOutput(), 1}}, ExtentRule{{getInput(), 1}, 1, 0, std::max<int64_t>(getGroups(), 1)}),
          makeTie("rows", {{getInput(), 2}}),
          makeTie("tokens", {{getPlaces(), 2}, {getOutput(), 2}}),
          makeTie("value head_dim", {{getInput(), 3}, {getOutput(), 3}})};
}

SmallVector<Value> ScatterMeanOp::getContiguous() { return rowsOfNumbers(*this); }

std::optional<ExtentPlace> ScatterMeanOp::getIndexed(Value operand) {
  return operand == getPlaces() ? std::optional<ExtentPlace>({getInput(), 2}) : std::nullopt;
}

SmallVector<ExtentMultiple> ScatterMeanOp::getMultiples() { return {{{getInput(), 1}, {getOutput(), 1}}}; }

LogicalResult ScatterMeanOp::verify() {
  if (failed(verifyPositive(*this, "groups", getGroups(), "(E34)")) || failed(verifyEps(*this, getEps(), "(E34)")) ||
      failed(verifyScatter(*this, getInput(), getPlaces(), getOutput(), "(E34)")))
    return failure();
  return verifyExtents(*this);
}

SmallVector<ExtentTie> ScatterRowsOp::getExtentTies() {
  return {makeTie("batch", {{getInput(), 0}, {getPlaces(), 0}, {getBase(), 0}, {getOutput(), 0}}),
          makeTie("groups", {{getInput(), 1}, {getPlaces(), 1}}),
          makeTie("heads", {{getBase(), 1}, {getOutput(), 1}}),
          makeTie("rows", {{getInput(), 2}}),
          makeTie("tokens", {{getPlaces(), 2}, {getBase(), 2}, {getOutput(), 2}}),
          makeTie("head_dim", {{getInput(), 3}, {getBase(), 3}, {getOutput(), 3}})};
}

SmallVector<Value> ScatterRowsOp::getContiguous() { return rowsOfNumbers(*this); }

std::optional<ExtentPlace> ScatterRowsOp::getIndexed(Value operand) {
  return operand == getPlaces() ? std::optional<ExtentPlace>({getInput(), 2}) : std::nullopt;
}

SmallVector<ExtentMultiple> ScatterRowsOp::getMultiples() { return {{{getInput(), 1}, {getBase(), 1}}}; }

LogicalResult ScatterRowsOp::verify() {
  if (failed(verifyScatter(*this, getInput(), getPlaces(), getOutput(), "(E35)")) ||
      failed(verifyRank(*this, getBase(), 4, "[batch, heads, tokens, head_dim]", "(E35)")) ||
      failed(verifySameElements(*this, getInput(), getBase())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// block_means and top_blocks
//===----------------------------------------------------------------------===//

/// How many blocks the rows of a tensor are cut into; blocks of one row are the rows themselves.
static ExtentTie makeBlockTie(StringRef name, ArrayRef<ExtentPlace> places, ExtentPlace rows, int64_t size) {
  size = std::max<int64_t>(size, 1);
  ExtentTie tie = makeTie(name, places);
  if (size == 1)
    tie.places.push_back(rows);
  else
    tie.rule = ExtentRule{rows, 1, size - 1, size};
  return tie;
}

SmallVector<ExtentTie> BlockMeansOp::getExtentTies() {
  auto tie = [&](StringRef name, unsigned dim) { return makeTie(name, {{getInput(), dim}, {getOutput(), dim}}); };
  return {tie("batch", 0), tie("heads", 1), makeTie("tokens", {{getInput(), 2}}),
          makeBlockTie("blocks", {{getOutput(), 2}}, {getInput(), 2}, getBlock()), tie("head_dim", 3)};
}

SmallVector<Value> BlockMeansOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult BlockMeansOp::verify() {
  if (failed(verifyPositive(*this, "block", getBlock(), "(E41)")) ||
      failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E41)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, blocks, head_dim]", "(E41)")) ||
      failed(verifySameElements(*this, getInput(), getOutput())))
    return failure();
  return verifyExtents(*this);
}

SmallVector<ExtentTie> TopBlocksOp::getExtentTies() {
  return {makeTie("batch", {{getScores(), 0}, {getQuery(), 0}, {getKey(), 0}, {getTable(), 0}}),
          makeTie("groups", {{getScores(), 1}, {getTable(), 1}}),
          makeTie("queries", {{getQuery(), 2}}),
          makeTie("keys", {{getKey(), 2}}),
          makeBlockTie("blocks of queries", {{getScores(), 2}, {getTable(), 2}}, {getQuery(), 2}, getQueries()),
          makeBlockTie("blocks of keys", {{getScores(), 3}, {getTable(), 3}}, {getKey(), 2}, getBlock())};
}

SmallVector<Value> TopBlocksOp::getContiguous() { return {getScores()}; }

LogicalResult TopBlocksOp::verify() {
  for (auto [name, value] : {std::pair("count", getCount()), {"queries", getQueries()}, {"block", getBlock()}})
    if (failed(verifyPositive(*this, name, value, "(E42)")))
      return failure();
  for (auto [name, value] : {std::pair("first", int64_t(getFirst())), {"local", int64_t(getLocal())}})
    if (value < 0)
      return emitOpError() << "has " << name << "(" << value << "); give a number of at least 0 (E42)";
  if (failed(verifyRank(*this, getScores(), 4, "[batch, groups, blocks of queries, blocks of keys]", "(E42)")) ||
      failed(verifyF32(*this, getScores(), "(E42)")) ||
      failed(verifyRank(*this, getQuery(), 4, "[batch, heads, queries, head_dim]", "(E42)")) ||
      failed(verifyRank(*this, getKey(), 4, "[batch, heads, keys, head_dim]", "(E42)")) ||
      failed(verifyRank(*this, getTable(), 4, "that of operand 0", "(E42)")))
    return failure();
  return verifyExtents(*this);
}

} // namespace attn
