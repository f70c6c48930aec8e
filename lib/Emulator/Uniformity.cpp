//===- Uniformity.cpp - On which values do the lanes of a warp agree? -------===//
#include "Uniformity.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn::emulator {

Uniformity::Uniformity(Operation *kernel, const RuleTable &rules) : rules(rules) {
  do {
    changed = false;
    for (Region &region : kernel->getRegions())
      for (Block &block : region)
        visitBlock(block);
  } while (changed);
}

void Uniformity::mark(Value value, bool isVarying) {
  if (isVarying)
    changed |= varying.insert(value).second;
}

void Uniformity::markAll(ValueRange values, bool areVarying) {
  for (Value value : values)
    mark(value, areVarying);
}

bool Uniformity::isAnyVarying(ValueRange values) const {
  return llvm::any_of(values, [&](Value value) { return isVarying(value); });
}

void Uniformity::visitBlock(Block &block) {
  for (Operation &op : block)
    visit(&op);
}

// Each list flows into the values at the same position.
static auto flows(ValueRange from, ValueRange to) { return llvm::zip_equal(std::move(from), std::move(to)); }

void Uniformity::visitLoop(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    bool diverges = isAnyVarying({loop.getLowerBound(), loop.getUpperBound(), loop.getStep()});
    mark(loop.getInductionVar(), diverges);
    for (auto [init, arg] : flows(loop.getInitArgs(), loop.getRegionIterArgs()))
      mark(arg, diverges || isVarying(init));
    visitBlock(*loop.getBody());
    for (auto [next, arg] : flows(loop.getYieldedValues(), loop.getRegionIterArgs()))
      mark(arg, isVarying(next));
    for (auto [arg, result] : flows(loop.getRegionIterArgs(), loop.getResults()))
      mark(result, isVarying(arg));
    return;
  }
  auto loop = cast<scf::WhileOp>(op);
  for (auto [init, arg] : flows(loop.getInits(), loop.getBeforeArguments()))
    mark(arg, isVarying(init));
  visitBlock(*loop.getBeforeBody());
  scf::ConditionOp condition = loop.getConditionOp();
  bool diverges = isVarying(condition.getCondition());
  markAll(loop.getBeforeArguments(), diverges);
  for (auto [value, arg, result] : llvm::zip_equal(condition.getArgs(), loop.getAfterArguments(), loop.getResults())) {
    mark(arg, diverges || isVarying(value));
    mark(result, diverges || isVarying(value));
  }
  visitBlock(*loop.getAfterBody());
  for (auto [next, arg] : flows(loop.getYieldOp().getOperands(), loop.getBeforeArguments()))
    mark(arg, isVarying(next));
}

void Uniformity::visit(Operation *op) {
  if (isa<scf::ForOp, scf::WhileOp>(op))
    return visitLoop(op);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    markAll(branch.getResults(), isVarying(branch.getCondition()));
    visitBlock(*branch.thenBlock());
    if (branch.elseBlock())
      visitBlock(*branch.elseBlock());
    if (branch.getNumResults() == 0)
      return;
    for (auto [a, b, result] :
         llvm::zip_equal(branch.thenYield().getOperands(), branch.elseYield().getOperands(), branch.getResults()))
      mark(result, isVarying(a) || isVarying(b));
    return;
  }
  const Rule *rule = findRule(rules, op);
  if (!rule) // The rewriting reports it.
    return;
  markAll(op->getResults(), rule->agreement == Agreement::Never ||
                                (rule->agreement == Agreement::Operands && isAnyVarying(op->getOperands())));
}

} // namespace attn::emulator
