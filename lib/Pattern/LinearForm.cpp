//===- LinearForm.cpp - Integer values as sums of atoms -------------------===//

#include "LinearForm.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn;

bool attn::isReadable(Type type) { return type.isIndex() || (type.isInteger() && type.getIntOrFloatBitWidth() <= 64); }

Bounds attn::getTypeRange(Type type) {
  unsigned width = type.isIndex() ? 64 : cast<IntegerType>(type).getWidth();
  if (width == 1)
    return {0, 1};
  int64_t greatest = static_cast<int64_t>(~uint64_t(0) >> (65 - width));
  return {-greatest - 1, greatest};
}

std::optional<unsigned> LinearForm::getAtom() const {
  if (constant == 0 && terms.size() == 1 && terms[0].second == 1)
    return terms[0].first;
  return std::nullopt;
}

static bool scaledSum(int64_t a, int64_t fa, int64_t b, int64_t fb, int64_t &result) {
  int64_t x, y;
  return !__builtin_mul_overflow(a, fa, &x) && !__builtin_mul_overflow(b, fb, &y) &&
         !__builtin_add_overflow(x, y, &result);
}

std::optional<LinearForm> attn::linearSum(const LinearForm &a, int64_t fa, const LinearForm &b, int64_t fb) {
  LinearForm sum;
  if (!scaledSum(a.constant, fa, b.constant, fb, sum.constant))
    return std::nullopt;
  auto left = a.terms.begin(), right = b.terms.begin();
  while (left != a.terms.end() || right != b.terms.end()) {
    bool useLeft = left != a.terms.end() && (right == b.terms.end() || left->first <= right->first);
    bool useRight = right != b.terms.end() && (left == a.terms.end() || right->first <= left->first);
    unsigned atom = useLeft ? left->first : right->first;
    int64_t coefficient;
    if (!scaledSum(useLeft ? left->second : 0, fa, useRight ? right->second : 0, fb, coefficient))
      return std::nullopt;
    if (coefficient != 0)
      sum.terms.push_back({atom, coefficient});
    left += useLeft;
    right += useRight;
  }
  return sum;
}

unsigned AtomTable::makeLeaf(Value value, Bounds range) {
  atoms.push_back({Atom::Kind::Leaf, value, {}, 1, range});
  return atoms.size() - 1;
}

LinearForm AtomTable::intern(Atom::Kind kind, LinearForm argument, int64_t divisor, Bounds range) {
  if (range.lo == range.hi)
    return LinearForm::ofConstant(range.lo);
  for (auto [index, atom] : llvm::enumerate(atoms))
    if (atom.kind == kind && atom.divisor == divisor && atom.argument == argument)
      return LinearForm::ofAtom(index);
  atoms.push_back({kind, {}, std::move(argument), divisor, range});
  return LinearForm::ofAtom(atoms.size() - 1);
}

/// Splits `form` into divisor * whole + rest with the constant of the rest in [0, divisor).
static std::pair<LinearForm, LinearForm> split(const LinearForm &form, int64_t divisor) {
  LinearForm whole, rest;
  for (auto [atom, coefficient] : form.terms) {
    if (coefficient % divisor == 0)
      whole.terms.push_back({atom, coefficient / divisor});
    else
      rest.terms.push_back({atom, coefficient});
  }
  whole.constant = attn::floorDiv(form.constant, divisor);
  rest.constant = attn::floorMod(form.constant, divisor);
  return {whole, rest};
}

LinearForm AtomTable::floorDiv(const LinearForm &form, int64_t divisor) {
  if (divisor == 1)
    return form;
  auto [whole, rest] = split(form, divisor);
  std::optional<Bounds> range = getRange(rest);
  if (!range) { // taking the multiples out must not make the numbers larger than they were
    whole = LinearForm();
    rest = form;
    range = getRange(form);
  }
  // (x floordiv m) floordiv n = x floordiv (m * n)
  int64_t product;
  if (std::optional<unsigned> atom = rest.getAtom(); atom && atoms[*atom].kind == Atom::Kind::FloorDiv &&
                                                     !__builtin_mul_overflow(atoms[*atom].divisor, divisor, &product)) {
    LinearForm inner = atoms[*atom].argument;
    return *linearSum(whole, 1, floorDiv(inner, product), 1);
  }
  Bounds quotient = {attn::floorDiv(range->lo, divisor), attn::floorDiv(range->hi, divisor)};
  return *linearSum(whole, 1, intern(Atom::Kind::FloorDiv, rest, divisor, quotient), 1);
}

