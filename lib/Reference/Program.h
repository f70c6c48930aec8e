//===- Program.h - A region as a list of scalar instructions ----------------===//
//
// Mask and score regions are run once per (query, key) pair, so a region is translated once into instructions on
// numbered slots. Integers and index live as int64_t (sign-extended from their width; i1 is 0 or 1), floats as double.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_REFERENCE_PROGRAM_H
#define ATTN_LIB_REFERENCE_PROGRAM_H

#include "attn/Reference/HostTensor.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace attn::reference {

union Slot {
  int64_t i;
  double f;
};

/// Values known outside a region.
struct Environment {
  llvm::DenseMap<mlir::Value, Slot> scalars;
  llvm::DenseMap<mlir::Value, const HostTensor *> tensors;
};

/// Extents of the attention op that a region belongs to.
struct Extents {
  int64_t batch = 0, queryHeads = 0, keyHeads = 0, queries = 0, keys = 0, headDim = 0, valueDim = 0;
};

/// Exact: every float operation in double, the meaning on paper. Typed: rounded to the type it has in the IR, as a
/// straight implementation would. Masks are always Typed, since a rounding may decide a comparison.
enum class Rounding { Exact, Typed };

struct Instruction;
struct Call;
using InstructionFunction = Slot (*)(const Call &);

struct Instruction {
  InstructionFunction run;
  llvm::SmallVector<unsigned, 4> operands; // slots
  llvm::SmallVector<unsigned, 4> widths;   // of integer operands, in bits; 0 for floats
  unsigned result, width;                  // slot and integer width of the result
  mlir::Type roundTo;                      // float type of a Typed result, else null
  llvm::SmallVector<int64_t, 4> params;    // attributes, whatever the instruction makes of them
  const HostTensor *tensor = nullptr;      // captured tensor
  Extents extents;
};

/// What an instruction sees when it runs.
struct Call {
  const Instruction &op;
  const Slot *slots;

  double f(unsigned k) const { return slots[op.operands[k]].f; }
  /// The operand as a signed or unsigned number; a true i1 is -1 or 1.
  int64_t s(unsigned k) const {
    int64_t value = slots[op.operands[k]].i;
    return op.widths[k] == 1 ? -value : value;
  }
  uint64_t u(unsigned k) const {
    uint64_t value = slots[op.operands[k]].i;
    return op.widths[k] < 64 ? value & ((uint64_t(1) << op.widths[k]) - 1) : value;
  }
  int64_t param(unsigned k) const { return op.params[k]; }

  /// An integer result, wrapped to the width of its type.
  Slot integer(uint64_t value) const {
    if (op.width == 1)
      return Slot{int64_t(value & 1)};
    unsigned shift = 64 - op.width;
    return Slot{int64_t(value << shift) >> shift};
  }
  Slot boolean(bool value) const { return Slot{value}; }
  Slot number(double value) const {
    Slot slot;
    slot.f = value;
    return slot;
  }
};

/// Division and remainder rounding towards negative infinity. A division without meaning (by zero, or overflowing)
/// gives 0, so that a condition beside it may still exclude it.
int64_t floorDivide(int64_t a, int64_t b);
int64_t floorModulo(int64_t a, int64_t b);

/// The element at `indices`, each moved to the nearest one inside the tensor; 0 in an empty tensor.
Slot readNearest(const HostTensor &tensor, llvm::ArrayRef<int64_t> indices);

/// Translates one op: fills `run` and `params` (and `tensor`) of `instruction`; failure where the op is not its
/// business.
mlir::LogicalResult translateScalarOp(mlir::Operation *op, Instruction &instruction);
mlir::LogicalResult translatePredicate(mlir::Operation *op, Instruction &instruction);

/// The value of a scalar constant op (arith.constant, index.constant); nothing for another op.
std::optional<Slot> getConstant(mlir::Operation *op);

/// A translated block: arguments in, operands of its terminator out.
class Program {
public:
  /// Of operand `result` of the terminator. Emits an error at the first op that the reference cannot interpret.
  static mlir::FailureOr<Program> compile(mlir::Block &block, const Environment &outside, const Extents &extents,
                                          Rounding rounding, llvm::ArrayRef<unsigned> varying, unsigned result = 0);
  /// One op outside of any region, all operands known.
  static mlir::FailureOr<Slot> evaluate(mlir::Operation *op, const Environment &environment);

  void setIndex(unsigned argument, int64_t value) { slots[argument].i = value; }
  void setFloat(unsigned argument, double value) { slots[argument].f = value; }

  /// Runs what does not depend on the varying arguments; call it after setting the others.
  void runOnce() { run(once); }
  /// Runs the rest and answers the operand of the terminator.
  Slot runVarying() {
    run(perPair);
    return slots[yielded];
  }

private:
  friend class Compiler;
  void run(const std::vector<Instruction> &instructions);

  std::vector<Instruction> once, perPair;
  std::vector<Slot> slots;
  unsigned yielded = 0;
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_PROGRAM_H
