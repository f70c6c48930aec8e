//===- MaskProgram.cpp - A mask ready to be read --------------------------===//

#include "MaskProgram.h"
#include "IntervalRules.h"

using namespace mlir;
using namespace attn;

static constexpr unsigned kPositions = 4;

namespace {
/// Over everything that its operands' types allow.
class ProbeBuilder final : public ValueBuilder {
public:
  Num numQueries() final { return constant(0); }
  Num numKeys() final { return constant(0); }
  FailureOr<Interval> range(Operation *op, ArrayRef<Interval>) final { return failure(); }
};
} // namespace

/// A predicate with an interval rule of its own is read by that, not by its meaning.
static bool hasOwnReading(MaskOpInterface op) {
  ProbeBuilder probe;
  SmallVector<Interval> operands;
  for (Type type : op->getOperandTypes()) {
    Bounds bounds = isReadable(type) ? getTypeRange(type) : Bounds{0, 0};
    operands.push_back({probe.constant(bounds.lo), probe.constant(bounds.hi)});
  }
  return succeeded(op.readInterval(probe, operands));
}

static ExpandedMask expand(AttentionOp op, const Reindexing &reindexing) {
  ExpandedMask mask(op, hasOwnReading);
  mask.dropConjuncts(reindexing);
  return mask;
}

MaskProgram::MaskProgram(AttentionOp op, const Reindexing &reindexing) : mask(expand(op, reindexing)), analysis(mask) {
  result = addCondition(analysis.getRoot());
  if (mask.getOnce())
    once = addCondition(*analysis.findCondition(mask.getOnce()));
}

unsigned MaskProgram::getTensor(Operation *op) {
  return cast<BlockArgument>(op->getOperand(0)).getArgNumber() - kPositions;
}

//===----------------------------------------------------------------------===//
// Making the steps
//===----------------------------------------------------------------------===//

unsigned MaskProgram::add(Step step) {
  steps.push_back(std::move(step));
  return kPositions + steps.size() - 1;
}

unsigned MaskProgram::addForm(const LinearForm &form) {
  if (std::optional<unsigned> atom = form.getAtom())
    return addAtom(*atom);
  Step step(Step::Kind::Sum);
  for (auto [atom, factor] : form.terms) {
    step.operands.push_back(addAtom(atom));
    step.factors.push_back(factor);
  }
  step.number = form.constant;
  return add(std::move(step));
}

unsigned MaskProgram::addAtom(unsigned index) {
  auto known = atomSlots.find(index);
  if (known != atomSlots.end())
    return known->second;
  const Atom &atom = analysis.getAtoms()[index];
  unsigned slot;
  if (atom.kind == Atom::Kind::Leaf) {
    slot = addLeaf(atom.leaf, atom.range);
  } else {
    Step step(atom.kind == Atom::Kind::FloorDiv ? Step::Kind::FloorDiv
              : atom.kind == Atom::Kind::Mod    ? Step::Kind::Mod
                                                : Step::Kind::Rem);
    step.operands.push_back(addForm(atom.argument));
    step.number = atom.divisor;
    slot = add(std::move(step));
  }
  return atomSlots[index] = slot;
}

/// The slot of an operand. What is not readable has none, and the first slot stands in for it.
unsigned MaskProgram::addValue(Value value) {
  if (const LinearForm *form = analysis.findForm(value))
    return addForm(*form);
  if (std::optional<unsigned> condition = analysis.findCondition(value))
    return addCondition(*condition);
  return 0;
}

unsigned MaskProgram::addLeaf(Value value, Bounds bounds) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber();
  Operation *op = value.getDefiningOp();
  auto known = leafSlots.find(op);
  if (known != leafSlots.end())
    return known->second;
  bool pointOnly = analysis.isPointOnly(op);
  Step step(pointOnly ? Step::Kind::PointOnly : Step::Kind::Op);
  for (Value operand : op->getOperands())
    step.operands.push_back(addValue(operand));
  step.op = op;
  step.model = dyn_cast<MaskOpInterface>(op);
  step.bounds = bounds;
  return leafSlots[op] = add(std::move(step));
}