/// The remainders of a range of numbers.
static Bounds remainders(Bounds range, int64_t divisor) {
  int64_t block = attn::floorDiv(range.lo, divisor);
  if (block != attn::floorDiv(range.hi, divisor))
    return {0, divisor - 1};
  return {attn::floorMod(range.lo, divisor), attn::floorMod(range.hi, divisor)};
}

LinearForm AtomTable::mod(const LinearForm &form, int64_t divisor) {
  LinearForm rest = split(form, divisor).second;
  std::optional<Bounds> range = getRange(rest);
  if (!range) {
    rest = form;
    range = getRange(form);
  }
  if (range->lo >= 0 && range->hi < divisor)
    return rest;
  // (x mod (k * m)) mod m = x mod m
  if (std::optional<unsigned> atom = rest.getAtom();
      atom && atoms[*atom].kind == Atom::Kind::Mod && atoms[*atom].divisor % divisor == 0) {
    LinearForm inner = atoms[*atom].argument;
    return mod(inner, divisor);
  }
  return intern(Atom::Kind::Mod, rest, divisor, remainders(*range, divisor));
}

LinearForm AtomTable::rem(const LinearForm &form, int64_t divisor) {
  std::optional<Bounds> range = getRange(form);
  if (range->lo >= 0)
    return mod(form, divisor);
  if (divisor == 1)
    return LinearForm::ofConstant(0);
  Bounds bounds = {std::max(range->lo, 1 - divisor), std::clamp<int64_t>(range->hi, 0, divisor - 1)};
  return intern(Atom::Kind::Rem, form, divisor, bounds);
}

std::optional<Bounds> AtomTable::getRange(const LinearForm &form) const {
  if (std::optional<unsigned> atom = form.getAtom())
    return atoms[*atom].range;
  const __int128 limit = int64_t(1) << 62;
  __int128 lo = form.constant, hi = form.constant, size = form.constant < 0 ? -lo : lo;
  for (auto [atom, coefficient] : form.terms) {
    const Bounds &range = atoms[atom].range;
    __int128 a = static_cast<__int128>(coefficient) * range.lo, b = static_cast<__int128>(coefficient) * range.hi;
    lo += std::min(a, b);
    hi += std::max(a, b);
    size += std::max(a < 0 ? -a : a, b < 0 ? -b : b);
    if (size > limit)
      return std::nullopt;
  }
  return Bounds{static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

LinearForm AtomTable::foldRemainders(LinearForm form) {
  for (unsigned k = 0; k < form.terms.size(); ++k) {
    auto [index, coefficient] = form.terms[k];
    const Atom &atom = atoms[index];
    if (atom.kind != Atom::Kind::FloorDiv || coefficient % atom.divisor != 0)
      continue;
    int64_t factor = -(coefficient / atom.divisor);
    bool whole = llvm::all_of(atom.argument.terms, [&, &form = form](const LinearForm::Term &term) {
      auto it = llvm::find_if(form.terms, [&](const LinearForm::Term &other) { return other.first == term.first; });
      return it != form.terms.end() && it->second == term.second * factor;
    });
    if (!whole)
      continue;
    LinearForm quotient = LinearForm::ofAtom(index);
    std::optional<LinearForm> rest = linearSum(atom.argument, 1, quotient, -atom.divisor);
    int64_t divisor = atom.divisor;
    LinearForm remainder = mod(LinearForm(atom.argument), divisor);
    if (rest)
      rest = linearSum(form, 1, *rest, -factor);
    if (rest)
      rest = linearSum(*rest, 1, remainder, factor);
    if (rest)
      return foldRemainders(std::move(*rest));
  }
  return form;
}
