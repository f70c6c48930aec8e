//===- Header.h - The C header of a compiled spec --------------*- C++ -*-===//
#ifndef ATTN_TARGET_HEADER_H
#define ATTN_TARGET_HEADER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// Writes the C and C++ header that declares and documents what an object of `spec` exports. It needs only
/// <dlpack/dlpack.h>. `name` is that of the spec, for the include guard. Failure, with diagnostics, where a public
/// function cannot be compiled. `chip` is the GPU whose memory the tensors are in; empty for a CPU.
mlir::LogicalResult writeHeader(mlir::ModuleOp spec, llvm::StringRef name, llvm::StringRef chip, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_TARGET_HEADER_H
