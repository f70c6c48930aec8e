//===- MaskProgram.h - A mask ready to be read -----------------*- C++ -*-===//
//
// The interval reading of a whole mask as a straight list of steps, made once and run for every rectangle.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_PATTERN_MASKPROGRAM_H
#define ATTN_LIB_PATTERN_MASKPROGRAM_H

#include "MaskAnalysis.h"
#include "ReadingBuilder.h"
#include <array>

namespace attn {

class MaskProgram {
public:
  /// With a reindexing, for pairs of one class: conjuncts that hold for all of them are left out.
  explicit MaskProgram(AttentionOp op, const Reindexing &reindexing = {});

  const ExpandedMask &getMask() const { return mask; }
  /// The captured tensor, an index into ExpandedMask::getTensors, that an op of the mask reads.
  static unsigned getTensor(mlir::Operation *op);

  /// Whether all, exactly once, and whether any pairs attend of the box of b, h, i and j.
  Interval read(ReadingBuilder &builder, const std::array<Interval, 4> &position) const;

private:
  struct Step {
    enum class Kind { Op, PointOnly, Sum, FloorDiv, Mod, Rem, Set, Not, And, Or, Xor, Select, Truth };
    explicit Step(Kind kind) : kind(kind) {}

    Kind kind;
    llvm::SmallVector<unsigned, 3> operands; // slots: the four positions, then one per step
    llvm::SmallVector<int64_t, 3> factors;   // Sum: of the operands
    int64_t number = 0;                      // Sum: the constant; FloorDiv, Mod, Rem: the divisor; Truth: 0 or 1
    mlir::Operation *op = nullptr;
    MaskOpInterface model;
    const IntSet *set = nullptr;
    Bounds bounds = {0, 1}; // Op, PointOnly: what is known anyway
  };

  unsigned add(Step step);
  unsigned addForm(const LinearForm &form);
  unsigned addAtom(unsigned atom);
  unsigned addCondition(unsigned condition);
  unsigned addLeaf(mlir::Value value, Bounds bounds);
  unsigned addValue(mlir::Value value);

  Interval readStep(const Step &step, ReadingBuilder &b, llvm::ArrayRef<Interval> slots) const;
  Interval readOp(const Step &step, ReadingBuilder &b, llvm::ArrayRef<Interval> slots) const;
  Interval readSum(const Step &step, ReadingBuilder &b, llvm::ArrayRef<Interval> slots) const;

  ExpandedMask mask;
  MaskAnalysis analysis;
  std::vector<Step> steps;
  unsigned result;
  std::optional<unsigned> once; // of a mask that counts
  llvm::DenseMap<unsigned, unsigned> atomSlots, conditionSlots;
  llvm::DenseMap<mlir::Operation *, unsigned> leafSlots;
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_MASKPROGRAM_H
