//===- IntervalModels.h - How basic ops are read over intervals -*- C++ -*-===//

#ifndef ATTN_PATTERN_INTERVALMODELS_H
#define ATTN_PATTERN_INTERVALMODELS_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// Gives ops of arith, index and tensor the MaskOpInterface, so that masks may be read that use them. Without it a mask
/// is known only where linear arithmetic and comparisons say all.
void registerIntervalModels(mlir::DialectRegistry &registry);

} // namespace attn

#endif // ATTN_PATTERN_INTERVALMODELS_H
