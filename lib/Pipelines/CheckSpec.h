//===- CheckSpec.h - Whether the functions of a spec can be compiled -*- C++ -*-===//
#ifndef ATTN_LIB_PIPELINES_CHECKSPEC_H
#define ATTN_LIB_PIPELINES_CHECKSPEC_H

#include "mlir/IR/BuiltinOps.h"

namespace attn {

/// Errors, at their places, for a public function that computes nothing or holds what is not compiled, and for exported
/// names that clash: what would else fail late, in words that the spec does not have.
mlir::LogicalResult checkSpec(mlir::ModuleOp spec);

} // namespace attn

#endif // ATTN_LIB_PIPELINES_CHECKSPEC_H
