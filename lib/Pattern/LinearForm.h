//===- LinearForm.h - Integer values as sums of atoms ----------*- C++ -*-===//
//
// Every integer of a mask region is a sum  c1 * a1 + c2 * a2 + ... + constant  of atoms: block arguments, quotients and
// remainders by constants, and results of ops that are not linear. Equal sums have equal forms, which is what lets
// conditions on them be combined exactly.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_LINEARFORM_H
#define ATTN_LIB_PATTERN_LINEARFORM_H

#include "IntSet.h"
#include "mlir/IR/Value.h"
#include <optional>
#include <vector>

namespace attn {

/// The values a number can have whatever the rectangle and the data are.
struct Bounds {
  int64_t lo, hi;
};

/// Whether readings know numbers of this type: index, i1, and integers that fit in 64 bits.
bool isReadable(mlir::Type type);

/// The range of the values of an integer or index type; i1 is 0 or 1.
Bounds getTypeRange(mlir::Type type);

struct LinearForm {
  using Term = std::pair<unsigned, int64_t>; // atom, coefficient
  llvm::SmallVector<Term, 2> terms;          // by atom, coefficients not zero
  int64_t constant = 0;

  static LinearForm ofConstant(int64_t value) { return {{}, value}; }
  static LinearForm ofAtom(unsigned atom) { return {{{atom, 1}}, 0}; }

  bool isConstant() const { return terms.empty(); }
  /// The atom that the form consists of.
  std::optional<unsigned> getAtom() const;
  bool operator==(const LinearForm &other) const { return constant == other.constant && terms == other.terms; }
  bool operator!=(const LinearForm &other) const { return !(*this == other); }
};

/// fa * a + fb * b, where all coefficients fit.
std::optional<LinearForm> linearSum(const LinearForm &a, int64_t fa, const LinearForm &b, int64_t fb);

struct Atom {
  enum class Kind {
    Leaf,     // a block argument or the result of an op
    FloorDiv, // argument floordiv divisor
    Mod,      // argument mod divisor, never negative
    Rem       // remainder with the sign of the argument
  };
  Kind kind;
  mlir::Value leaf;
  LinearForm argument;
  int64_t divisor; // > 0
  Bounds range;
};

/// The atoms of a mask; equal quotients and remainders are one atom.
class AtomTable {
public:
  const Atom &operator[](unsigned atom) const { return atoms[atom]; }

  unsigned size() const { return atoms.size(); }

  unsigned makeLeaf(mlir::Value value, Bounds range);
  LinearForm floorDiv(const LinearForm &form, int64_t divisor);
  LinearForm mod(const LinearForm &form, int64_t divisor);
  LinearForm rem(const LinearForm &form, int64_t divisor);

  /// The range of a form; none where computing it in 64 bits could overflow.
  std::optional<Bounds> getRange(const LinearForm &form) const;

  /// x - x floordiv m * m becomes x mod m.
  LinearForm foldRemainders(LinearForm form);

private:
  LinearForm intern(Atom::Kind kind, LinearForm argument, int64_t divisor, Bounds range);

  std::vector<Atom> atoms;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_LINEARFORM_H
