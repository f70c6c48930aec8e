//===- AttnEmptyMask.cpp - Masks that keep nothing --------------------------===//
//
// A mask that keeps no pair at all is a slip of the author; it is reported where a few cheap rules prove it: a false
// constant, a condition together with its negation, and distances that exclude each other.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/EmptyMask.h"

#include "AttnEmptyMask.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace attn;

std::optional<Band> attn::readBand(Value value) {
  if (auto causal = value.getDefiningOp<CausalOp>())
    return Band{causal.getI(), causal.getJ(), std::nullopt, 0};
  auto window = value.getDefiningOp<WindowOp>();
  if (!window)
    return std::nullopt;
  Band band{window.getI(), window.getJ(), std::nullopt, std::nullopt};
  if (std::optional<int64_t> left = window.getLeft())
    band.low = -*left;
  if (std::optional<int64_t> right = window.getRight())
    band.high = *right;
  return band;
}

Value attn::readNegation(Value value) {
  auto negation = value.getDefiningOp<arith::XOrIOp>();
  return negation && matchPattern(negation.getRhs(), m_One()) ? negation.getLhs() : Value();
}

namespace {
/// Looks for the reason why a value is never true.
class EmptinessProof {
public:
  /// Why: the part to blame, a second one where two exclude each other, and words for it.
  struct Reason {
    Location part;
    std::optional<Location> other;
    std::string words;
  };

  /// The reason why `value` is never (`wanted` = true) or always (`wanted` = false) true; nothing where none is found.
  std::optional<Reason> refute(Value value, bool wanted = true) {
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant))) {
      if (constant.isZero() != wanted)
        return std::nullopt;
      return Reason{value.getLoc(), std::nullopt,
                    wanted ? "this constant is false" : "this constant is true, and is negated"};
    }
    if (Value negated = readNegation(value))
      return refute(negated, !wanted);
    // A conjunction is never true where one part is; a disjunction where all parts are; negated it is the other way
    // round.
    bool isAnd = value.getDefiningOp<arith::AndIOp>() != nullptr, isOr = value.getDefiningOp<arith::OrIOp>() != nullptr;
    if (isAnd == wanted && (isAnd || isOr))
      return refuteTogether(value, wanted);
    if (isAnd || isOr)
      return refuteEach(value.getDefiningOp(), wanted);
    return std::nullopt;
  }

private:
  /// A part that must be true (wanted) or false.
  struct Literal {
    Value value;
    bool wanted;
  };

  std::optional<Reason> refuteEach(Operation *op, bool wanted) {
    std::optional<Reason> first = refute(op->getOperand(0), wanted);
    return first && refute(op->getOperand(1), wanted) ? first : std::nullopt;
  }

  std::optional<Reason> refuteTogether(Value value, bool wanted) {
    SmallVector<Literal> literals;
    collect(value, wanted, literals);
    for (const Literal &literal : literals)
      if (literal.value != value)
        if (std::optional<Reason> reason = refute(literal.value, literal.wanted))
          return reason;
    for (auto [n, a] : llvm::enumerate(literals))
      for (const Literal &b : ArrayRef(literals).drop_front(n + 1))
        if (excludes(a, b))
          return Reason{b.value.getLoc(), a.value.getLoc(),
                        "this condition excludes another one that must hold as well"};
    return std::nullopt;
  }

  /// All parts that must hold for `value` to be as wanted.
  void collect(Value value, bool wanted, SmallVectorImpl<Literal> &literals) {
    if (Value negated = readNegation(value))
      return collect(negated, !wanted, literals);
    Operation *op = value.getDefiningOp();
    if (op && (wanted ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op)))
      for (Value operand : op->getOperands())
        collect(operand, wanted, literals);
    else
      literals.push_back({value, wanted});
  }

  static bool excludes(const Literal &a, const Literal &b) {
    if (a.wanted != b.wanted && isSame(a.value, b.value))
      return true;
    std::optional<Band> x = bandOf(a), y = bandOf(b);
    if (!x || !y || x->i != y->i || x->j != y->j)
      return false;
    return (x->low && y->high && *x->low > *y->high) || (y->low && x->high && *y->low > *x->high);
  }

  static bool isSame(Value a, Value b) {
    Operation *x = a.getDefiningOp(), *y = b.getDefiningOp();
    return a == b || (x && y && OperationEquivalence::isEquivalentTo(x, y, OperationEquivalence::IgnoreLocations));
  }

  /// The distances a literal allows, where they are one interval.
  static std::optional<Band> bandOf(const Literal &literal) {
    std::optional<Band> band = readBand(literal.value);
    if (!band || literal.wanted)
      return band;
    if (band->low && band->high)
      return std::nullopt;
    std::optional<int64_t> low = band->low;
    band->low = band->high ? std::optional(*band->high + 1) : std::nullopt;
    band->high = low ? std::optional(*low - 1) : std::nullopt;
    return band;
  }
};
} // namespace

LogicalResult attn::checkKeepsSomething(AttentionOp op) {
  if (!op.getMaskBlock())
    return success();
  std::optional<EmptinessProof::Reason> reason;
  for (Value member : op.getMaskMembers())
    if (!(reason = EmptinessProof().refute(member)))
      return success();
  InFlightDiagnostic error = emitError(reason->part)
                             << "the mask keeps nothing: " << reason->words << "; change it or leave the attention out";
  if (reason->other)
    error.attachNote(*reason->other) << "the other condition";
  error.attachNote(op.getLoc()) << "in the mask of this attention";
  return error;
}