unsigned MaskProgram::addCondition(unsigned index) {
  auto known = conditionSlots.find(index);
  if (known != conditionSlots.end())
    return known->second;
  const Condition &condition = analysis.getConditions()[index];
  auto withChildren = [&](Step::Kind kind) {
    Step step(kind);
    for (unsigned child : condition.children)
      step.operands.push_back(addCondition(child));
    return step;
  };
  auto make = [&]() -> unsigned {
    Step step(Step::Kind::Truth);
    switch (condition.kind) {
    case Condition::Kind::Leaf:
      return addLeaf(condition.leaf, {0, 1});
    case Condition::Kind::Constant:
      step.number = condition.truth;
      return add(std::move(step));
    case Condition::Kind::Set:
      step.kind = Step::Kind::Set;
      step.operands.push_back(addForm(condition.form));
      step.set = &condition.set;
      return add(std::move(step));
    case Condition::Kind::Not:
      return add(withChildren(Step::Kind::Not));
    case Condition::Kind::And:
      return add(withChildren(Step::Kind::And));
    case Condition::Kind::Or:
      return add(withChildren(Step::Kind::Or));
    case Condition::Kind::Xor:
      return add(withChildren(Step::Kind::Xor));
    case Condition::Kind::Select:
      return add(withChildren(Step::Kind::Select));
    }
    llvm_unreachable("unknown condition");
  };
  unsigned slot = make();
  return conditionSlots[index] = slot;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Interval MaskProgram::readOp(const Step &step, ReadingBuilder &b, ArrayRef<Interval> slots) const {
  SmallVector<Interval, 4> operands;
  for (unsigned operand : step.operands)
    operands.push_back(slots[operand]);
  if (step.kind == Step::Kind::PointOnly)
    return b.readPoint(step.op, operands, step.bounds);
  // The model is called through a copy: the interface's methods are not const.
  FailureOr<Interval> interval = MaskOpInterface(step.model).readInterval(b, operands);
  if (succeeded(interval))
    return *interval;
  return {b.constant(step.bounds.lo), b.constant(step.bounds.hi)};
}

Interval MaskProgram::readSum(const Step &step, ReadingBuilder &b, ArrayRef<Interval> slots) const {
  Interval sum = b.point(step.number);
  bool empty = step.number == 0;
  for (auto [operand, factor] : llvm::zip_equal(step.operands, step.factors)) {
    Interval term = slots[operand];
    if (factor == -1 && !empty)
      sum = rules::sub(b, sum, term);
    else
      sum = empty ? rules::scale(b, term, factor) : rules::add(b, sum, rules::scale(b, term, factor));
    empty = false;
  }
  return sum;
}

Interval MaskProgram::readStep(const Step &step, ReadingBuilder &b, ArrayRef<Interval> slots) const {
  auto fold = [&](Interval (*rule)(IntervalBuilder &, Interval, Interval)) {
    Interval value = slots[step.operands[0]];
    for (unsigned operand : llvm::drop_begin(step.operands))
      value = rule(b, value, slots[operand]);
    return value;
  };
  switch (step.kind) {
  case Step::Kind::Op:
  case Step::Kind::PointOnly:
    return readOp(step, b, slots);
  case Step::Kind::Sum:
    return readSum(step, b, slots);
  case Step::Kind::FloorDiv: {
    Num divisor = b.constant(step.number);
    const Interval &x = slots[step.operands[0]];
    return {b.floorDiv(x.lo, divisor), b.floorDiv(x.hi, divisor)};
  }
  case Step::Kind::Mod:
    return rules::mod(b, slots[step.operands[0]], b.point(step.number));
  case Step::Kind::Rem:
    return rules::rem(b, slots[step.operands[0]], b.point(step.number));
  case Step::Kind::Set:
    return rules::contains(b, *step.set, slots[step.operands[0]]);
  case Step::Kind::Not:
    return rules::negate(b, slots[step.operands[0]]);
  case Step::Kind::And:
    return fold(rules::both);
  case Step::Kind::Or:
    return fold(rules::either);
  case Step::Kind::Xor:
    return fold(rules::exclusive);
  case Step::Kind::Select:
    return rules::select(b, slots[step.operands[0]], slots[step.operands[1]], slots[step.operands[2]]);
  case Step::Kind::Truth:
    return b.point(step.number);
  }
  llvm_unreachable("unknown step");
}

Interval MaskProgram::read(ReadingBuilder &builder, const std::array<Interval, 4> &position) const {
  SmallVector<Interval, 32> slots(position.begin(), position.end());
  slots.reserve(kPositions + steps.size());
  for (const Step &step : steps)
    slots.push_back(readStep(step, builder, slots));
  Interval answer = slots[result];
  if (once)
    answer.lo = builder.min(answer.lo, slots[*once].lo);
  return answer;
}
