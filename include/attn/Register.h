//===- Register.h - Everything of attn-mlir in three calls ------------------===//
//
// What a tool, a plugin or another compiler calls to know our dialects and passes. Upstream's are the caller's
// business.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_REGISTER_H
#define ATTN_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace attn {

/// The dialects: attn and what it is lowered to.
void registerAllDialects(mlir::DialectRegistry &registry);

/// What our dialects attach to ops of other dialects.
void registerAllExtensions(mlir::DialectRegistry &registry);

/// All passes and pipelines by name; call it once.
void registerAllPasses();

} // namespace attn

#endif // ATTN_REGISTER_H
