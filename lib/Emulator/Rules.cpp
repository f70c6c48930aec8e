//===- Rules.cpp - How each op of a kernel is emulated ----------------------===//
#include "Rules.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attn::emulator {

StringRef instructionName(Operation *op) {
  auto intrinsic = dyn_cast<LLVM::CallIntrinsicOp>(op);
  return intrinsic ? intrinsic.getIntrin() : op->getName().getStringRef();
}

const Rule *findRule(const RuleTable &rules, Operation *op) {
  auto it = rules.find(instructionName(op));
  return it == rules.end() ? nullptr : &it->second;
}

} // namespace attn::emulator
