//===- MaskAnalysis.cpp - Linear forms and conditions of a mask -----------===//

#include "MaskAnalysis.h"
#include "OpReader.h"
#include "mlir/IR/Block.h"

using namespace mlir;
using namespace attn;

MaskAnalysis::MaskAnalysis(const ExpandedMask &mask) {
  Block &block = mask.getBlock();
  query = block.getArgument(2);
  key = block.getArgument(3);
  for (Value argument : block.getArguments().take_front(4)) {
    // Extents are below 2^31; only query positions can be negative, where queries are aligned with the last key.
    Bounds range = {argument == query ? mask.getLeastQuery() : 0, (int64_t(1) << 31) - 1};
    forms[argument] = LinearForm::ofAtom(atoms.makeLeaf(argument, range));
  }
  OpReader reader(*this);
  for (Operation &op : block)
    reader.read(&op);
  root = reader.getTruth(mask.getResult());
}

const LinearForm *MaskAnalysis::findForm(Value value) const {
  auto it = forms.find(value);
  return it == forms.end() ? nullptr : &it->second;
}

std::optional<unsigned> MaskAnalysis::findCondition(Value value) const {
  auto it = truths.find(value);
  return it == truths.end() ? std::nullopt : std::optional<unsigned>(it->second);
}

/// `(i - j) mod size == 0` or `i floordiv size == j floordiv size`.
std::optional<Reindexing> MaskAnalysis::matchReindexing(unsigned index) const {
  const Condition &condition = conditions[index];
  if (condition.kind != Condition::Kind::Set)
    return std::nullopt;
  IntSet zero = IntSet::interval(0, 0);
  std::optional<LinearForm> difference = linearSum(*findForm(query), 1, *findForm(key), -1);
  if (std::optional<unsigned> atom = condition.form.getAtom()) {
    const Atom &remainder = atoms[*atom];
    bool same = remainder.kind == Atom::Kind::Mod &&
                condition.set.intersect(IntSet::interval(0, remainder.divisor - 1)) == zero;
    std::optional<LinearForm> opposite = linearSum({}, 1, *difference, -1);
    if (same && (remainder.argument == *difference || remainder.argument == *opposite))
      return Reindexing{ReindexKind::Residue, remainder.divisor};
    return std::nullopt;
  }
  const auto &terms = condition.form.terms;
  if (terms.size() != 2 || terms[0].second != 1 || terms[1].second != -1 || !(condition.set == zero))
    return std::nullopt;
  const Atom &a = atoms[terms[0].first], &b = atoms[terms[1].first];
  bool quotients = a.kind == Atom::Kind::FloorDiv && b.kind == a.kind && a.divisor == b.divisor;
  const LinearForm &i = *findForm(query), &j = *findForm(key);
  if (quotients && ((a.argument == i && b.argument == j) || (a.argument == j && b.argument == i)))
    return Reindexing{ReindexKind::Block, a.divisor};
  return std::nullopt;
}

SmallVector<Reindexing> MaskAnalysis::findReindexings() const {
  SmallVector<Reindexing> found;
  const Condition &whole = conditions[root];
  SmallVector<unsigned> conjuncts = {root};
  if (whole.kind == Condition::Kind::And)
    conjuncts.assign(whole.children.begin(), whole.children.end());
  for (unsigned conjunct : conjuncts)
    if (std::optional<Reindexing> reindexing = matchReindexing(conjunct))
      found.push_back(*reindexing);
  return found;
}

bool MaskAnalysis::holdsInClasses(Value conjunct, const Reindexing &reindexing) const {
  std::optional<unsigned> condition = findCondition(conjunct);
  if (!condition)
    return false;
  if (std::optional<bool> truth = conditions.getConstant(*condition))
    return *truth;
  std::optional<Reindexing> asked = matchReindexing(*condition);
  if (!asked || asked->kind != reindexing.kind)
    return false;
  // A stride holds in classes of its multiples, a block in classes of its parts.
  return asked->kind == ReindexKind::Residue ? reindexing.size % asked->size == 0 : asked->size % reindexing.size == 0;
}
