//===- Condition.cpp - Truth values of a mask -----------------------------===//

#include "Condition.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace attn;
using Kind = Condition::Kind;

unsigned ConditionTable::add(Condition condition) {
  conditions.push_back(std::move(condition));
  return conditions.size() - 1;
}

unsigned ConditionTable::makeConstant(bool truth) {
  Condition condition(Kind::Constant);
  condition.truth = truth;
  return add(std::move(condition));
}

unsigned ConditionTable::makeLeaf(Value leaf) {
  Condition condition(Kind::Leaf);
  condition.leaf = leaf;
  return add(std::move(condition));
}

std::optional<bool> ConditionTable::getConstant(unsigned condition) const {
  if (conditions[condition].kind != Kind::Constant)
    return std::nullopt;
  return conditions[condition].truth;
}

/// Sets of a quotient are sets of its argument; whether a signed remainder is 0 does not depend on its sign; and equal
/// remainders say that the difference is a multiple.
std::optional<unsigned> ConditionTable::rewriteAtom(const LinearForm &form, const IntSet &set) {
  if (std::optional<unsigned> index = form.getAtom()) {
    Atom atom = atoms[*index];
    if (atom.kind == Atom::Kind::FloorDiv)
      return makeSet(atom.argument, set.preimageOfFloorDiv(atom.divisor));
    IntSet zero = IntSet::interval(0, 0);
    if (atom.kind == Atom::Kind::Rem && (set == zero || set == zero.complement()))
      return makeSet(atoms.mod(atom.argument, atom.divisor), set);
    return std::nullopt;
  }
  if (form.terms.size() != 2 || form.terms[0].second != 1 || form.terms[1].second != -1)
    return std::nullopt;
  Atom a = atoms[form.terms[0].first], b = atoms[form.terms[1].first];
  if (a.kind != Atom::Kind::Mod || b.kind != Atom::Kind::Mod || a.divisor != b.divisor)
    return std::nullopt;
  // A difference of 0 and only that; what lies outside of (-divisor, divisor) never occurs.
  IntSet possible = IntSet::interval(1 - a.divisor, a.divisor - 1), zero = IntSet::interval(0, 0);
  IntSet occurring = set.intersect(possible);
  bool same = occurring == zero, different = occurring == possible.intersect(zero.complement());
  std::optional<LinearForm> difference = linearSum(a.argument, 1, b.argument, -1);
  if ((!same && !different) || !difference || !atoms.getRange(*difference))
    return std::nullopt;
  return makeSet(atoms.mod(*difference, a.divisor), same ? zero : zero.complement());
}

unsigned ConditionTable::makeSet(LinearForm form, IntSet set) {
  form = atoms.foldRemainders(std::move(form));
  if (form.isConstant())
    return makeConstant(set.contains(form.constant));
  int64_t divisor = 0;
  for (const LinearForm::Term &term : form.terms)
    divisor = std::gcd(divisor, term.second);
  if (form.terms[0].second < 0)
    divisor = -divisor;
  set = set.preimage(divisor, form.constant);
  form.constant = 0;
  for (LinearForm::Term &term : form.terms)
    term.second /= divisor;
  if (std::optional<unsigned> rewritten = rewriteAtom(form, set))
    return *rewritten;
  std::optional<Bounds> range = atoms.getRange(form);
  IntSet possible = range ? IntSet::interval(range->lo, range->hi) : IntSet::all();
  IntSet occurring = possible.intersect(set);
  if (occurring.isEmpty() || occurring == possible)
    return makeConstant(!occurring.isEmpty());
  Condition condition(Kind::Set);
  condition.form = std::move(form);
  condition.set = std::move(set);
  return add(std::move(condition));
}

unsigned ConditionTable::negate(unsigned index) {
  Condition condition = conditions[index];
  switch (condition.kind) {
  case Kind::Constant:
    return makeConstant(!condition.truth);
  case Kind::Set:
    return makeSet(condition.form, condition.set.complement());
  case Kind::Not:
    return condition.children[0];
  case Kind::And:
  case Kind::Or:
    for (unsigned &child : condition.children)
      child = negate(child);
    return combine(condition.kind == Kind::And ? Kind::Or : Kind::And, condition.children);
  case Kind::Leaf:
  case Kind::Xor:
  case Kind::Select:
    break;
  }
  Condition negated(Kind::Not);
  negated.children = {index};
  return add(std::move(negated));
}

/// Joins `child` to the children of an And or Or; answers whether it decides the whole.
bool ConditionTable::merge(Kind kind, unsigned child, SmallVectorImpl<unsigned> &merged) {
  Condition condition = conditions[child];
  if (condition.kind == Kind::Constant)
    return condition.truth == (kind == Kind::Or);
  if (condition.kind == kind)
    return llvm::any_of(condition.children, [&](unsigned inner) { return merge(kind, inner, merged); });
  if (condition.kind != Kind::Set) {
    if (!llvm::is_contained(merged, child))
      merged.push_back(child);
    return false;
  }
  for (unsigned &other : merged) {
    const Condition &with = conditions[other];
    if (with.kind != Kind::Set || !(with.form == condition.form))
      continue;
    IntSet set = kind == Kind::And ? with.set.intersect(condition.set) : with.set.unite(condition.set);
    other = makeSet(condition.form, set);
    return getConstant(other) == (kind == Kind::Or);
  }
  merged.push_back(child);
  return false;
}

unsigned ConditionTable::combine(Kind kind, ArrayRef<unsigned> children) {
  SmallVector<unsigned, 4> merged;
  for (unsigned child : children)
    if (merge(kind, child, merged))
      return makeConstant(kind == Kind::Or);
  llvm::erase_if(merged, [&](unsigned child) { return getConstant(child).has_value(); });
  if (merged.empty())
    return makeConstant(kind == Kind::And);
  if (merged.size() == 1)
    return merged[0];
  Condition condition(kind);
  condition.children.assign(merged.begin(), merged.end());
  return add(std::move(condition));
}

bool ConditionTable::haveOneForm(ArrayRef<unsigned> children) const {
  return llvm::all_of(children, [&](unsigned child) {
    return conditions[child].kind == Kind::Set && conditions[child].form == conditions[children[0]].form;
  });
}

unsigned ConditionTable::exclusive(unsigned a, unsigned b) {
  if (std::optional<bool> truth = getConstant(a))
    return *truth ? negate(b) : b;
  if (std::optional<bool> truth = getConstant(b))
    return *truth ? negate(a) : a;
  if (a == b)
    return makeConstant(false);
  if (haveOneForm({a, b}))
    return disjunction({conjunction({a, negate(b)}), conjunction({negate(a), b})});
  Condition condition(Kind::Xor);
  condition.children = {a, b};
  return add(std::move(condition));
}

unsigned ConditionTable::select(unsigned condition, unsigned a, unsigned b) {
  if (std::optional<bool> truth = getConstant(condition))
    return *truth ? a : b;
  if (std::optional<bool> truth = getConstant(a))
    return *truth ? disjunction({condition, b}) : conjunction({negate(condition), b});
  if (std::optional<bool> truth = getConstant(b))
    return *truth ? disjunction({negate(condition), a}) : conjunction({condition, a});
  if (haveOneForm({condition, a, b}))
    return disjunction({conjunction({condition, a}), conjunction({negate(condition), b})});
  Condition choice(Kind::Select);
  choice.children = {condition, a, b};
  return add(std::move(choice));
}
