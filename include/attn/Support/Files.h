//===- Files.h - Where results are written ------------------------*- C++ -*-===//
#ifndef ATTN_SUPPORT_FILES_H
#define ATTN_SUPPORT_FILES_H

#include "llvm/Support/Error.h"

namespace attn {

/// Fails where no file can be written at `path`. Touches nothing, so that it can be asked before the work that makes
/// the contents.
llvm::Error checkWritable(llvm::StringRef path);

/// Writes a file at once: one that was there before stays whole until the new one is. "-" is standard output; a device
/// or a pipe gets the bytes.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef bytes);

} // namespace attn

#endif // ATTN_SUPPORT_FILES_H
