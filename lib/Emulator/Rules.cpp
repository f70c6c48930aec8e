//===- Rules.cpp - How each op of a kernel is emulated ----------------------===//
#include "Rules.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

const attn::emulator::Rule *attn::emulator::findRule(const RuleTable &rules, Operation *op) {
  auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
  auto it = rules.find(intrinsic ? intrinsic.getIntrin() : op->getName().getStringRef());
  return it == rules.end() ? nullptr : &it->second;
}
