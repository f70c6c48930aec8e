//===- PTX.h - GPU kernels to text and machine code -------------*- C++ -*-===//
#ifndef ATTN_TARGET_PTX_H
#define ATTN_TARGET_PTX_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/Support/Error.h"
#include <string>

namespace attn {

/// PTX of a gpu.module of the LLVM dialect for `chip` (sm_80...). No CUDA toolkit takes part; a call of a function that
/// is not in the module is an error.
mlir::FailureOr<std::string> emitPTX(mlir::gpu::GPUModuleOp device, llvm::StringRef chip);

/// Whether there is a ptxas for assemblePTX.
bool hasPTXAssembler();

/// Machine code of PTX by the toolkit's ptxas, found in PATH or under CUDA_HOME, CUDA_PATH or /usr/local/cuda. The
/// error says what was looked for, or what ptxas said.
llvm::Expected<std::string> assemblePTX(llvm::StringRef ptx, llvm::StringRef chip);

} // namespace attn

#endif // ATTN_TARGET_PTX_H
