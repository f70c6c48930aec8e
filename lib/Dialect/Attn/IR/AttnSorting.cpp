//===- AttnSorting.cpp - The steps that sort tokens or blocks ---------------===//
#include "StepVerify.h"

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

//===----------------------------------------------------------------------===//
// lsh_buckets
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> LshBucketsOp::getExtentTies() {
  int64_t rounds = typeOf(getRotations()).getDimSize(1);
  return {makeTie("batch", {{getInput(), 0}, {getBuckets(), 0}}),
          makeTie("heads", {{getInput(), 1}, {getRotations(), 0}}),
          makeTie("rounds", {{getRotations(), 1}}),
          makeTie("groups", {{getBuckets(), 1}}, ExtentRule{{getInput(), 1}, rounds, 0, 1}),
          makeTie("tokens", {{getInput(), 2}, {getBuckets(), 2}}),
          makeTie("head_dim", {{getInput(), 3}, {getRotations(), 2}}),
          makeTie("features", {{getRotations(), 3}})};
}

SmallVector<Value> LshBucketsOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult LshBucketsOp::verify() {
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E36)")) ||
      failed(verifyRank(*this, getRotations(), 4, "[heads, rounds, head_dim, buckets / 2]", "(E36)")) ||
      failed(verifyRank(*this, getBuckets(), 3, "[batch, heads * rounds, tokens]", "(E36)")) ||
      failed(verifySameElements(*this, getInput(), getRotations())))
    return failure();
  if (typeOf(getRotations()).isDynamicDim(1))
    return emitOpError() << "operand 1 is " << getRotations().getType()
                         << ", but the number of rounds, dimension 1, must be known; put it into the type (E36)";
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// sort
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> SortOp::getExtentTies() {
  SmallVector<ExtentTie> ties{makeTie("batch", {{getKeys(), 0}, {getOrder(), 0}, {getPlaces(), 0}, {getStarts(), 0}}),
                              makeTie("groups", {{getKeys(), 1}, {getOrder(), 1}, {getPlaces(), 1}, {getStarts(), 1}}),
                              makeTie("tokens", {{getKeys(), 2}, {getOrder(), 2}, {getPlaces(), 2}}),
                              makeFixedTie("buckets", {getStarts(), 2}, {getKeys(), 2}, getBuckets())};
  appendLike(ties, getLike(), /*batch=*/0, /*tokens=*/2);
  return ties;
}

SmallVector<Value> SortOp::getContiguous() { return {}; }

std::optional<ExtentPlace> SortOp::getIndexed(Value operand) {
  return operand == getKeys() ? std::optional<ExtentPlace>({getStarts(), 2}) : std::nullopt;
}

SmallVector<ExtentMultiple> SortOp::getMultiples() {
  if (getLike().empty())
    return {};
  return {{{getKeys(), 1}, {getLike().front(), 1}}};
}

LogicalResult SortOp::verify() {
  if (failed(verifyPositive(*this, "buckets", getBuckets(), "(E37)")) || failed(verifyLike(*this, getLike(), "(E37)")))
    return failure();
  for (Value tensor : {Value(getKeys()), Value(getOrder()), Value(getPlaces()), Value(getStarts())})
    if (failed(verifyRank(*this, tensor, 3, "[batch, groups, tokens or buckets]", "(E37)")) ||
        failed(verifySameIntegers(*this, getKeys(), tensor, "(E37)")))
      return failure();
  if (failed(verifyFixed(*this, {getStarts(), 2}, getBuckets(), "(E37)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// look_back
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> LookBackOp::getExtentTies() {
  return {makeTie("batch", {{getRows(), 0}, {getOutput(), 0}}), makeTie("groups", {{getRows(), 1}, {getOutput(), 1}}),
          makeTie("tokens", {{getRows(), 2}}),
          makeTie("keys", {{getOutput(), 2}}, ExtentRule{{getRows(), 2}, 1, int64_t(getChunk()), 1})};
}

SmallVector<Value> LookBackOp::getContiguous() { return {}; }

LogicalResult LookBackOp::verify() {
  if (failed(verifyPositive(*this, "chunk", getChunk(), "(E38)")) ||
      failed(verifyPositive(*this, "groups", getGroups(), "(E38)")) ||
      failed(verifyRank(*this, getRows(), 3, "[batch, groups, rows]", "(E38)")) ||
      failed(verifyRank(*this, getOutput(), 3, "[batch, groups, chunk + rows]", "(E38)")) ||
      failed(verifySameIntegers(*this, getRows(), getOutput(), "(E38)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// sinkhorn and mix_blocks
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> SinkhornOp::getExtentTies() {
  return {makeTie("batch", {{getLogits(), 0}, {getOutput(), 0}}),
          makeTie("heads", {{getLogits(), 1}, {getOutput(), 1}}),
          makeTie("blocks", {{getLogits(), 2}, {getLogits(), 3}, {getOutput(), 2}, {getOutput(), 3}})};
}

SmallVector<Value> SinkhornOp::getContiguous() { return {}; }

LogicalResult SinkhornOp::verify() {
  if (failed(verifyPositive(*this, "iterations", getIterations(), "(E39)")))
    return failure();
  for (Value tensor : {Value(getLogits()), Value(getOutput())})
    if (failed(verifyRank(*this, tensor, 4, "[batch, heads, blocks, blocks]", "(E39)")) ||
        failed(verifyF32(*this, tensor, "(E39)")))
      return failure();
  return verifyExtents(*this);
}

SmallVector<ExtentTie> MixBlocksOp::getExtentTies() {
  int64_t block = std::max<int64_t>(getBlock(), 1);
  return {makeTie("batch", {{getWeights(), 0}, {getInput(), 0}, {getOutput(), 0}}),
          makeTie("heads", {{getWeights(), 1}, {getInput(), 1}, {getOutput(), 1}}),
          makeTie("tokens", {{getInput(), 2}}),
          makeTie("blocks", {{getWeights(), 3}}, ExtentRule{{getInput(), 2}, 1, block - 1, block}),
          makeTie("mixed blocks", {{getWeights(), 2}}),
          makeTie("keys", {{getOutput(), 2}}, ExtentRule{{getWeights(), 2}, block, 0, 1}),
          makeTie("head_dim", {{getInput(), 3}, {getOutput(), 3}})};
}

SmallVector<Value> MixBlocksOp::getContiguous() { return {getInput(), getOutput()}; }

LogicalResult MixBlocksOp::verify() {
  if (failed(verifyPositive(*this, "block", getBlock(), "(E40)")) ||
      failed(verifyRank(*this, getWeights(), 4, "[batch, heads, mixed blocks, blocks]", "(E40)")) ||
      failed(verifyF32(*this, getWeights(), "(E40)")) ||
      failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E40)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, mixed blocks * block, head_dim]", "(E40)")) ||
      failed(verifySameElements(*this, getInput(), getOutput())))
    return failure();
  return verifyExtents(*this);
}

} // namespace attn
