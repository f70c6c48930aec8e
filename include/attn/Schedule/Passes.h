//===- Passes.h - Choosing schedules ----------------------------*- C++ -*-===//
#ifndef ATTN_SCHEDULE_PASSES_H
#define ATTN_SCHEDULE_PASSES_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Pass/Pass.h"

namespace attn {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "attn/Schedule/Passes.h.inc"

} // namespace attn

#endif // ATTN_SCHEDULE_PASSES_H
