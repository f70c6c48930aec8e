//===- StepBuilder.h - Terse building of the code of a step -----*- C++ -*-===//
//
// A step is scalar and vector code over memrefs, one function for both targets: on a CPU a unit has rows and lanes to
// loop over, on a GPU a thread has one row and one column. The code of a step reads like its equation; numbers are f32
// whatever the tensors hold, integers index.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_TILING_STEPS_STEPBUILDER_H
#define ATTN_LIB_TILING_STEPS_STEPBUILDER_H

#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"

namespace attn {

class StepBuilder {
public:
  using Value = mlir::Value;
  using ValueRange = mlir::ValueRange;
  using Values = llvm::SmallVector<Value, 4>;
  template <typename... Args>
  using Body = llvm::function_ref<void(Args...)>;

  /// Starts a private function `name` for `op`. `lanes`: floats of a vector; 1 where a unit is a GPU's thread.
  StepBuilder(mlir::OpBuilder &b, CompiledOpInterface op, llvm::StringRef name, int64_t lanes);
  mlir::func::FuncOp finish();

  mlir::OpBuilder &b;
  mlir::Location loc;
  const int64_t lanes;
  bool onDevice() const { return lanes == 1; }

  //===--- units ------------------------------------------------------------===//

  /// A unit has `size` consecutive indices of a dimension on a CPU, 0 standing for all; on a GPU one.
  struct Shared {
    Value tensor; // operand or result of the op
    unsigned dim;
    int64_t size = 1;
  };
  /// What a unit has of a dimension.
  struct Range {
    Value from, to;
    bool single; // to = from + 1
  };
  /// Shares the product of some dimensions out to units, the last one varying fastest; once in a step.
  llvm::SmallVector<Range> share(llvm::ArrayRef<Shared> dims);
  llvm::ArrayRef<int64_t> getUnits() const { return units; }

  //===--- teams ------------------------------------------------------------===//
  // On a GPU a unit may be a warp's, a team that shares loops out. On a CPU a team is one thread.

  /// The units of this step are worked on by teams; before anything else of it.
  void formTeams();
  /// The next index of a range for each member, one after the other.
  void forTeam(Range range, Body<Value> body);
  /// The same with what each member carries.
  Values foldTeam(Range range, ValueRange init, llvm::function_ref<Values(Value, ValueRange)> body);
  /// Of each member a stretch of a range.
  Range stretch(Range range);
  /// What members have, combined.
  Value teamSum(Value v) {
    return combine(v, [&](Value x, Value y) { return add(x, y); });
  }
  Value teamMax(Value v) {
    return combine(v, [&](Value x, Value y) { return max(x, y); });
  }
  /// The sum of what members before this one have.
  Value sumBefore(Value index);
  /// What a member wrote, all read behind this.
  void syncTeam();

  void forEach(Range range, Body<Value> body);
  /// body(at, width): whole vectors of `lanes`, then one by one.
  void forLanes(Range range, Body<Value, int64_t> body);
  /// The sum of number(at, width) over a range that a unit has whole.
  Value sumLanes(Range range, llvm::function_ref<Value(Value, int64_t)> number);
  /// The sum of the numbers of a vector.
  Value sumOf(Value vector);
  /// Runs in one of the units that share a dimension.
  void once(Range range, Body<> body);

  //===--- tensors ----------------------------------------------------------===//

  Value dim(Value tensor, unsigned d);
  Range whole(Value tensor, unsigned d) { return {index(0), dim(tensor, d), false}; }
  /// `width` numbers side by side: an f32 or a vector of them; of integers one index.
  Value load(Value tensor, ValueRange at, int64_t width = 1);
  void store(Value v, Value tensor, ValueRange at);
  /// The number will be read soon. Not on a GPU.
  void prefetch(Value tensor, ValueRange at);
  /// Numbers that a unit keeps for itself, rows of `width`; as a tensor to `load` and `store`. Not on a GPU.
  Value allocate(Value rows, int64_t width);

  //===--- values -----------------------------------------------------------===//

  Value index(int64_t v) { return mlir::arith::ConstantIndexOp::create(b, loc, v); }
  Value f32(float v, int64_t width = 1);
  Value splat(Value v, int64_t width);
  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return b.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }

  // Of integers (index) or of numbers (f32, vectors of it), whichever the operands are.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value min(Value x, Value y);
  Value max(Value x, Value y); // of numbers: NaN if any is
  // Of numbers: x if it is NaN, in one instruction where the bound is none.
  Value atMost(Value x, Value bound) { return select(less(bound, x), bound, x); }
  Value atLeast(Value x, Value bound) { return select(less(x, bound), bound, x); }
  Value less(Value x, Value y);
  Value equal(Value x, Value y);
  Value add(Value x, int64_t y) { return y == 0 ? x : add(x, index(y)); }
  Value mul(Value x, int64_t y) { return mul(x, index(y)); }
  Value divide(Value x, Value y); // integers: both at least 0
  Value modulo(Value x, Value y) { return make<mlir::arith::RemUIOp>(x, y); }
  Value both(Value x, Value y) { return make<mlir::arith::AndIOp>(x, y); }
  Value negate(Value x) { return make<mlir::arith::XOrIOp>(x, mlir::arith::ConstantIntOp::create(b, loc, 1, 1)); }
  Value select(Value c, Value x, Value y) { return make<mlir::arith::SelectOp>(c, x, y); }
  Value fma(Value x, Value y, Value z);
  Value exp(Value x);
  Value log(Value x);
  Value sqrt(Value x);
  Value abs(Value x);
  Value sin(Value x);
  Value cos(Value x);
  Value toF32(Value index);
  /// Is an index in [0, end)?
  Value inside(Value x, Value end) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::ult, x, end); }

  //===--- control flow -----------------------------------------------------===//

  /// carried = body(i, carried) for i in [from, to).
  Values loop(Value from, Value to, ValueRange init, llvm::function_ref<Values(Value, ValueRange)> body,
              int64_t step = 1);
  /// One number: total = body(i, total).
  Value fold(Value from, Value to, Value init, llvm::function_ref<Value(Value, Value)> body);
  /// One of two values; only what it takes runs.
  Value choose(Value condition, llvm::function_ref<Value()> then, llvm::function_ref<Value()> otherwise);
  /// The sum over d in [0, extent) of the products of two numbers, vectors of them first; the lanes of these in order,
  /// or in the order that is the fastest.
  Value dot(Value extent, llvm::function_ref<std::pair<Value, Value>(Value, int64_t)> factors, bool inOrder = true);
  void ifThen(Value condition, Body<> then, Body<> otherwise = nullptr);
  /// Some values; only what makes them runs.
  Values choose(Value condition, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise);

private:
  Value memref(Value tensor);
  Value combine(Value v, llvm::function_ref<Value(Value, Value)> how);
  Value shuffle(Value v, mlir::gpu::ShuffleMode mode, Value by);

  CompiledOpInterface op;
  mlir::func::FuncOp function;
  llvm::DenseMap<Value, Value> memrefs;
  llvm::SmallVector<int64_t> units;
  Value unit;
  Value member; // of a team; null: there are none
};

} // namespace attn

#endif // ATTN_LIB_TILING_STEPS_STEPBUILDER_H
