//===- AttnSteps.h - The steps around attention -----------------*- C++ -*-===//
#ifndef ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H
#define ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/AttnStepEnums.h.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnSteps.h.inc"

#endif // ATTN_DIALECT_ATTN_IR_ATTNSTEPS_H
