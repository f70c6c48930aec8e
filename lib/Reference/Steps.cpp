//===- Steps.cpp - Which step is evaluated by what --------------------------===//
#include "Steps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::reference {

template <typename T>
std::optional<StepResults<T>> evaluateStep(Operation *op, const Environment &environment, const Magnitudes &known) {
  Operands<T> operands(environment, known);
  return llvm::TypeSwitch<Operation *, std::optional<StepResults<T>>>(op)
      .Case([&](ComputeOp op) { return evaluateCompute(op, operands); })
      .Case([&](GatherRowsOp op) { return evaluateGatherRows(op, operands); })
      .Case([&](MergeOp op) { return evaluateMerge(op, operands); })
      .Case([&](NormalizeRowsOp op) { return evaluateNormalizeRows(op, operands); })
      .Case([&](RowScoresOp op) { return evaluateRowScores(op, operands); })
      .Case([&](TopRowsOp op) { return evaluateTopRows(op, operands); })
      .Case([&](InvertRowsOp op) { return evaluateInvertRows(op, operands); })
      .Case([&](ScatterMeanOp op) { return evaluateScatterMean(op, operands); })
      .Case([&](ScatterRowsOp op) { return evaluateScatterRows(op, operands); })
      .Case([&](BlockMeansOp op) { return evaluateBlockMeans(op, operands); })
      .Case([&](TopBlocksOp op) { return evaluateTopBlocks(op, operands); })
      .Case([&](FeatureMapOp op) { return evaluateFeatureMap(op, operands); })
      .Case([&](RandomFeaturesOp op) { return evaluateRandomFeatures(op, operands); })
      .Case([&](RunningMaxOp op) { return evaluateRunningMax(op, operands); })
      .Case([&](LinearWeightsOp op) { return evaluateLinearWeights(op, operands); })
      .Case([&](LinearAttentionOp op) { return evaluateLinearAttention(op, operands); })
      .Case([&](LshBucketsOp op) { return evaluateLshBuckets(op, operands); })
      .Case([&](SortOp op) { return evaluateSort(op, operands); })
      .Case([&](LookBackOp op) { return evaluateLookBack(op, operands); })
      .Case([&](SinkhornOp op) { return evaluateSinkhorn(op, operands); })
      .Case([&](MixBlocksOp op) { return evaluateMixBlocks(op, operands); })
      .Default(std::nullopt);
}

template std::optional<StepResults<double>> evaluateStep(Operation *, const Environment &, const Magnitudes &);
template std::optional<StepResults<float>> evaluateStep(Operation *, const Environment &, const Magnitudes &);

} // namespace attn::reference
