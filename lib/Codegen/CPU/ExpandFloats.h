//===- ExpandFloats.h - Float ops that would be library calls ---*- C++ -*-===//
//
// LLVM calls a library for what a CPU has no instruction for (floorf, fmodf, fmaf, __truncsfhf2...). These patterns
// write it out, for scalars and vectors, with the result that the instruction has elsewhere: for every input,
// infinities and NaN among them.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_CPU_EXPANDFLOATS_H
#define ATTN_LIB_CODEGEN_CPU_EXPANDFLOATS_H

#include "../Math/Elementwise.h"
#include "mlir/IR/PatternMatch.h"

namespace attn::cpu {

/// floor, ceil, trunc and roundeven by additions.
void populateRoundingPatterns(mlir::RewritePatternSet &patterns);
/// math.fma of f32 and f64 with one rounding.
void populateFmaPatterns(mlir::RewritePatternSet &patterns);
/// arith.remf of f32 and f64, exact, by integer remainders.
void populateRemainderPatterns(mlir::RewritePatternSet &patterns);

/// Ops on f16 and bf16 become f32 ops between conversions; what is narrowed from f64 is rounded once. bf16 conversions
/// are written out, and f16 ones where there is no instruction for them.
void populateNarrowFloatPatterns(mlir::RewritePatternSet &patterns, bool expandF16);

/// `x`, which is off the exact value by `rest`, with an odd last bit where that is not 0: a second rounding, to fewer
/// bits, then gives what a single one would.
Value roundToOdd(Elementwise &e, Value x, Value rest);

/// a b + c of f32 or narrower, rounded once: the product is exact in double, and so is the sum but for its rounding.
Value fmaByDouble(Elementwise &e, Value a, Value b, Value c);

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_EXPANDFLOATS_H
