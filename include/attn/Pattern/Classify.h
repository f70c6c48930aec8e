//===- Classify.h - The interval reading as a function ---------*- C++ -*-===//

#ifndef ATTN_PATTERN_CLASSIFY_H
#define ATTN_PATTERN_CLASSIFY_H

#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Mask.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace attn {

/// Emits at the insertion point, in the body of a module, the function `name` that reads the mask of `op` over a
/// rectangle. It has the signature of AttnClassify (Abi.h),
///   (operands: !llvm.ptr, tables: !llvm.ptr, num_queries, num_keys, b, h, i_lo, i_hi, j_lo, j_hi: i64) -> i32,
/// holds arith, func and llvm ops, and reads captured tensors through calls of @attn_range, which is declared where it
/// is not yet. `reindexing` is that of the schedule by default; conjuncts that hold for all pairs of one of its classes
/// are left out. Failure, with a diagnostic at `op`, where the mask reads more than the runtime has room for.
mlir::FailureOr<mlir::func::FuncOp> emitClassify(mlir::OpBuilder &builder, AttentionOp op, llvm::StringRef name,
                                                 const Captures &captures,
                                                 std::optional<Reindexing> reindexing = std::nullopt);

} // namespace attn

#endif // ATTN_PATTERN_CLASSIFY_H
