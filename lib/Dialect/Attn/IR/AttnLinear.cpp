//===- AttnLinear.cpp - The steps of linear attention -----------------------===//
#include "StepVerify.h"

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

//===----------------------------------------------------------------------===//
// feature_map
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> FeatureMapOp::getExtentTies() {
  return {makeTie("batch", {{getInput(), 0}, {getSubtract(), 0}, {getOutput(), 0}}),
          makeTie("heads", {{getInput(), 1}, {getSubtract(), 1}, {getOutput(), 1}}),
          makeTie("tokens", {{getInput(), 2}, {getSubtract(), 2}, {getOutput(), 2}}),
          makeTie("features", {{getInput(), 3}, {getOutput(), 3}})};
}

SmallVector<Value> FeatureMapOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult FeatureMapOp::verify() {
  if (std::optional<APFloat> plus = getPlus(); plus && !plus->isFinite())
    return emitOpError("adds a number that is not finite; give one that is (E10)");
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, features]", "(E10)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, tokens, features]", "(E10)")) ||
      failed(verifyRank(*this, getSubtract(), 3, "[batch, heads, tokens]", "(E10)")) ||
      failed(verifyF32(*this, getSubtract(), "(E10)")))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// linear_weights, linear_attention
//===----------------------------------------------------------------------===//

/// Batch, heads, tokens and features of `op`: `rest` has the tensors that only one of the two has.
static SmallVector<ExtentTie> tieRecurrence(Value query, Value key, Value decay, ArrayRef<Value> ofTokens,
                                            ArrayRef<Value> ofFeatures) {
  int64_t decayRank = decay ? typeOf(decay).getRank() : 0;
  Value stepDecay = decayRank > 1 ? decay : Value();
  ExtentTie batch = makeTie("batch", {{query, 0}, {key, 0}, {stepDecay, 0}});
  ExtentTie heads = makeTie("heads", {{query, 1}, {key, 1}, {decay, decayRank > 1}});
  ExtentTie tokens = makeTie("tokens", {{query, 2}, {key, 2}, {stepDecay, 2}});
  ExtentTie features = makeTie("features", {{query, 3}, {key, 3}, {decayRank == 4 ? decay : Value(), 3}});
  auto add = [&](ExtentTie &third, ArrayRef<Value> tensors) {
    for (Value tensor : tensors) {
      if (!tensor)
        continue;
      batch.places.push_back({tensor, 0});
      heads.places.push_back({tensor, 1});
      third.places.push_back({tensor, 2});
    }
  };
  add(tokens, ofTokens);
  add(features, ofFeatures);
  return {batch, heads, tokens, features};
}

/// E11 and E12, but for what `op` has of its own.
static LogicalResult verifyRecurrence(Operation *op, Value query, Value key, Value decay, bool causal,
                                      ArrayRef<Value> weightsAndStates) {
  for (Value tensor : {query, key})
    if (failed(verifyRank(op, tensor, 4, "[batch, heads, tokens, features]", "(E11)")))
      return failure();
  if (typeOf(query).getElementType() != typeOf(key).getElementType())
    return op->emitOpError() << "has queries of " << typeOf(query).getElementType() << " and keys of "
                             << typeOf(key).getElementType() << "; convert one of them (E11)";
  if (decay && !causal)
    return op->emitOpError("decays from step to step, but is not causal; add `causal` or drop the decay (E11)");
  if (decay && !llvm::is_contained({1, 3, 4}, typeOf(decay).getRank()))
    return op->emitOpError() << describeTensor(op, decay) << ", the decay, is " << decay.getType()
                             << ", but must have rank 1, [heads], 3, [batch, heads, tokens], or 4, [batch, heads, "
                                "tokens, features]; reshape it (E11)";
  SmallVector<Value> f32(weightsAndStates);
  f32.push_back(decay);
  return verifyF32(op, f32, "(E12)");
}

SmallVector<ExtentTie> LinearWeightsOp::getExtentTies() {
  return tieRecurrence(getQuery(), getKey(), getDecay(), {getWeights()}, {getSums(), getState()});
}

SmallVector<Value> LinearWeightsOp::getContiguous() {
  SmallVector<Value> tensors = rowsOfNumbers(*this);
  tensors.push_back(getSums());
  if (getState())
    tensors.push_back(getState());
  return tensors;
}

LogicalResult LinearWeightsOp::verify() {
  if (failed(verifyRecurrence(*this, getQuery(), getKey(), getDecay(), getCausal(),
                              {getWeights(), getSums(), getState()})) ||
      failed(verifyRank(*this, getWeights(), 3, "[batch, heads, tokens]", "(E11)")) ||
      failed(verifyRank(*this, getSums(), 3, "[batch, heads, features]", "(E11)")) ||
      failed(verifyRank(*this, getState(), 3, "[batch, heads, features]", "(E11)")))
    return failure();
  return verifyExtents(*this);
}

