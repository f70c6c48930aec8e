//===- Object.h - The run-time functions as machine code --------------------===//
#ifndef ATTN_LIB_EMULATOR_RUNTIME_OBJECT_H
#define ATTN_LIB_EMULATOR_RUNTIME_OBJECT_H

#include "llvm/ADT/StringRef.h"

namespace attn::emulator {

/// An object file: of those built, the one for the widest vectors that this processor has.
llvm::StringRef runtimeObject();

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RUNTIME_OBJECT_H
