//===- AttnLinear.cpp - The steps of linear attention -----------------------===//
#include "StepVerify.h"

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

//===----------------------------------------------------------------------===//
// feature_map
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> FeatureMapOp::getExtentTies() {
  Value input = getInput(), logs = getLogs(), subtract = getSubtract(), output = getOutput();
  SmallVector<ExtentTie> ties{makeTie("batch", {{input, 0}, {logs, 0}, {subtract, 0}, {output, 0}}),
                              makeTie("heads", {{input, 1}, {logs, 1}, {subtract, 1}, {output, 1}}),
                              makeTie("tokens", {{input, 2}, {logs, 2}, {subtract, 2}, {output, 2}})};
  if (getMap() != FeatureKind::Trigonometric) {
    ties.push_back(makeTie("features", {{input, 3}, {output, 3}}));
    return ties;
  }
  ties.push_back(makeTie("features", {{input, 3}}));
  ties.push_back(makeTie("features", {{output, 3}}, ExtentRule{{input, 3}, 2, 0, 1}));
  return ties;
}

SmallVector<Value> FeatureMapOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult FeatureMapOp::verify() {
  if (std::optional<APFloat> plus = getPlus(); plus && !plus->isFinite())
    return emitOpError("adds a number that is not finite; give one that is (E10)");
  if (failed(verifyRank(*this, getInput(), 4, "[batch, heads, tokens, features]", "(E10)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, tokens, features]", "(E10)")) ||
      failed(verifyRank(*this, getSubtract(), 3, "[batch, heads, tokens]", "(E10)")) ||
      failed(verifyF32(*this, getSubtract(), "(E10)")) ||
      failed(verifyRank(*this, getLogs(), 3, "[batch, heads, tokens]", "(E16)")) ||
      failed(verifyF32(*this, getLogs(), "(E16)")))
    return failure();
  bool trigonometric = getMap() == FeatureKind::Trigonometric;
  if (getLogs() && !trigonometric)
    return emitOpError() << "has logs, which " << stringifyFeatureKind(getMap())
                         << " does not take; make it trigonometric, or drop them (E16)";
  if (trigonometric && getSubtract() && !getLogs())
    return emitOpError("subtracts from logs that are not there; give logs, or drop what is subtracted (E16)");
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// linear_weights, linear_attention
//===----------------------------------------------------------------------===//

/// The tensors of a recurrence, by what they have for second dimension and for third.
struct RecurrenceTensors {
  Value query, key, decay;
  SmallVector<Value> ofQueries, ofKeys, states; // beside query and key
};

static SmallVector<ExtentTie> tieRecurrence(const RecurrenceTensors &t) {
  int64_t decayRank = t.decay ? typeOf(t.decay).getRank() : 0;
  Value stepDecay = decayRank > 1 ? t.decay : Value();
  ExtentTie batch = makeTie("batch", {{t.query, 0}, {t.key, 0}, {stepDecay, 0}});
  ExtentTie heads = makeTie("heads", {{t.query, 1}});
  ExtentTie keyHeads = makeTie("key/value heads", {{t.key, 1}, {t.decay, decayRank > 1}});
  ExtentTie tokens = makeTie("tokens", {{t.query, 2}, {t.key, 2}, {stepDecay, 2}});
  ExtentTie features = makeTie("features", {{t.query, 3}, {t.key, 3}, {decayRank == 4 ? t.decay : Value(), 3}});
  auto add = [&](ArrayRef<Value> tensors, ExtentTie &second, ExtentTie &third) {
    for (Value tensor : tensors) {
      if (!tensor)
        continue;
      batch.places.push_back({tensor, 0});
      second.places.push_back({tensor, 1});
      third.places.push_back({tensor, 2});
    }
  };
  add(t.ofQueries, heads, tokens);
  add(t.ofKeys, keyHeads, tokens);
  add(t.states, keyHeads, features);
  return {batch, heads, keyHeads, tokens, features};
}

/// E11, E12 and E18, but for what `op` has of its own.
static LogicalResult verifyRecurrence(Operation *op, const RecurrenceTensors &tensors, bool causal,
                                      std::optional<FeatureKind> feature) {
  Value query = tensors.query, key = tensors.key, decay = tensors.decay;
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
  if (feature == FeatureKind::Trigonometric)
    return op->emitOpError("has trigonometric features, which are two of a number; make them by attn.feature_map "
                           "before (E18)");
  SmallVector<Value> f32(tensors.states);
  f32.push_back(decay);
  return verifyF32(op, f32, "(E12)");
}

static RecurrenceTensors tensorsOf(LinearWeightsOp op) {
  return {op.getQuery(), op.getKey(), op.getDecay(), {op.getWeights()}, {}, {op.getSums(), op.getState()}};
}

SmallVector<ExtentTie> LinearWeightsOp::getExtentTies() { return tieRecurrence(tensorsOf(*this)); }

SmallVector<ExtentMultiple> LinearWeightsOp::getMultiples() { return {{{getQuery(), 1}, {getKey(), 1}}}; }

SmallVector<Value> LinearWeightsOp::getContiguous() {
  SmallVector<Value> tensors = rowsOfNumbers(*this);
  tensors.push_back(getSums());
  if (getState())
    tensors.push_back(getState());
  return tensors;
}

LogicalResult LinearWeightsOp::verify() {
  if (failed(verifyRecurrence(*this, tensorsOf(*this), getCausal(), getFeature())) ||
      failed(verifyF32(*this, getWeights(), "(E12)")) ||
      failed(verifyRank(*this, getWeights(), 3, "[batch, heads, tokens]", "(E11)")) ||
      failed(verifyRank(*this, getSums(), 3, "[batch, heads, features]", "(E11)")) ||
      failed(verifyRank(*this, getState(), 3, "[batch, heads, features]", "(E11)")))
    return failure();
  return verifyExtents(*this);
}

static RecurrenceTensors tensorsOf(LinearAttentionOp op) {
  return {op.getQuery(),   op.getKey(),
          op.getDecay(),   {op.getOutput(), op.getDivide()},
          {op.getValue()}, {op.getSums(), op.getState(), op.getKeySums(), op.getKeyState()}};
}

SmallVector<ExtentTie> LinearAttentionOp::getExtentTies() {
  SmallVector<ExtentTie> ties = tieRecurrence(tensorsOf(*this));
  ties.push_back(makeTie("value head_dim", {{getValue(), 3}, {getOutput(), 3}, {getSums(), 3}, {getState(), 3}}));
  return ties;
}

SmallVector<ExtentMultiple> LinearAttentionOp::getMultiples() { return {{{getQuery(), 1}, {getKey(), 1}}}; }

SmallVector<Value> LinearAttentionOp::getContiguous() {
  SmallVector<Value> tensors = rowsOfNumbers(*this);
  for (Value sums : {getKeySums(), getKeyState()})
    if (sums)
      tensors.push_back(sums);
  return tensors;
}

/// E17.
static LogicalResult verifyNormalize(LinearAttentionOp op) {
  if (op.getNormalize() != bool(op.getKeySums()))
    return op.emitOpError() << (op.getNormalize() ? "normalizes, but has no third result for the sums of keys; add it"
                                                  : "has a third result, for the sums of keys, but does not "
                                                    "normalize; add `normalize`, or drop it")
                            << " (E17)";
  if (bool(op.getKeyState()) != (op.getNormalize() && op.getState()))
    return op.emitOpError() << (op.getKeyState() ? "has a second state, for the sums of keys, but does not normalize; "
                                                   "add `normalize`, or drop it"
                                                 : "normalizes, but has no second state for the sums of keys; add it")
                            << " (E17)";
  if (op.getNormalize() && op.getDivide())
    return op.emitOpError("normalizes and divides; drop one of them (E17)");
  return success();
}

LogicalResult LinearAttentionOp::verify() {
  if (std::optional<APFloat> scale = getScale(); scale && !scale->isFinite())
    return emitOpError("has a scale that is not finite; give one that is (E13)");
  if (failed(verifyRecurrence(*this, tensorsOf(*this), getCausal(), getFeature())) || failed(verifyNormalize(*this)) ||
      failed(verifyF32(*this, getDivide(), "(E12)")) ||
      failed(verifyRank(*this, getValue(), 4, "[batch, heads, tokens, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, tokens, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getDivide(), 3, "[batch, heads, tokens]", "(E11)")) ||
      failed(verifyRank(*this, getSums(), 4, "[batch, heads, features, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getState(), 4, "[batch, heads, features, value_dim]", "(E11)")) ||
      failed(verifyRank(*this, getKeySums(), 3, "[batch, heads, features]", "(E11)")) ||
      failed(verifyRank(*this, getKeyState(), 3, "[batch, heads, features]", "(E11)")) ||
      failed(verifySameElements(*this, getValue(), getOutput())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// random_features, running_max
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> RandomFeaturesOp::getExtentTies() {
  unsigned rank = typeOf(getProjection()).getRank();
  SmallVector<ExtentTie> ties{makeTie("batch", {{getInput(), 0}, {getFeatures(), 0}, {getMaxima(), 0}}),
                              makeTie("heads", {{getInput(), 1}, {getFeatures(), 1}, {getMaxima(), 1}}),
                              makeTie("tokens", {{getInput(), 2}, {getFeatures(), 2}, {getMaxima(), 2}}),
                              makeTie("features", {{getProjection(), rank - 2}, {getFeatures(), 3}}),
                              makeTie("head_dim", {{getInput(), 3}, {getProjection(), rank - 1}})};
  if (rank == 3)
    ties.push_back(makeTie("key/value heads", {{getProjection(), 0}}));
  return ties;
}

SmallVector<ExtentMultiple> RandomFeaturesOp::getMultiples() {
  if (typeOf(getProjection()).getRank() != 3)
    return {};
  return {{{getInput(), 1}, {getProjection(), 0}}};
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
