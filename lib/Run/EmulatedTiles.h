//===- EmulatedTiles.h - AMX on a machine without it ------------*- C++ -*-===//
//
// Kernels with tile instructions, run where there are none: each instruction becomes a call of a function that does in
// memory what it does in the tile registers of a thread. What the instructions are strict about is checked: the
// configuration comes first and is left at the end, and shapes fit.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_RUN_EMULATEDTILES_H
#define ATTN_LIB_RUN_EMULATEDTILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/Module.h"

namespace attn::run {

/// Replaces the tile instructions of a module by calls.
void emulateTiles(llvm::Module &module);

/// The functions that are called then.
struct EmulatedInstruction {
  llvm::StringRef intrinsic, name;
  void *address;
};
llvm::ArrayRef<EmulatedInstruction> getEmulatedInstructions();

} // namespace attn::run

#endif // ATTN_LIB_RUN_EMULATEDTILES_H
