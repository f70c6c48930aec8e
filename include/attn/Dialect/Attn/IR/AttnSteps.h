//===- AttnSteps.h - The steps around attention -----------------*- C++ -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H
#define ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/AttnStepEnums.h.inc"

namespace attn {
/// An extent that has to be at least source * times + plus, unless the source is 0.
struct ExtentLeast {
  ExtentPlace place, source;
  int64_t times, plus;
};
} // namespace attn

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnSteps.h.inc"

#endif // ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H
