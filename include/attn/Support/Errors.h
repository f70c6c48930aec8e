//===- Errors.h - Errors made of text ---------------------------------------===//
#ifndef ATTN_SUPPORT_ERRORS_H
#define ATTN_SUPPORT_ERRORS_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// An error whose message is all `parts` one after the other.
template <typename... Parts>
llvm::Error makeError(const Parts &...parts) {
  std::string text;
  llvm::raw_string_ostream os(text);
  (os << ... << parts);
  return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

} // namespace attn

#endif // ATTN_SUPPORT_ERRORS_H
