//===- EmitBuilder.h - An interval reading as IR ---------------*- C++ -*-===//

#ifndef ATTN_LIB_PATTERN_EMITBUILDER_H
#define ATTN_LIB_PATTERN_EMITBUILDER_H

#include "MaskProgram.h"
#include "attn/Pattern/Captures.h"
#include "mlir/IR/Builders.h"
#include <map>

namespace attn {

/// Arithmetic on constants alone.
class ConstantBuilder final : public ValueBuilder {
public:
  Num numQueries() final { llvm_unreachable("extents are not constants"); }
  Num numKeys() final { llvm_unreachable("extents are not constants"); }
  mlir::FailureOr<Interval> range(mlir::Operation *, mlir::ArrayRef<Interval>) final { return mlir::failure(); }
};

/// Numbers are i64 values; those without a value are constants and cost nothing until they meet one that is not.
class EmitBuilder : public ReadingBuilder {
public:
  /// `entry` is the empty entry block of an AttnClassify, at whose end `builder` stands.
  EmitBuilder(mlir::OpBuilder &builder, mlir::Block &entry, const MaskProgram &program, const Captures &captures);

  Num constant(int64_t value) final { return {value, {}}; }
  Num add(Num a, Num b) final;
  Num sub(Num a, Num b) final;
  Num mul(Num a, Num b) final;
  Num floorDiv(Num a, Num b) final;
  Num mod(Num a, Num b) final;
  Num min(Num a, Num b) final;
  Num max(Num a, Num b) final;
  Num cmp(mlir::arith::CmpIPredicate predicate, Num a, Num b) final;
  Num select(Num condition, Num a, Num b) final;
  Num numQueries() final { return fromValue(entry.getArgument(2)); }
  Num numKeys() final { return fromValue(entry.getArgument(3)); }
  mlir::FailureOr<Interval> range(mlir::Operation *op, mlir::ArrayRef<Interval> indices) final;
  Interval readPoint(mlir::Operation *op, mlir::ArrayRef<Interval> operands, Bounds whole) final;

  Num fromValue(mlir::Value value) { return {0, value}; }
  mlir::Value toValue(Num number);
  /// An i1 for a number that is 0 or 1.
  mlir::Value toTruth(Num number);

private:
  bool areConstant(Num a, Num b) const { return !a.value && !b.value; }
  Num fromTruth(mlir::Value truth);
  mlir::Value allocate(int64_t numbers);
  mlir::Value elementPointer(mlir::Value base, int64_t index);
  Interval readExtent(mlir::Operation *op, int64_t dim);
  unsigned getCapture(mlir::Operation *op) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Block &entry;
  const MaskProgram &program;
  const Captures &captures;
  ConstantBuilder folder;
  mlir::Value lower, upper, found;                 // what @attn_range is called with
  std::map<int64_t, mlir::Value> constants;        // any number may be a key
  llvm::DenseMap<mlir::Value, mlir::Value> truths; // the i1 behind an extended one
};

} // namespace attn

#endif // ATTN_LIB_PATTERN_EMITBUILDER_H
