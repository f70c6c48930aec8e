//===- AttnSugarPrint.cpp - Print masks in short form --------------------===//
//
// The inverse of parsing: a region is printed in short form only where every op of it has a place there.
//
//===----------------------------------------------------------------------===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace attn;

namespace {
/// The positions that a part of a mask speaks of: those of tokens (size 0), or block numbers. Null: not used so far.
struct Scope {
  int64_t size = 0;
  Value numbers[2];

  /// Takes in another scope; false where both cannot stand in one blocked().
  bool merge(const Scope &other) {
    if (size != other.size)
      return false;
    for (int i : {0, 1}) {
      if (numbers[i] && other.numbers[i] && numbers[i] != other.numbers[i])
        return false;
      if (!numbers[i])
        numbers[i] = other.numbers[i];
    }
    return true;
  }
};

/// One term of the short form.
struct Term {
  explicit Term(Operation *op, const PredicateForm *form = nullptr, Scope scope = {})
      : op(op), form(form), scope(scope) {}

  Operation *op;
  const PredicateForm *form;  // null: and, or, not
  std::optional<Scope> scope; // nothing: the parts speak of different positions
  std::vector<Term> parts;
};

/// Reads terms off a block.
class TermReader {
public:
  explicit TermReader(Block &block) : block(block) {}

  /// The whole block as a term for each value that it yields; none where it has no short form.
  std::vector<Term> read() {
    auto yield = dyn_cast<YieldOp>(block.getTerminator());
    if (!yield || !take(yield))
      return {};
    std::vector<Term> terms;
    for (Value member : yield.getValues()) {
      std::optional<Term> term = readTerm(member);
      if (!term)
        return {};
      terms.push_back(std::move(*term));
    }
    bool complete = taken.size() == block.getOperations().size();
    return complete ? terms : std::vector<Term>();
  }

private:
  std::optional<Term> readTerm(Value value);
  std::optional<Term> readParts(Operation *op, ValueRange operands);
  std::optional<Term> readPredicate(Operation *op);
  std::optional<Term> readSet(ContainsOp op);
  bool readPlaces(StringRef places, ValueRange operands, Scope &scope);
  bool readPosition(int which, Value value, Scope &scope);

  /// Notes that an op has a place in the short form, which has none for attributes that are not its own.
  bool take(Operation *op) {
    taken.insert(op);
    return op->getDiscardableAttrs().empty();
  }
  bool isOutside(Value value) { return value.getParentBlock() != &block; }

  Block &block;
  llvm::SmallPtrSet<Operation *, 16> taken;
};
} // namespace

static bool isTrue(Value value) { return matchPattern(value, m_One()); }

std::optional<Term> TermReader::readTerm(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || !value.hasOneUse() || !take(op))
    return std::nullopt;
  if (isa<arith::AndIOp, arith::OrIOp>(op))
    return readParts(op, op->getOperands());
  if (auto contains = dyn_cast<ContainsOp>(op))
    return readSet(contains);
  auto negation = dyn_cast<arith::XOrIOp>(op);
  if (!negation)
    return readPredicate(op);
  Operation *one = negation.getRhs().getDefiningOp();
  if (!isTrue(negation.getRhs()) || one->getBlock() != &block || !take(one))
    return std::nullopt;
  return readParts(op, negation.getLhs());
}

std::optional<Term> TermReader::readParts(Operation *op, ValueRange operands) {
  Term term(op);
  for (Value operand : operands) {
    std::optional<Term> part = readTerm(operand);
    if (!part)
      return std::nullopt;
    if (term.parts.empty())
      term.scope = part->scope;
    else if (!term.scope || !part->scope || !term.scope->merge(*part->scope))
      term.scope = std::nullopt;
    term.parts.push_back(std::move(*part));
  }
  return term;
}

std::optional<Term> TermReader::readPredicate(Operation *op) {
  StringRef name = op->getName().stripDialect();
  const PredicateForm *form = isa<AttnDialect>(op->getDialect()) ? findForm(predicateForms, name) : nullptr;
  Scope scope;
  if (!form || !readPlaces(form->places, op->getOperands().take_front(form->places.size()), scope))
    return std::nullopt;
  if (form->captures && !isOutside(op->getOperands().back()))
    return std::nullopt;
  if (form->readsNumKeys && scope.size != 0)
    return std::nullopt;
  return Term(op, form, scope);
}

std::optional<Term> TermReader::readSet(ContainsOp op) {
  if (!isOutside(op.getSet()))
    return std::nullopt;
  for (const PredicateForm &form : setForms) {
    Scope scope;
    std::optional<StringRef> places = leadingPlaces(form, op.getSet().getType().getRank());
    if (places && readPlaces(*places, op.getIndices(), scope) &&
        readPlaces(form.places.take_back(1), op.getValue(), scope))
      return Term(op, &form, scope);
  }
  return std::nullopt;
}

