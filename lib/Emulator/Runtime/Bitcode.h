//===- Bitcode.h - The run-time functions as LLVM bitcode -------------------===//
#ifndef ATTN_LIB_EMULATOR_RUNTIME_BITCODE_H
#define ATTN_LIB_EMULATOR_RUNTIME_BITCODE_H

#include "llvm/ADT/ArrayRef.h"

namespace attn::emulator {

/// Generic code; whoever compiles it picks the processor.
llvm::ArrayRef<unsigned char> runtimeBitcode();

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RUNTIME_BITCODE_H
