//===- Emit.h - Terse building of warp code ---------------------*- C++ -*-===//
//
// A kernel is a few hundred ops of address arithmetic, matrix instructions and softmax per thread. This wraps an
// OpBuilder so that the code that builds them reads like the kernel. Values of one thread are scalars; offsets in
// shared memory are i32 bytes, in global memory i64 bytes.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_GPU_EMIT_H
#define ATTN_LIB_CODEGEN_GPU_EMIT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace attn::cuda {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

constexpr unsigned kGlobal = 1, kShared = 3; // address spaces
constexpr int64_t kWarp = 32;

class Emit {
public:
  Emit(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return b.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }

  Value i32(int64_t v) { return mlir::arith::ConstantIntOp::create(b, loc, b.getI32Type(), v); }
  Value i64(int64_t v) { return mlir::arith::ConstantIntOp::create(b, loc, b.getI64Type(), v); }
  Value index(int64_t v) { return mlir::arith::ConstantIndexOp::create(b, loc, v); }
  Value f32(float v) { return mlir::arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(v)); }
  Value negativeInfinity() { return f32(-std::numeric_limits<float>::infinity()); }
  /// An integer or index constant of the type of `like`.
  Value number(Value like, int64_t v);

  Value add(Value x, Value y) { return make<mlir::arith::AddIOp>(x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, number(x, y)) : x; }
  Value sub(Value x, Value y) { return make<mlir::arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return make<mlir::arith::MulIOp>(x, y); }
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, number(x, y)); }
  Value divide(Value x, int64_t y) { return make<mlir::arith::DivUIOp>(x, number(x, y)); }
  Value modulo(Value x, int64_t y) { return make<mlir::arith::RemUIOp>(x, number(x, y)); }
  Value exclusiveOr(Value x, int64_t y) { return y ? make<mlir::arith::XOrIOp>(x, number(x, y)) : x; }
  Value exclusiveOr(Value x, Value y) { return make<mlir::arith::XOrIOp>(x, y); }
  Value both(Value x, Value y) { return make<mlir::arith::AndIOp>(x, y); }
  Value either(Value x, Value y) { return make<mlir::arith::OrIOp>(x, y); }
  Value bits(Value x, int64_t mask) { return make<mlir::arith::AndIOp>(x, number(x, mask)); }
  Value min(Value x, Value y) { return make<mlir::arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return make<mlir::arith::MaxSIOp>(x, y); }
  Value less(Value x, Value y) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::slt, x, y); }
  Value equal(Value x, Value y) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::eq, x, y); }
  Value select(Value c, Value x, Value y) { return make<mlir::arith::SelectOp>(c, x, y); }
  /// Between index, i32 and i64 (sign-extending).
  Value cast(Value x, Type type);
  Value toI32(Value x) { return cast(x, b.getI32Type()); }
  Value toI64(Value x) { return cast(x, b.getI64Type()); }
  Value toIndex(Value x) { return cast(x, b.getIndexType()); }

  // Contractions into FMAs are allowed throughout.
  Value addf(Value x, Value y) { return make<mlir::arith::AddFOp>(x, y, mlir::arith::FastMathFlags::contract); }
  Value subf(Value x, Value y) { return make<mlir::arith::SubFOp>(x, y, mlir::arith::FastMathFlags::contract); }
  Value mulf(Value x, Value y) { return make<mlir::arith::MulFOp>(x, y, mlir::arith::FastMathFlags::contract); }
  Value negf(Value x) { return make<mlir::arith::NegFOp>(x); }
  Value fma(Value x, Value y, Value z) { return mlir::math::FmaOp::create(b, loc, x, y, z); }
  /// The larger number; a NaN loses.
  Value maxf(Value x, Value y) { return make<mlir::arith::MaxNumFOp>(x, y); }
  Value minf(Value x, Value y) { return make<mlir::arith::MinNumFOp>(x, y); }
  Value exp2(Value x) { return mlir::math::Exp2Op::create(b, loc, x); }
  Value cmpf(mlir::arith::CmpFPredicate p, Value x, Value y) { return make<mlir::arith::CmpFOp>(p, x, y); }

  Type pointer(unsigned space) { return mlir::LLVM::LLVMPointerType::get(b.getContext(), space); }
  /// `bytes` behind a pointer.
  Value at(Value ptr, Value bytes);
  Value at(Value ptr, int64_t bytes);
  Value load(Type type, Value ptr, unsigned alignment = 0);
  void store(Value v, Value ptr, unsigned alignment = 0);
  /// Words side by side, as one access; `ptr` is a multiple of its size.
  void storeTogether(ValueRange words, Value ptr);

  // --- the threads of a block and of a warp
  Value thread();
  Value lane() { return bits(thread(), kWarp - 1); }
  Value warp() { return divide(thread(), kWarp); }
  void barrier() { mlir::NVVM::Barrier0Op::create(b, loc); }
  /// Does `condition` hold for any thread of the block? Every thread has to get here.
  Value anyOfBlock(Value condition);
  /// Does `condition` hold for any thread of the warp?
  Value anyOfWarp(Value condition);
  Value shuffleXor(Value v, int64_t mask);
  Value shuffleFrom(Value v, Value lane);
  /// Of the four lanes that share the rows of a matrix fragment.
  Value quadMax(Value v);
  Value quadSum(Value v);

  // --- matrix instructions
  /// Four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
  Values loadMatrices(Value ptr, bool transposed);
  /// c + a b for a 16 x 16, b 16 x 8, c 16 x 8 f32.
  Values multiply(Type element, ValueRange a, ValueRange b, ValueRange c);
  /// Two f32, rounded to nearest even, in one register: `low` in the low half.
  Value pack(Value low, Value high, Type element);

  // --- asynchronous copies from global to shared memory
  void copyAsync(Value to, Value from, Value bytes, int64_t chunk = 16);
  void commitCopies() { mlir::NVVM::CpAsyncCommitGroupOp::create(b, loc); }
  void awaitCopies(int64_t pending) { mlir::NVVM::CpAsyncWaitGroupOp::create(b, loc, pending); }

  // --- control flow
  /// for (i32 iv = 0; iv < count; iv += step) carried = body(iv, carried)
  Values loop(int64_t count, int64_t step, ValueRange init, llvm::function_ref<Values(Value, ValueRange)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);
  Values ifElse(Value condition, llvm::function_ref<Values()> then, llvm::function_ref<Values()> otherwise);
};

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_EMIT_H
