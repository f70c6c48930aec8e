//===- AttnWork.cpp - How much the steps around attention do ----------------===//
#include "attn/Dialect/Attn/IR/AttnSteps.h"

using namespace mlir;

namespace attn {
namespace {

/// The numbers of elements of an op's tensors.
class Counter {
public:
  explicit Counter(ExtentGetter extent) : extent(extent) {}

  int64_t dim(Value tensor, unsigned dim) const { return extent({tensor, dim}); }
  int64_t elements(Value tensor) const {
    int64_t count = tensor ? 1 : 0;
    for (unsigned d = 0, rank = tensor ? cast<RankedTensorType>(tensor.getType()).getRank() : 0; d < rank; ++d)
      count *= dim(tensor, d);
    return count;
  }
  int64_t bytes(Value tensor) const {
    return tensor ? elements(tensor) * (cast<RankedTensorType>(tensor.getType()).getElementTypeBitWidth() / 8) : 0;
  }

  /// All operands are read and all results written.
  StepWork all(Operation *op, int64_t operations) const { return some(op, op->getOperands(), operations); }
  /// Of the other operands, extents alone are read.
  StepWork some(Operation *op, ValueRange read, int64_t operations) const {
    StepWork work{operations};
    for (Value tensor : read)
      work.bytesRead += bytes(tensor);
    for (Value tensor : op->getResults())
      work.bytesWritten += bytes(tensor);
    return work;
  }

private:
  ExtentGetter extent;
};

} // namespace

//===----------------------------------------------------------------------===//
// Around attention
//===----------------------------------------------------------------------===//

// A row is read for each number of a row, not all of the input.
StepWork GatherRowsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.some(*this, {getRows(), getOutput()}, 0);
}

StepWork MergeOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, 2 * count.elements(getOutputs()) + 4 * count.elements(getLses()));
}

StepWork ComputeOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  int64_t operations = llvm::range_size(getBody().front().without_terminator());
  for (unsigned loop = 0; loop < getNumLoops(); ++loop) {
    std::optional<ExtentPlace> place = getPlace(loop);
    operations *= place ? extent(*place) : getKnownExtent(loop);
  }
  return count.all(*this, operations);
}

//===----------------------------------------------------------------------===//
// Linear attention
//===----------------------------------------------------------------------===//

StepWork FeatureMapOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this,
                   count.elements(getOutput()) * (1 + (getSubtract() || getLogs() ? 1 : 0) + (getPlus() ? 1 : 0)));
}

// A sum and a product of features for each token.
static int64_t countWeights(const Counter &count, Value query, Value key, Value decay) {
  return (decay ? 2 : 1) * count.elements(key) + 2 * count.elements(query);
}

StepWork LinearWeightsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  int64_t features = getFeature() ? count.elements(getQuery()) + count.elements(getKey()) : 0;
  return count.all(*this, features + countWeights(count, getQuery(), getKey(), getDecay()));
}

// Products of features and values go into the state and are taken from it.
StepWork LinearAttentionOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  int64_t perKey = getDecay() ? 3 : 2, width = count.dim(getValue(), 3);
  int64_t features = getFeature() ? count.elements(getQuery()) + count.elements(getKey()) : 0;
  int64_t weights = getNormalize() ? countWeights(count, getQuery(), getKey(), getDecay()) : 0;
  return count.all(*this, (perKey * count.elements(getKey()) + 2 * count.elements(getQuery())) * width + features +
                              weights + (getDivide() || getNormalize() ? count.elements(getOutput()) : 0));
}

StepWork RandomFeaturesOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  int64_t lengths = getKind() ? 3 * count.elements(getInput()) + count.elements(getFeatures()) : 0;
  return count.all(*this, count.elements(getFeatures()) * (2 * count.dim(getInput(), 3) + 1) + lengths);
}

StepWork RunningMaxOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, 2 * count.elements(getInput()));
}

//===----------------------------------------------------------------------===//
// Routing
//===----------------------------------------------------------------------===//

StepWork NormalizeRowsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, (getCentered() ? 5 : 3) * count.elements(getInput()));
}

StepWork RowScoresOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, 2 * count.elements(getScores()) * count.dim(getInput(), 3));
}

// The score of rank `count` is found bit by bit; two more passes count and write.
StepWork TopRowsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, (32 + 2) * count.elements(getScores()));
}

StepWork BlockMeansOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, count.elements(getInput()) + count.elements(getOutput()));
}

// As top_rows.
StepWork TopBlocksOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.some(*this, getScores(), (32 + 2) * count.elements(getScores()));
}

StepWork InvertRowsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.some(*this, getRows(), 0);
}

StepWork ScatterMeanOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, count.elements(getInput()) + count.elements(getPlaces()) + count.elements(getOutput()));
}

// Every row of the output comes from one place.
StepWork ScatterRowsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.some(*this, {getPlaces(), getOutput()}, 0);
}

//===----------------------------------------------------------------------===//
// Sorting
//===----------------------------------------------------------------------===//

StepWork LshBucketsOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  int64_t turned = count.elements(getBuckets()) * count.dim(getRotations(), 3);
  return count.all(*this, turned * (2 * count.dim(getInput(), 3) + 2));
}

// By counting: each token adds to its bucket and takes its place.
StepWork SortOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.some(*this, getKeys(), 2 * count.elements(getKeys()) + count.elements(getStarts()));
}

StepWork LookBackOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, 0);
}

// Rows, then columns: an exponential, an addition to the sum, a subtraction.
StepWork SinkhornOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, (2 * 3 * int64_t(getIterations()) + 1) * count.elements(getLogits()));
}

StepWork MixBlocksOp::getWork(ExtentGetter extent) {
  Counter count(extent);
  return count.all(*this, 2 * count.elements(getOutput()) * count.dim(getWeights(), 3));
}

} // namespace attn
