//===- Emit.h - Terse building of vector code -------------------*- C++ -*-===//
//
// Micro-kernels are a few hundred ops of index arithmetic, loads and FMAs. This wraps an OpBuilder so that the code
// that builds them reads like the kernel.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_CPU_EMIT_H
#define ATTN_LIB_CODEGEN_CPU_EMIT_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace attn::cpu {

using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;

/// How 2^x is computed: two AVX-512 instructions around the polynomial, or integer exponent arithmetic for any target.
enum class ExpForm { AVX512, Portable };

/// What 2^(x - m) needs of m, made once for many x.
struct Reference {
  Value offset;      // -m, with what rounds the sum added where there is no instruction for that
  Value least, most; // Portable: bounds of x
};

class Emit {
public:
  Emit(mlir::OpBuilder &b, mlir::Location loc, int64_t lanes)
      : b(b), loc(loc), lanes(lanes), vec(mlir::VectorType::get({lanes}, b.getF32Type())),
        ivec(mlir::VectorType::get({lanes}, b.getI32Type())), mask(mlir::VectorType::get({lanes}, b.getI1Type())) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  int64_t lanes;
  mlir::VectorType vec, ivec, mask;

  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return b.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }

  Value index(int64_t v) { return mlir::arith::ConstantIndexOp::create(b, loc, v); }
  Value add(Value x, Value y) { return make<mlir::arith::AddIOp>(x, y); }
  Value add(Value x, int64_t y) { return y ? add(x, index(y)) : x; }
  Value sub(Value x, Value y) { return make<mlir::arith::SubIOp>(x, y); }
  Value mul(Value x, Value y) { return make<mlir::arith::MulIOp>(x, y); }
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, index(y)); }
  Value min(Value x, Value y) { return make<mlir::arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return make<mlir::arith::MaxSIOp>(x, y); }
  Value less(Value x, Value y) { return make<mlir::arith::CmpIOp>(mlir::arith::CmpIPredicate::slt, x, y); }
  /// The largest multiple of `m` up to x >= 0.
  Value roundDown(Value x, int64_t m) { return mul(make<mlir::arith::DivUIOp>(x, index(m)), m); }
  /// The same upwards, and how many of `m` that is.
  Value ceilDiv(Value x, int64_t m) { return make<mlir::arith::DivUIOp>(add(x, m - 1), index(m)); }
  Value roundUp(Value x, int64_t m) { return mul(ceilDiv(x, m), m); }

  Value scalar(float v) { return mlir::arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(v)); }
  Value splat(float v) { return mlir::arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(vec, v)); }
  Value splatInt(int32_t v) { return mlir::arith::ConstantOp::create(b, loc, mlir::DenseElementsAttr::get(ivec, v)); }
  Value broadcast(Value s) { return mlir::vector::BroadcastOp::create(b, loc, vec, s); }

  Value load(Value memref, ValueRange at) { return mlir::memref::LoadOp::create(b, loc, memref, at); }
  void store(Value v, Value memref, ValueRange at) { mlir::memref::StoreOp::create(b, loc, v, memref, at); }
  Value vload(Value memref, ValueRange at) { return mlir::vector::LoadOp::create(b, loc, vec, memref, at); }
  void vstore(Value v, Value memref, ValueRange at) { mlir::vector::StoreOp::create(b, loc, v, memref, at); }

  /// Elements of f32, f16 or bf16, as f32.
  Value loadWide(Value memref, ValueRange at) { return widen(load(memref, at)); }
  Value vloadWide(Value memref, ValueRange at) {
    auto type = mlir::VectorType::get({lanes}, mlir::cast<mlir::MemRefType>(memref.getType()).getElementType());
    return widen(mlir::vector::LoadOp::create(b, loc, type, memref, at));
  }
  /// The inverse, rounded to the nearest.
  void storeNarrow(Value v, Value memref, ValueRange at) { store(narrow(v, memref), memref, at); }
  void vstoreNarrow(Value v, Value memref, ValueRange at) { vstore(narrow(v, memref), memref, at); }

  Value fma(Value x, Value y, Value z) { return mlir::vector::FMAOp::create(b, loc, x, y, z); }
  Value addf(Value x, Value y) { return mlir::arith::AddFOp::create(b, loc, x, y); }
  Value subf(Value x, Value y) { return mlir::arith::SubFOp::create(b, loc, x, y); }
  Value mulf(Value x, Value y) { return mlir::arith::MulFOp::create(b, loc, x, y); }
  Value cmpf(mlir::arith::CmpFPredicate p, Value x, Value y) { return mlir::arith::CmpFOp::create(b, loc, p, x, y); }
  Value select(Value c, Value x, Value y) { return mlir::arith::SelectOp::create(b, loc, c, x, y); }
  /// The larger (smaller) of x and the bound; a NaN in x stays (one maxps on x86).
  Value atLeast(Value x, Value bound) { return select(cmpf(mlir::arith::CmpFPredicate::OGT, bound, x), bound, x); }
  Value atMost(Value x, Value bound) { return select(cmpf(mlir::arith::CmpFPredicate::OLT, bound, x), bound, x); }

  /// for (iv = lo; iv < hi; iv += step) carried = body(iv, carried)
  Values loop(Value lo, Value hi, int64_t step, ValueRange init, llvm::function_ref<Values(Value, ValueRange)> body);
  void loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

  /// 2^(4 x - 4 m) with a relative error below 2e-7, wherever m lies: the fraction is that of x alone, for 4 m is a
  /// whole number. 0 or 2^-126 below, large or infinite for exponents above 127, NaN for NaN; a portable reference of
  /// 2^21 or more makes everything NaN. In quarters of an exponent, all scores that are floats stay floats.
  Value exp2(Value x, const Reference &reference, ExpForm form);
  Reference reference(Value minusM, ExpForm form);
  /// x >= 0 or below, rounded up to a multiple of 1/4, in which 4 x is a whole number; x itself where it is large.
  Value roundUp(Value x);

private:
  Value widen(Value x);
  Value narrow(Value x, Value memref);
};

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_EMIT_H
