//===- Condition.h - Truth values of a mask --------------------*- C++ -*-===//
//
// Truth values as sets of one linear form, and combinations of those. Conditions on one form are combined exactly:
// `i - j >= 0` and `i - j <= 255` is one set, and so is their disjunction or negation.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_CONDITION_H
#define ATTN_LIB_PATTERN_CONDITION_H

#include "LinearForm.h"

namespace attn {

struct Condition {
  enum class Kind {
    Constant, // `truth`
    Set,      // `form` is in `set`; no constant term, coefficients without common divisor, the first one positive
    Leaf,     // `leaf` is true
    Not,
    And,
    Or,
    Xor,
    Select // children: condition, then, else
  };
  explicit Condition(Kind kind) : kind(kind) {}

  Kind kind;
  bool truth = false;
  LinearForm form;
  IntSet set;
  mlir::Value leaf;
  llvm::SmallVector<unsigned, 3> children;
};

/// Makes conditions in their simplest form; they are numbered in the order they are made.
class ConditionTable {
public:
  explicit ConditionTable(AtomTable &atoms) : atoms(atoms) {}

  const Condition &operator[](unsigned condition) const { return conditions[condition]; }

  unsigned makeConstant(bool truth);
  unsigned makeLeaf(mlir::Value leaf);
  /// `form` must have a range.
  unsigned makeSet(LinearForm form, IntSet set);
  unsigned negate(unsigned condition);
  unsigned conjunction(llvm::ArrayRef<unsigned> children) { return combine(Condition::Kind::And, children); }
  unsigned disjunction(llvm::ArrayRef<unsigned> children) { return combine(Condition::Kind::Or, children); }
  unsigned exclusive(unsigned a, unsigned b);
  unsigned select(unsigned condition, unsigned a, unsigned b);

  std::optional<bool> getConstant(unsigned condition) const;

private:
  unsigned add(Condition condition);
  unsigned combine(Condition::Kind kind, llvm::ArrayRef<unsigned> children);
  bool merge(Condition::Kind kind, unsigned child, llvm::SmallVectorImpl<unsigned> &merged);
  bool haveOneForm(llvm::ArrayRef<unsigned> children) const;
  std::optional<unsigned> rewriteAtom(const LinearForm &form, const IntSet &set);

  AtomTable &atoms;
  std::vector<Condition> conditions;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_CONDITION_H
