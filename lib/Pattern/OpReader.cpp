//===- OpReader.cpp - From ops to linear forms and conditions -------------===//

#include "OpReader.h"
#include "ReadingBuilder.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {
/// Reads ops over everything that can occur at all.
class StaticBuilder : public ValueBuilder {
public:
  bool hasOverflowed() const { return overflowed; }
  Num numQueries() final { return constant(0); } // not asked: OpReader knows the extents
  Num numKeys() final { return constant(0); }
  FailureOr<Interval> range(Operation *op, ArrayRef<Interval>) final {
    Type type = op->getResult(0).getType();
    if (!isReadable(type))
      return failure();
    Bounds range = getTypeRange(type);
    return Interval{constant(range.lo), constant(range.hi)};
  }
};

const Bounds kExtent = {0, (int64_t(1) << 31) - 1};
} // namespace

void OpReader::read(Operation *op) {
  if (op->getNumResults() != 1 || !isReadable(op->getResult(0).getType()))
    return;
  Value result = op->getResult(0);
  bool known = llvm::all_of(op->getOperandTypes(), [](Type type) { return isReadable(type) || isa<ShapedType>(type); });
  if (result.getType().isInteger(1)) {
    std::optional<unsigned> truth = known ? readTruth(op) : std::nullopt;
    analysis.truths[result] = truth ? *truth : getTruth(result);
    return;
  }
  Bounds type = getTypeRange(result.getType());
  if (std::optional<LinearForm> form = known ? readLinear(op) : std::nullopt) {
    form = atoms.foldRemainders(*form);
    std::optional<Bounds> range = atoms.getRange(*form);
    if (range && range->lo >= type.lo && range->hi <= type.hi) {
      analysis.forms[result] = *form;
      return;
    }
  }
  getForm(result);
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

LinearForm OpReader::getForm(Value value) {
  auto it = analysis.forms.find(value);
  if (it != analysis.forms.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  if (Value twin = op ? findTwin(op) : Value())
    return analysis.forms[value] = analysis.forms.lookup(twin);
  Bounds range = op ? readLeaf(op) : getTypeRange(value.getType());
  return analysis.forms[value] = LinearForm::ofAtom(atoms.makeLeaf(value, range));
}

unsigned OpReader::getTruth(Value value) {
  auto it = analysis.truths.find(value);
  if (it != analysis.truths.end())
    return it->second;
  Operation *op = value.getDefiningOp();
  if (Value twin = op ? findTwin(op) : Value())
    return analysis.truths[value] = analysis.truths.lookup(twin);
  if (op)
    readLeaf(op);
  return analysis.truths[value] = conditions.makeLeaf(value);
}

bool OpReader::areSame(Value a, Value b) {
  if (a == b)
    return true;
  if (a.getType() != b.getType())
    return false;
  if (analysis.forms.count(a) && analysis.forms.count(b))
    return analysis.forms[a] == analysis.forms[b];
  return analysis.truths.count(a) && analysis.truths.count(b) && analysis.truths[a] == analysis.truths[b];
}

/// The result of an earlier leaf that computes the same.
Value OpReader::findTwin(Operation *op) {
  for (Operation *leaf : leaves)
    if (leaf->getName() == op->getName() && leaf->getAttrDictionary() == op->getAttrDictionary() &&
        leaf->getResultTypes() == op->getResultTypes() && leaf->getNumOperands() == op->getNumOperands() &&
        llvm::all_of(llvm::zip(leaf->getOperands(), op->getOperands()),
                     [&](auto pair) { return areSame(std::get<0>(pair), std::get<1>(pair)); }))
      return leaf->getResult(0);
  leaves.push_back(op);
  return {};
}

/// Rules of division and of unsigned order are exact on single values only where no operand can be negative.
bool OpReader::needsPoints(Operation *op) {
  bool divides =
      isa<arith::FloorDivSIOp, arith::DivSIOp, arith::RemSIOp, index::FloorDivSOp, index::DivSOp, index::RemSOp>(op);
  bool isUnsigned = isa<arith::DivUIOp, arith::RemUIOp, arith::MinUIOp, arith::MaxUIOp, index::DivUOp, index::RemUOp,
                        index::MinUOp, index::MaxUOp>(op);
  if (op->getResult(0).getType().isInteger(1))
    return false;
  return (divides && getRange(op->getOperand(1)).lo < 1) ||
         (isUnsigned && !(isNonNegative(op->getOperand(0)) && isNonNegative(op->getOperand(1))));
}

/// The range of an op that is an atom, by its interval rule; ops whose rule may not hold are marked.
Bounds OpReader::readLeaf(Operation *op) {
  Bounds type = getTypeRange(op->getResult(0).getType());
  if (isa<NumKeysOp, NumQueriesOp, tensor::DimOp>(op))
    return kExtent;
  StaticBuilder builder;
  SmallVector<Interval> operands;
  for (Value operand : op->getOperands()) {
    Bounds range = {0, 0};
    if (operand.getType().isInteger(1))
      range = {0, 1};
    else if (isReadable(operand.getType()))
      range = getRange(operand);
    else if (!isa<ShapedType>(operand.getType())) { // a floating-point number, or a wide one
      analysis.pointOnly.insert(op);
      return type;
    }
    operands.push_back({builder.constant(range.lo), builder.constant(range.hi)});
  }
  auto model = needsPoints(op) ? MaskOpInterface() : dyn_cast<MaskOpInterface>(op);
  FailureOr<Interval> interval = model ? model.readInterval(builder, operands) : FailureOr<Interval>();
  if (succeeded(interval) && !builder.hasOverflowed() && interval->lo.constant >= type.lo &&
      interval->hi.constant <= type.hi)
    return {interval->lo.constant, interval->hi.constant};
  analysis.pointOnly.insert(op);
  return type;
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

std::optional<int64_t> OpReader::getPositiveConstant(Value value) {
  LinearForm form = getForm(value);
  if (form.isConstant() && form.constant > 0)
    return form.constant;
  return std::nullopt;
}

/// A shift by more bits than a number has is 0, not a product or quotient.
static bool isShiftAmount(const LinearForm &amount, Operation *op) {
  Type type = op->getResult(0).getType();
  int64_t bits = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  return amount.isConstant() && amount.constant >= 0 && amount.constant < std::min<int64_t>(bits, 62);
}

/// The form of an integer op by the mathematical meaning; the caller sees to it that the result fits its type.
std::optional<LinearForm> OpReader::readLinear(Operation *op) {
  APInt constant;
  if (matchPattern(op, m_ConstantInt(&constant)))
    return LinearForm::ofConstant(constant.getSExtValue());
  if (isa<arith::AddIOp, index::AddOp>(op))
    return linearSum(getForm(op->getOperand(0)), 1, getForm(op->getOperand(1)), 1);
  if (isa<arith::SubIOp, index::SubOp>(op))
    return linearSum(getForm(op->getOperand(0)), 1, getForm(op->getOperand(1)), -1);
  if (isa<arith::MulIOp, index::MulOp>(op))
    return readProduct(op->getOperand(0), op->getOperand(1));
  if (isa<arith::ShLIOp, index::ShlOp>(op)) {
    LinearForm amount = getForm(op->getOperand(1));
    if (isShiftAmount(amount, op))
      return linearSum(getForm(op->getOperand(0)), int64_t(1) << amount.constant, {}, 0);
    return std::nullopt;
  }
  if (isa<arith::IndexCastOp, index::CastSOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return readCast(op, /*isUnsigned=*/false);
  if (isa<arith::IndexCastUIOp, index::CastUOp, arith::ExtUIOp>(op))
    return readCast(op, /*isUnsigned=*/true);
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return readSelect(choice);
  if (isa<arith::MaxSIOp, arith::MinSIOp, index::MaxSOp, index::MinSOp>(op))
    return readExtremum(op);
  return readDivision(op);
}

/// Widening keeps the value, and so does narrowing where it fits. Truth values are leaves: they have no form.
std::optional<LinearForm> OpReader::readCast(Operation *op, bool isUnsigned) {
  Value source = op->getOperand(0);
  if (source.getType().isInteger(1) || (isUnsigned && !isNonNegative(source)))
    return std::nullopt;
  return getForm(source);
}

std::optional<LinearForm> OpReader::readProduct(Value a, Value b) {
  LinearForm x = getForm(a), y = getForm(b);
  if (x.isConstant())
    std::swap(x, y);
  if (!y.isConstant())
    return std::nullopt;
  return linearSum(x, y.constant, {}, 0);
}

/// Quotients and remainders by positive constants. Where the dividend is not negative, all roundings down and to zero
/// and all signs agree.
std::optional<LinearForm> OpReader::readDivision(Operation *op) {
  if (op->getNumOperands() != 2 || op->getOperandTypes()[0] != op->getResult(0).getType())
    return std::nullopt;
  LinearForm dividend = getForm(op->getOperand(0));
  Value divisor = op->getOperand(1);
  LinearForm amount = getForm(divisor);
  bool natural = isNonNegative(op->getOperand(0));
  if (isa<arith::ShRSIOp, index::ShrSOp>(op) || (natural && isa<arith::ShRUIOp, index::ShrUOp>(op))) {
    if (isShiftAmount(amount, op))
      return atoms.floorDiv(dividend, int64_t(1) << amount.constant);
    return std::nullopt;
  }
  std::optional<int64_t> size = getPositiveConstant(divisor);
  if (!size)
    return std::nullopt;
  if (isa<arith::AndIOp, index::AndOp>(op) && (*size & (*size + 1)) == 0 && *size < IntSet::kGreatest)
    return atoms.mod(dividend, *size + 1);
  if (isa<arith::FloorDivSIOp, index::FloorDivSOp>(op) ||
      (natural && isa<arith::DivSIOp, arith::DivUIOp, index::DivSOp, index::DivUOp>(op)))
    return atoms.floorDiv(dividend, *size);
  bool roundsUp =
      isa<arith::CeilDivSIOp, index::CeilDivSOp>(op) || (natural && isa<arith::CeilDivUIOp, index::CeilDivUOp>(op));
  if (roundsUp) {
    std::optional<LinearForm> raised = linearSum(dividend, 1, LinearForm::ofConstant(*size - 1), 1);
    if (raised && atoms.getRange(*raised))
      return atoms.floorDiv(*raised, *size);
    return std::nullopt;
  }
  if (isa<arith::RemSIOp, index::RemSOp>(op) || (natural && isa<arith::RemUIOp, index::RemUOp>(op)))
    return atoms.rem(dividend, *size);
  return std::nullopt;
}

/// A maximum or minimum that the ranges decide.
std::optional<LinearForm> OpReader::readExtremum(Operation *op) {
  Value a = op->getOperand(0), b = op->getOperand(1);
  bool wantsMax = isa<arith::MaxSIOp, index::MaxSOp>(op);
  if (getRange(a).lo >= getRange(b).hi)
    return getForm(wantsMax ? a : b);
  if (getRange(b).lo >= getRange(a).hi)
    return getForm(wantsMax ? b : a);
  return std::nullopt;
}

/// A decided choice, or `r < 0 ? r + m : r` for a remainder r by m, which is the remainder that is never negative.
std::optional<LinearForm> OpReader::readSelect(arith::SelectOp op) {
  unsigned truth = getTruth(op.getCondition());
  LinearForm raised = getForm(op.getTrueValue()), plain = getForm(op.getFalseValue());
  if (std::optional<bool> decided = conditions.getConstant(truth))
    return *decided ? raised : plain;
  if (raised == plain)
    return plain;
  std::optional<unsigned> index = plain.getAtom();
  if (!index || atoms[*index].kind != Atom::Kind::Rem)
    return std::nullopt;
  LinearForm dividend = atoms[*index].argument;
  int64_t divisor = atoms[*index].divisor;
  const Condition &condition = conditions[truth];
  bool negative = condition.kind == Condition::Kind::Set && condition.form == plain &&
                  condition.set == IntSet::interval(IntSet::kLeast, -1);
  if (!negative || linearSum(plain, 1, LinearForm::ofConstant(divisor), 1) != raised)
    return std::nullopt;
  return atoms.mod(dividend, divisor);
}

//===----------------------------------------------------------------------===//
// Truth values
//===----------------------------------------------------------------------===//

static std::optional<arith::CmpIPredicate> getComparison(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate();
  if (auto compare = dyn_cast<index::CmpOp>(op)) // the same names in the same meaning, in another order
    return arith::symbolizeCmpIPredicate(index::stringifyIndexCmpPredicate(compare.getPred()));
  return std::nullopt;
}

std::optional<unsigned> OpReader::readTruth(Operation *op) {
  APInt constant;
  if (matchPattern(op, m_ConstantInt(&constant)))
    return conditions.makeConstant(constant.isOne());
  if (isa<arith::AndIOp, arith::MulIOp>(op))
    return conditions.conjunction({getTruth(op->getOperand(0)), getTruth(op->getOperand(1))});
  if (isa<arith::OrIOp>(op))
    return conditions.disjunction({getTruth(op->getOperand(0)), getTruth(op->getOperand(1))});
  if (isa<arith::XOrIOp, arith::AddIOp, arith::SubIOp>(op)) // modulo 2 they are one
    return conditions.exclusive(getTruth(op->getOperand(0)), getTruth(op->getOperand(1)));
  if (auto choice = dyn_cast<arith::SelectOp>(op))
    return conditions.select(getTruth(choice.getCondition()), getTruth(choice.getTrueValue()),
                             getTruth(choice.getFalseValue()));
  if (std::optional<Predicate> predicate = getComparison(op))
    return compare(*predicate, op->getOperand(0), op->getOperand(1));
  return std::nullopt;
}

std::optional<unsigned> OpReader::compare(Predicate predicate, Value a, Value b) {
  if (a.getType().isInteger(1)) {
    if (predicate != Predicate::eq && predicate != Predicate::ne)
      return std::nullopt;
    unsigned differ = conditions.exclusive(getTruth(a), getTruth(b));
    return predicate == Predicate::ne ? differ : conditions.negate(differ);
  }
  switch (predicate) {
  case Predicate::ult:
  case Predicate::ule:
  case Predicate::ugt:
  case Predicate::uge:
    return compareUnsigned(predicate, a, b);
  default:
    return compareSigned(predicate, getForm(a), getForm(b));
  }
}

/// The differences a - b for which the comparison holds.
static IntSet getDifferences(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return IntSet::interval(0, 0);
  case arith::CmpIPredicate::ne:
    return IntSet::interval(0, 0).complement();
  case arith::CmpIPredicate::slt:
    return IntSet::interval(IntSet::kLeast, -1);
  case arith::CmpIPredicate::sle:
    return IntSet::interval(IntSet::kLeast, 0);
  case arith::CmpIPredicate::sgt:
    return IntSet::interval(1, IntSet::kGreatest);
  default: // sge; the caller has dealt with unsigned ones
    return IntSet::interval(0, IntSet::kGreatest);
  }
}

std::optional<unsigned> OpReader::compareSigned(Predicate predicate, const LinearForm &a, const LinearForm &b) {
  std::optional<LinearForm> difference = linearSum(a, 1, b, -1);
  if (!difference || !atoms.getRange(*difference))
    return std::nullopt;
  return conditions.makeSet(*difference, getDifferences(predicate));
}

/// A negative number counts as larger than all others: where b is not negative, `a < b` is `0 <= a and a < b`.
std::optional<unsigned> OpReader::compareUnsigned(Predicate predicate, Value a, Value b) {
  LinearForm x = getForm(a), y = getForm(b), zero;
  bool greater = predicate == Predicate::ugt || predicate == Predicate::uge;
  bool strict = predicate == Predicate::ugt || predicate == Predicate::ult;
  Predicate asSigned =
      greater ? (strict ? Predicate::sgt : Predicate::sge) : (strict ? Predicate::slt : Predicate::sle);
  std::optional<unsigned> signedOrder = compareSigned(asSigned, x, y);
  if (!signedOrder)
    return std::nullopt;
  if (isNonNegative(a) && isNonNegative(b))
    return signedOrder;
  if (!isNonNegative(a) && !isNonNegative(b))
    return std::nullopt;
  bool negativeLeft = isNonNegative(b);
  std::optional<unsigned> natural = compareSigned(Predicate::sge, negativeLeft ? x : y, zero);
  if (!natural)
    return std::nullopt;
  // The negative side is the greater one; whether that makes the comparison true depends on the side it stands on.
  bool trueWhenNegative = greater == negativeLeft;
  if (trueWhenNegative)
    return conditions.disjunction({conditions.negate(*natural), *signedOrder});
  return conditions.conjunction({*natural, *signedOrder});
}
