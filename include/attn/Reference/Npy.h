//===- Npy.h - Tensors as .npy files ----------------------------------------===//
#ifndef ATTN_REFERENCE_NPY_H
#define ATTN_REFERENCE_NPY_H

#include "attn/Reference/HostTensor.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

namespace attn {

/// Reads a .npy file (format 1, 2 or 3, little endian, C or Fortran order; bool, signed and unsigned integers, f16,
/// f32, f64; raw elements of two bytes, "V2", are bf16). Unsigned integers keep their bits. An error names the file and
/// says what is wrong with it.
llvm::Expected<HostTensor> readNpy(llvm::StringRef path, mlir::MLIRContext *context);

/// Writes a .npy file of format 1 in C order. bf16, which NumPy does not know, is written as f32.
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);

} // namespace attn

#endif // ATTN_REFERENCE_NPY_H
