//===- Elementwise.h - The same code for scalars and vectors ----*- C++ -*-===//
#ifndef ATTN_LIB_CODEGEN_MATH_ELEMENTWISE_H
#define ATTN_LIB_CODEGEN_MATH_ELEMENTWISE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace attn {

using mlir::Value;

/// Builds code on values of one shape, a scalar or a vector, and of any element type.
class Elementwise {
public:
  Elementwise(mlir::OpBuilder &b, mlir::Location loc, mlir::Type like)
      : b(b), loc(loc), shape(llvm::dyn_cast<mlir::VectorType>(like)) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::VectorType shape; // null for a scalar

  mlir::Type of(mlir::Type element) const { return shape ? mlir::VectorType::get(shape.getShape(), element) : element; }
  mlir::Type integer(unsigned bits) const { return of(b.getIntegerType(bits)); }
  Value number(double v, mlir::Type like) { return constant(b.getFloatAttr(getElementTypeOrSelf(like), v)); }
  Value whole(int64_t v, unsigned bits) { return constant(b.getIntegerAttr(b.getIntegerType(bits), v)); }

  template <typename OpT, typename... Args>
  Value make(Args &&...args) {
    return b.createOrFold<OpT>(loc, std::forward<Args>(args)...);
  }
  Value select(Value c, Value x, Value y) { return make<mlir::arith::SelectOp>(c, x, y); }
  Value cmpf(mlir::arith::CmpFPredicate p, Value x, Value y) { return make<mlir::arith::CmpFOp>(p, x, y); }
  Value cmpi(mlir::arith::CmpIPredicate p, Value x, int64_t y) {
    return make<mlir::arith::CmpIOp>(p, x, whole(y, width(x)));
  }
  Value addi(Value x, int64_t y) { return make<mlir::arith::AddIOp>(x, whole(y, width(x))); }
  Value andi(Value x, int64_t y) { return make<mlir::arith::AndIOp>(x, whole(y, width(x))); }
  Value shl(Value x, int64_t y) { return make<mlir::arith::ShLIOp>(x, whole(y, width(x))); }
  Value shr(Value x, int64_t y) { return make<mlir::arith::ShRUIOp>(x, whole(y, width(x))); }

  /// The bits of a float, and the float of bits.
  Value bits(Value x) { return make<mlir::arith::BitcastOp>(integer(width(x)), x); }
  Value fromBits(Value x, mlir::Type element) { return make<mlir::arith::BitcastOp>(of(element), x); }

  static unsigned width(Value x) { return getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth(); }

private:
  Value constant(mlir::TypedAttr value) {
    if (shape)
      value = mlir::SplatElementsAttr::get(llvm::cast<mlir::ShapedType>(of(value.getType())), mlir::Attribute(value));
    return mlir::arith::ConstantOp::create(b, loc, value);
  }
};

} // namespace attn

#endif // ATTN_LIB_CODEGEN_MATH_ELEMENTWISE_H
