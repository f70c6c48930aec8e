//===- Steps.h - The code of each step --------------------------*- C++ -*-===//
#ifndef ATTN_LIB_TILING_STEPS_STEPS_H
#define ATTN_LIB_TILING_STEPS_STEPS_H

#include "StepBuilder.h"

namespace attn {

void buildCompute(StepBuilder &s, ComputeOp op);
void buildGatherRows(StepBuilder &s, GatherRowsOp op);
void buildMerge(StepBuilder &s, MergeOp op);
void buildRandomFeatures(StepBuilder &s, RandomFeaturesOp op);
void buildRunningMax(StepBuilder &s, RunningMaxOp op);
void buildFeatureMap(StepBuilder &s, FeatureMapOp op);
/// The feature of `x`, `width` numbers, by a map that makes one of one.
mlir::Value buildMap(StepBuilder &s, FeatureKind kind, mlir::Value x, int64_t width);
void buildLinearWeights(StepBuilder &s, LinearWeightsOp op);
void buildLinearAttention(StepBuilder &s, LinearAttentionOp op);

// Routing.
void buildNormalizeRows(StepBuilder &s, NormalizeRowsOp op);
void buildRowScores(StepBuilder &s, RowScoresOp op);
void buildTopRows(StepBuilder &s, TopRowsOp op);
void buildInvertRows(StepBuilder &s, InvertRowsOp op);
void buildScatterMean(StepBuilder &s, ScatterMeanOp op);
void buildScatterRows(StepBuilder &s, ScatterRowsOp op);
void buildBlockMeans(StepBuilder &s, BlockMeansOp op);
void buildTopBlocks(StepBuilder &s, TopBlocksOp op);

// Sorting.
void buildLshBuckets(StepBuilder &s, LshBucketsOp op);
void buildSort(StepBuilder &s, SortOp op);
void buildLookBack(StepBuilder &s, LookBackOp op);
void buildSinkhorn(StepBuilder &s, SinkhornOp op);
void buildMixBlocks(StepBuilder &s, MixBlocksOp op);

} // namespace attn

#endif // ATTN_LIB_TILING_STEPS_STEPS_H
