//===- ExtentTie.h - Extents that tensors share -----------------*- C++ -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_EXTENTTIE_H
#define ATTN_DIALECT_ATTN_IR_EXTENTTIE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace attn {

/// One dimension of a tensor.
struct ExtentPlace {
  mlir::Value tensor;
  unsigned dim;
};

/// An extent that follows from another one: (source * times + plus) floordiv by.
struct ExtentRule {
  ExtentPlace source;
  int64_t times = 1, plus = 0, by = 1;

  /// 0 where the formula goes below it.
  int64_t apply(int64_t extent) const {
    int64_t number = extent * times + plus;
    return number < 0 ? 0 : number / by;
  }
};

/// Dimensions that have to be of one extent, under the name that messages give it: "batch", "queries". Places of a
/// tensor that is not there (null) are left out.
struct ExtentTie {
  std::string name;
  llvm::SmallVector<ExtentPlace, 4> places;
  std::optional<ExtentRule> rule;
};

/// An extent that has to be a multiple of another one.
struct ExtentMultiple {
  ExtentPlace place, of;
};

/// Gives the extent of a dimension.
using ExtentGetter = llvm::function_ref<int64_t(ExtentPlace)>;

/// What an op does at given extents, however fast.
struct StepWork {
  int64_t operations = 0; // on numbers: a multiplication, an addition, a comparison, an exponential each count one
  int64_t bytesRead = 0, bytesWritten = 0; // of tensors in memory, each element once

  StepWork &operator+=(const StepWork &other) {
    operations += other.operations;
    bytesRead += other.bytesRead;
    bytesWritten += other.bytesWritten;
    return *this;
  }
};

/// The tensors of an attention; null where there is none.
struct AttentionTensors {
  mlir::Value query, key, value, output, lse, joinedOutput, joinedLse;
  llvm::SmallVector<mlir::Value, 3>
      perHead;        // of query heads in their first dimension, head_dim in a last one behind it
  mlir::Value scores; // in place of query and key
  mlir::Value queryIndices = {}, keyIndices = {}; // lists of rows

  llvm::SmallVector<ExtentTie> getExtentTies() const;
  llvm::SmallVector<mlir::Value> getContiguous() const;
};

} // namespace attn

#endif // ATTN_DIALECT_ATTN_IR_EXTENTTIE_H