bool TermReader::readPlaces(StringRef places, ValueRange operands, Scope &scope) {
  if (places.size() != operands.size())
    return false;
  for (auto [letter, operand] : llvm::zip(places, operands)) {
    bool matches = letter == 'i' || letter == 'j' ? readPosition(letter - 'i', operand, scope)
                                                  : operand == block.getArgument(letter == 'h');
    if (!matches)
      return false;
  }
  return true;
}

/// Position i (0) or j (1), or its block number, in one scope with what was read before.
bool TermReader::readPosition(int which, Value value, Scope &scope) {
  Value position = block.getArgument(2 + which);
  Scope seen;
  seen.numbers[which] = value;
  if (value != position) {
    auto division = value.getDefiningOp<arith::FloorDivSIOp>();
    APInt size;
    if (!division || division.getLhs() != position || !matchPattern(division.getRhs(), m_ConstantInt(&size)))
      return false;
    Operation *constant = division.getRhs().getDefiningOp();
    if (isOutside(value) || isOutside(division.getRhs()) || !take(division) || !take(constant))
      return false;
    seen.size = size.getSExtValue();
  }
  bool isFirst = !scope.numbers[0] && !scope.numbers[1];
  if (isFirst)
    scope.size = seen.size;
  return scope.merge(seen);
}

namespace {
/// Writes terms; precedence is not, and, or.
class TermPrinter {
public:
  explicit TermPrinter(OpAsmPrinter &p) : p(p) {}

  void print(const Term &term) {
    bool opens = !insideBlocks && term.scope && term.scope->size != 0;
    if (opens)
      p << "blocked(" << term.scope->size << ", ";
    insideBlocks |= opens;
    if (term.form)
      printPredicate(term);
    else if (isa<arith::XOrIOp>(term.op))
      printNot(term.parts.front());
    else
      printChain(term);
    insideBlocks &= !opens;
    if (opens)
      p << ')';
  }

  /// What is counted: an `or` among the parts stands in parentheses.
  void printMembers(ArrayRef<Term> members) {
    for (auto [number, member] : llvm::enumerate(members)) {
      p << (number ? " or " : "");
      printPart(member, members.size() > 1 && !isClosed(member) && isa<arith::OrIOp>(member.op));
    }
  }

private:
  /// blocked(...) and predicates bind by themselves.
  bool isClosed(const Term &term) {
    return term.form || isa<arith::XOrIOp>(term.op) || (!insideBlocks && term.scope && term.scope->size != 0);
  }

  void printPart(const Term &part, bool parentheses) {
    if (parentheses)
      p << '(';
    print(part);
    if (parentheses)
      p << ')';
  }

  void printNot(const Term &part) {
    p << "not ";
    printPart(part, !isClosed(part));
  }

  void printChain(const Term &term) {
    bool isAnd = isa<arith::AndIOp>(term.op);
    const Term &left = term.parts[0], &right = term.parts[1];
    printPart(left, isAnd && !isClosed(left) && isa<arith::OrIOp>(left.op));
    p << (isAnd ? " and " : " or ");
    printPart(right, !isClosed(right) && (isAnd || isa<arith::OrIOp>(right.op)));
  }

  void printPredicate(const Term &term) {
    p << term.form->name;
    bool any = false;
    auto separate = [&] {
      p << (any ? ", " : "(");
      any = true;
    };
    for (const Parameter &parameter : parametersOf(*term.form)) {
      Attribute value = term.op->getAttr(parameter.name);
      if (!value)
        continue;
      separate();
      p << parameter.name << " = ";
      if (auto list = dyn_cast<DenseI64ArrayAttr>(value))
        p << '[' << list.asArrayRef() << ']';
      else
        p << cast<IntegerAttr>(value).getInt();
    }
    if (term.form->captures) {
      separate();
      Value captured = isa<ContainsOp>(term.op) ? term.op->getOperand(0) : term.op->getOperands().back();
      p << captured << " : " << captured.getType();
    }
    if (any)
      p << ')';
  }

  OpAsmPrinter &p;
  bool insideBlocks = false;
};
} // namespace

bool attn::printMaskSugar(OpAsmPrinter &printer, Region &region) {
  std::vector<Term> terms = TermReader(region.front()).read();
  if (terms.empty())
    return false;
  printer << (terms.size() > 1 ? " counted(" : "(");
  TermPrinter(printer).printMembers(terms);
  printer << ')';
  return true;
}
