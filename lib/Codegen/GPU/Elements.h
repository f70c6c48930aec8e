//===- Elements.h - Score and mask regions in a warp ------------*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_GPU_ELEMENTS_H
#define ATTN_LIB_CODEGEN_GPU_ELEMENTS_H

#include "Shape.h"

namespace attn::cuda {

/// A score region, for every element that a lane has.
void emitModify(Emit &e, const KernelShape &shape, tile::ModifyOp op, Values &scores);
/// A mask region: elements that are not kept become -infinity.
void emitMask(Emit &e, const KernelShape &shape, tile::MaskOp op, Values &scores);
/// Key rows at and after `count` become -infinity.
void emitClip(Emit &e, const KernelShape &shape, Value count, Values &scores);

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_ELEMENTS_H
