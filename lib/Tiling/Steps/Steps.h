//===- Steps.h - The code of each step --------------------------*- C++ -*-===//
#ifndef ATTN_LIB_TILING_STEPS_STEPS_H
#define ATTN_LIB_TILING_STEPS_STEPS_H

#include "StepBuilder.h"

namespace attn {

void buildCompute(StepBuilder &s, ComputeOp op);
void buildGatherRows(StepBuilder &s, GatherRowsOp op);
void buildMerge(StepBuilder &s, MergeOp op);

} // namespace attn

#endif // ATTN_LIB_TILING_STEPS_STEPS_H
