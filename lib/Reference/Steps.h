//===- Steps.h - The meaning of the steps around attention --------*- C++ -*-===//
//
// Each step as its op's description states it, in plain loops over T: double for the exact result, float for what a
// straight implementation gets.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_REFERENCE_STEPS_H
#define ATTN_LIB_REFERENCE_STEPS_H

#include "Array.h"
#include "Program.h"
#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "attn/Reference/Reference.h"
#include <cmath>

namespace attn::reference {

/// Results of a step, one for each of the op's.
template <typename T>
struct StepResult {
  /// Numbers, or rows where `isInteger`.
  Array<T> numbers{{}};
  Array<int64_t> integers{{}};
  bool isInteger = false;
  /// The sizes of the terms that each number is the sum of: what its errors are measured by. Empty: its own size.
  std::vector<double> magnitudes;

  StepResult(Array<T> numbers, std::vector<double> magnitudes = {})
      : numbers(std::move(numbers)), magnitudes(std::move(magnitudes)) {}
  static StepResult ofIntegers(Array<int64_t> integers) {
    StepResult result{Array<T>({})};
    result.integers = std::move(integers);
    result.isInteger = true;
    return result;
  }
};

template <typename T>
using StepResults = llvm::SmallVector<StepResult<T>, 2>;

/// What errors of computed tensors are measured by, where it is more than their size: see RowSample.
using Magnitudes = llvm::DenseMap<mlir::Value, std::vector<double>>;

/// The tensors of an op's operands.
template <typename T>
class Operands {
public:
  Operands(const Environment &environment, const Magnitudes &known) : environment(environment), known(known) {}
  Array<T> numbers(mlir::Value value) const { return Array<T>::of(*environment.tensors.lookup(value)); }
  Array<int64_t> integers(mlir::Value value) const { return Array<int64_t>::of(*environment.tensors.lookup(value)); }

  /// Of every element: what its errors are measured by.
  Array<double> magnitudes(mlir::Value value) const {
    Array<double> sizes = Array<double>::of(*environment.tensors.lookup(value));
    auto found = known.find(value);
    for (size_t i = 0; i < sizes.data.size(); ++i) {
      sizes.data[i] = std::abs(sizes.data[i]);
      if (found != known.end() && i < found->second.size())
        sizes.data[i] = std::max(sizes.data[i], found->second[i]);
    }
    return sizes;
  }

private:
  const Environment &environment;
  const Magnitudes &known;
};

template <typename T>
StepResults<T> evaluateCompute(ComputeOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateGatherRows(GatherRowsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateMerge(MergeOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateNormalizeRows(NormalizeRowsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateRowScores(RowScoresOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateTopRows(TopRowsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateInvertRows(InvertRowsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateScatterMean(ScatterMeanOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateScatterRows(ScatterRowsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateBlockMeans(BlockMeansOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateTopBlocks(TopBlocksOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateFeatureMap(FeatureMapOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateRandomFeatures(RandomFeaturesOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateRunningMax(RunningMaxOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateLinearWeights(LinearWeightsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateLinearAttention(LinearAttentionOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateLshBuckets(LshBucketsOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateSort(SortOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateLookBack(LookBackOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateSinkhorn(SinkhornOp op, const Operands<T> &operands);
template <typename T>
StepResults<T> evaluateMixBlocks(MixBlocksOp op, const Operands<T> &operands);

/// Any step; nothing where the reference does not know the op.
template <typename T>
std::optional<StepResults<T>> evaluateStep(mlir::Operation *op, const Environment &environment,
                                           const Magnitudes &known);

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_STEPS_H