SmallVector<ExtentTie> LinearAttentionOp::getExtentTies() {
  SmallVector<ExtentTie> ties =
      tieRecurrence(getQuery(), getKey(), getDecay(), {getValue(), getOutput(), getDivide()}, {getSums(), getState()});
  ties.push_back(makeTie("value head_dim", {{getValue(), 3}, {getOutput(), 3}, {getSums(), 3}, {getState(), 3}}));
  return ties;
}

SmallVector<Value> LinearAttentionOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult LinearAttentionOp::verify() {
  if (std::optional<APFloat> scale = getScale(); scale && !scale->isFinite())
    return emitOpError("has a scale that is not finite; give one that is (E13)");
  if (failed(verifyRecurrence(*this, getQuery(), getKey(), getDecay(), getCausal(),
                              {getDivide(), getSums(), getState()})) ||
      failed(verifyRank(*this, getValue(), 4, "[batch, heads, tokens, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, tokens, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getDivide(), 3, "[batch, heads, tokens]", "(E11)")) ||
      failed(verifyRank(*this, getSums(), 4, "[batch, heads, features, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getState(), 4, "[batch, heads, features, value_dim]", "(E11)")) ||
      failed(verifySameElements(*this, getValue(), getOutput())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// random_features, running_max
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> RandomFeaturesOp::getExtentTies() {
  unsigned rank = typeOf(getProjection()).getRank();
  Value byHead = rank == 3 ? getProjection() : Value();
  return {makeTie("batch", {{getInput(), 0}, {getFeatures(), 0}, {getMaxima(), 0}}),
          makeTie("heads", {{getInput(), 1}, {byHead, 0}, {getFeatures(), 1}, {getMaxima(), 1}}),
          makeTie("tokens", {{getInput(), 2}, {getFeatures(), 2}, {getMaxima(), 2}}),
          makeTie("features", {{getProjection(), rank - 2}, {getFeatures(), 3}}),
          makeTie("head_dim", {{getInput(), 3}, {getProjection(), rank - 1}})};
}

SmallVector<Value> RandomFeaturesOp::getContiguous() { return {getInput(), getProjection(), getFeatures()}; }

LogicalResult RandomFeaturesOp::verify() {
  if (!llvm::is_contained({2, 3}, typeOf(getProjection()).getRank()))
    return emitOpError() << "operand 1 is " << getProjection().getType()
                         << ", but must have rank 2, [features, head_dim], or 3, with heads before these; reshape it "
                            "(E14)";
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, head_dim]", "(E14)")) ||
      failed(verifyRank(*this, getFeatures(), 4, "[batch, heads, tokens, features]", "(E14)")) ||
      failed(verifyRank(*this, getMaxima(), 3, "[batch, heads, tokens]", "(E14)")) ||
      failed(verifyF32(*this, {getProjection(), getFeatures(), getMaxima()}, "(E14)")))
    return failure();
  return verifyExtents(*this);
}

SmallVector<ExtentTie> RunningMaxOp::getExtentTies() {
  ExtentTie batch = makeTie("batch", {{getInput(), 0}}), heads = makeTie("heads", {{getInput(), 1}});
  for (Value tensor : {Value(getState()), Value(getMaxima()), Value(getDecays()), Value(getLast())})
    if (tensor) {
      batch.places.push_back({tensor, 0});
      heads.places.push_back({tensor, 1});
    }
  return {batch, heads, makeTie("tokens", {{getInput(), 2}, {getMaxima(), 2}, {getDecays(), 2}})};
}

SmallVector<Value> RunningMaxOp::getContiguous() { return {}; }

LogicalResult RunningMaxOp::verify() {
  if (getState() && !getCausal())
    return emitOpError("has a state of earlier tokens, but is not causal; add `causal` or drop the state (E15)");
  for (Value tensor : {Value(getInput()), Value(getMaxima()), Value(getDecays())})
    if (failed(verifyRank(*this, tensor, 3, "[batch, heads, tokens]", "(E15)")))
      return failure();
  for (Value tensor : {Value(getState()), Value(getLast())})
    if (failed(verifyRank(*this, tensor, 2, "[batch, heads]", "(E15)")))
      return failure();
  if (failed(verifyF32(*this, {getInput(), getState(), getMaxima(), getDecays(), getLast()}, "(E15)")))
    return failure();
  return verifyExtents(*this);
}

} // namespace attn
