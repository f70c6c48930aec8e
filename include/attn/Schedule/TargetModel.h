//===- TargetModel.h - What a CPU can do ------------------------*- C++ -*-===//
//
// Everything about a chip that decides tile sizes and code forms stands here.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SCHEDULE_TARGETMODEL_H
#define ATTN_SCHEDULE_TARGETMODEL_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

struct TargetModel {
  std::string triple, cpu, features; // as LLVM takes them
  std::string form;                  // "AVX-512", "AVX2 and FMA", "portable, 4 lanes"
  int64_t lanes = 4;                 // f32 of a vector
  int64_t rows = 4;                  // key rows of a register block of three vectors
  bool avx512Exp = false;            // vreduceps and vscalefps
  int64_t l2Bytes = 1 << 20;         // of a core

  /// The model of `cpu`: "native", or a name that LLVM knows for the architecture of `triple` (empty: the host's). The
  /// vector form follows the feature bits. An unknown name is an error text that says what is known.
  static mlir::FailureOr<TargetModel> get(llvm::StringRef cpu, llvm::StringRef triple, std::string &error);
};

} // namespace attn

#endif // ATTN_SCHEDULE_TARGETMODEL_H
