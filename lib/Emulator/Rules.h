//===- Rules.h - How each op of a kernel is emulated ------------------------===//
#ifndef ATTN_LIB_EMULATOR_RULES_H
#define ATTN_LIB_EMULATOR_RULES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/LogicalResult.h"

namespace attn::emulator {

class WarpBuilder;

/// When the lanes of a warp agree on the results of an op.
enum class Agreement {
  /// Where they agree on its operands.
  Operands,
  Always,
  Never,
};

struct Rule {
  llvm::LogicalResult (*rewrite)(WarpBuilder &builder, mlir::Operation *op) = nullptr;
  Agreement agreement = Agreement::Operands;
  /// Is it an instruction of the machine? Constants and the taking apart of structs are not.
  bool counted = true;
  /// The first chip that has it.
  unsigned chip = 0;
};

using RuleTable = llvm::StringMap<Rule>;

// One family of ops each.
void addArithmeticRules(RuleTable &rules);
void addAsyncCopyRules(RuleTable &rules);
void addCollectiveRules(RuleTable &rules);
void addControlFlowRules(RuleTable &rules);
void addMathRules(RuleTable &rules);
void addMatrixRules(RuleTable &rules);
void addMemoryRules(RuleTable &rules);
void addStructureRules(RuleTable &rules);

/// The name of an op, or of the intrinsic that it calls.
llvm::StringRef instructionName(mlir::Operation *op);
/// The rule of an op, or null.
const Rule *findRule(const RuleTable &rules, mlir::Operation *op);

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_RULES_H
