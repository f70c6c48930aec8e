//===- ExpandFloats.cpp - Rounding, fma and remainder without a library ---===//
#include "ExpandFloats.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;

namespace attn::cpu {

using FloatIs = arith::CmpFPredicate;
using IntIs = arith::CmpIPredicate;

Value roundToOdd(Elementwise &e, Value x, Value rest) {
  unsigned width = Elementwise::width(x);
  Value zero = e.number(0, rest.getType()), bits = e.bits(x), negative = e.cmpi(IntIs::slt, bits, 0);
  Value away = e.make<arith::XOrIOp>(e.cmpf(FloatIs::OGT, rest, zero), negative); // one bit up, whatever the sign
  Value step = e.select(away, e.whole(1, width), e.whole(-1, width));
  Value even = e.cmpi(IntIs::eq, e.andi(bits, 1), 0);
  Value moves = e.make<arith::AndIOp>(even, e.cmpf(FloatIs::ONE, rest, zero)); // not where the rest is NaN
  Value odd = e.make<arith::AddIOp>(bits, step);
  return e.fromBits(e.select(moves, odd, bits), getElementTypeOrSelf(x.getType()));
}

namespace {

/// A sum, and what its rounding lost, exactly (Knuth).
std::pair<Value, Value> twoSum(Elementwise &e, Value a, Value b) {
  auto add = [&](Value x, Value y) { return e.make<arith::AddFOp>(x, y); };
  auto sub = [&](Value x, Value y) { return e.make<arith::SubFOp>(x, y); };
  Value sum = add(a, b), ofB = sub(sum, a);
  return {sum, add(sub(a, sub(sum, ofB)), sub(b, ofB))};
}
} // namespace

Value fmaByDouble(Elementwise &e, Value a, Value b, Value c) {
  Type wide = e.of(e.b.getF64Type());
  auto extend = [&](Value x) { return e.make<arith::ExtFOp>(wide, x); };
  auto [sum, rest] = twoSum(e, e.make<arith::MulFOp>(extend(a), extend(b)), extend(c));
  return e.make<arith::TruncFOp>(a.getType(), roundToOdd(e, sum, rest));
}

namespace {

/// |x| + 2^23 (2^52 for f64) has no fraction: the addition has rounded it to nearest even. Numbers beyond have none.
template <typename OpT>
struct ExpandRounding : OpRewritePattern<OpT> {
  using OpRewritePattern<OpT>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpT op, PatternRewriter &rewriter) const override {
    Type type = op.getType(), element = getElementTypeOrSelf(type);
    if (!element.isF32() && !element.isF64())
      return failure();
    Elementwise e(rewriter, op.getLoc(), type);
    Value x = op.getOperand(), size = e.make<math::AbsFOp>(x);
    Value limit = e.number(element.isF32() ? 0x1p23 : 0x1p52, type), one = e.number(1, type);
    Value whole = e.make<arith::SubFOp>(e.make<arith::AddFOp>(size, limit), limit);
    if constexpr (std::is_same_v<OpT, math::TruncOp>)
      whole = e.select(e.cmpf(FloatIs::OGT, whole, size), e.make<arith::SubFOp>(whole, one), whole);
    whole = e.make<math::CopySignOp>(whole, x);
    if constexpr (std::is_same_v<OpT, math::FloorOp>)
      whole = e.select(e.cmpf(FloatIs::OGT, whole, x), e.make<arith::SubFOp>(whole, one), whole);
    if constexpr (std::is_same_v<OpT, math::CeilOp>)
      whole = e.select(e.cmpf(FloatIs::OLT, whole, x), e.make<arith::AddFOp>(whole, one), whole);
    whole = e.make<math::CopySignOp>(whole, x); // -0
    rewriter.replaceOp(op, e.select(e.cmpf(FloatIs::OLT, size, limit), whole, x));
    return success();
  }
};

/// A product, and what its rounding lost, exactly (Dekker), for factors whose halves do not overflow.
std::pair<Value, Value> twoProduct(Elementwise &e, Value a, Value b) {
  auto mul = [&](Value x, Value y) { return e.make<arith::MulFOp>(x, y); };
  auto sub = [&](Value x, Value y) { return e.make<arith::SubFOp>(x, y); };
  auto upper = [&](Value x) {
    Value wide = mul(x, e.number(0x1p27 + 1, x.getType()));
    return sub(wide, sub(wide, x));
  };
  Value product = mul(a, b), aHigh = upper(a), bHigh = upper(b), aLow = sub(a, aHigh), bLow = sub(b, bHigh);
  Value rest = sub(sub(sub(product, mul(aHigh, bHigh)), mul(aLow, bHigh)), mul(aHigh, bLow));
  return {product, sub(mul(aLow, bLow), rest)};
}

constexpr int kBias = 1023, kSpecial = 2047;

Value exponentF64(Elementwise &e, Value bits) { return e.andi(e.shr(bits, 52), kSpecial); }

Value withExponent(Elementwise &e, Value bits, Value exponent) {
  Value rest = e.andi(bits, ~(int64_t(kSpecial) << 52));
  return e.fromBits(e.make<arith::OrIOp>(rest, e.shl(exponent, 52)), e.b.getF64Type());
}

/// 2^n for n from -1022 to 1023.
Value powerF64(Elementwise &e, Value n) { return e.fromBits(e.shl(e.addi(n, kBias), 52), e.b.getF64Type()); }

/// Boldo and Melquiond (2008), on factors in [1, 2) so that no part over- or underflows: (uh + ul) + c, where the sum
/// of the small parts is rounded to odd. A summand that is far smaller or larger than the product only decides
/// roundings, or is the result.
Value fmaF64(Elementwise &e, Value a, Value b, Value c) {
  Value plain = e.make<arith::AddFOp>(e.make<arith::MulFOp>(a, b), c);
  Value aBits = e.bits(a), bBits = e.bits(b), cBits = e.bits(c), one = e.whole(kBias, 64);
  Value ea = exponentF64(e, aBits), eb = exponentF64(e, bBits), ec = exponentF64(e, cBits);
  Value scale = e.addi(e.make<arith::AddIOp>(ea, eb), -2 * kBias), place = e.make<arith::SubIOp>(ec, scale);
  Value fits = e.cmpi(IntIs::slt, place, kBias + 200);
  for (Value factor : {ea, eb}) {
    fits = e.make<arith::AndIOp>(fits, e.cmpi(IntIs::ne, factor, 0));
    fits = e.make<arith::AndIOp>(fits, e.cmpi(IntIs::ne, factor, kSpecial));
  }
  fits = e.make<arith::AndIOp>(fits, e.cmpi(IntIs::ne, ec, kSpecial));
  place = e.make<arith::MaxSIOp>(place, e.whole(kBias - 200, 64));
  place = e.make<arith::MinSIOp>(place, e.whole(kBias + 200, 64));
  Value summand = e.select(e.cmpi(IntIs::eq, ec, 0), c, withExponent(e, cBits, place));

  auto [high, low] = twoProduct(e, withExponent(e, aBits, one), withExponent(e, bBits, one));
  auto [small, smallRest] = twoSum(e, summand, low);
  auto [large, largeRest] = twoSum(e, high, small);
  auto [rest, lost] = twoSum(e, smallRest, largeRest);
  Value sum = e.make<arith::AddFOp>(large, roundToOdd(e, rest, lost));
  scale = e.make<arith::MaxSIOp>(scale, e.whole(-2 * kBias + 4, 64)); // beyond, the result is 0 either way
  Value half = e.make<arith::ShRSIOp>(scale, e.whole(1, 64));
  sum = e.make<arith::MulFOp>(sum, powerF64(e, half));
  sum = e.make<arith::MulFOp>(sum, powerF64(e, e.make<arith::SubIOp>(scale, half)));
  return e.select(fits, sum, plain);
}

struct ExpandFma : OpRewritePattern<math::FmaOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::FmaOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, (element.isF32() ? fmaByDouble : fmaF64)(e, op.getA(), op.getB(), op.getC()));
    return success();
  }
};

/// x and y as mantissa times a power of two: the mantissa of x modulo that of y, shifted on by as many bits as 64 have
/// room for until both have the exponent of y.
class Remainder {
public:
  Remainder(Elementwise &e, Value x, Value y)
      : e(e), x(x), y(y), element(getElementTypeOrSelf(x.getType())), width(element.getIntOrFloatBitWidth()),
        fraction(width == 32 ? 23 : 52), room(63 - fraction),
        infinity(int64_t(width == 32 ? 255 : kSpecial) << fraction) {}

  Value build();

private:
  struct Number {
    Value size, exponent, mantissa; // in 64 bits; size: all but the sign
  };
  Number read(Value v);
  Value write(Value mantissa, Value exponent, Value sign);
  Value mostOf(Value v);

  Elementwise &e;
  Value x, y;
  Type element;
  unsigned width;
  int64_t fraction, room, infinity;
};

Remainder::Number Remainder::read(Value v) {
  Value size = e.andi(e.bits(v), width == 32 ? INT32_MAX : INT64_MAX);
  if (width == 32)
    size = e.make<arith::ExtUIOp>(e.integer(64), size);
  Value exponent = e.shr(size, fraction), mantissa = e.andi(size, (int64_t(1) << fraction) - 1);
  Value normal = e.cmpi(IntIs::ne, exponent, 0);
  Value one = e.make<arith::OrIOp>(mantissa, e.whole(int64_t(1) << fraction, 64));
  return {size, e.make<arith::MaxSIOp>(exponent, e.whole(1, 64)), e.select(normal, one, mantissa)};
}

Value Remainder::write(Value mantissa, Value exponent, Value sign) {
  Value shift = e.addi(e.make<math::CountLeadingZerosOp>(mantissa), -room);
  shift = e.make<arith::MinSIOp>(shift, e.addi(exponent, -1)); // what stays short is a denormal
  Value bits = e.make<arith::ShLIOp>(mantissa, shift);
  Value above = e.addi(e.make<arith::SubIOp>(exponent, shift), -1); // the mantissa's first bit counts one
  bits = e.make<arith::AddIOp>(bits, e.shl(above, fraction));
  bits = e.select(e.cmpi(IntIs::eq, mantissa, 0), mantissa, bits);
  if (width == 32)
    bits = e.make<arith::TruncIOp>(e.integer(32), bits);
  return e.make<math::CopySignOp>(e.fromBits(bits, element), sign);
}

Value Remainder::mostOf(Value v) {
  if (e.shape)
    v = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::MAXSI, v);
  return arith::IndexCastOp::create(e.b, e.loc, e.b.getIndexType(), v);
}

Value Remainder::build() {
  Number a = read(x), b = read(y);
  Value divisor = e.make<arith::MaxUIOp>(b.mantissa, e.whole(1, 64));
  Value left = e.make<arith::SubIOp>(a.exponent, b.exponent), first = e.make<arith::RemUIOp>(a.mantissa, divisor);
  Value zero = arith::ConstantIndexOp::create(e.b, e.loc, 0), step = arith::ConstantIndexOp::create(e.b, e.loc, room);
  auto loop = scf::ForOp::create(e.b, e.loc, zero, mostOf(left), step, ValueRange{first, left});
  {
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToStart(loop.getBody());
    Value rest = loop.getRegionIterArg(0), bits = loop.getRegionIterArg(1);
    Value now = e.make<arith::MinSIOp>(e.make<arith::MaxSIOp>(bits, e.whole(0, 64)), e.whole(room, 64));
    rest = e.make<arith::RemUIOp>(e.make<arith::ShLIOp>(rest, now), divisor);
    scf::YieldOp::create(e.b, e.loc, ValueRange{rest, e.make<arith::SubIOp>(bits, now)});
  }
  Value result = e.select(e.cmpi(IntIs::slt, left, 0), x, write(loop.getResult(0), b.exponent, x));
  Value none = e.make<arith::OrIOp>(e.cmpi(IntIs::sge, a.size, infinity), e.cmpi(IntIs::sgt, b.size, infinity));
  none = e.make<arith::OrIOp>(none, e.cmpi(IntIs::eq, b.size, 0));
  return e.select(none, e.number(NAN, x.getType()), result);
}

struct ExpandRemainder : OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    if (!element.isF32() && !element.isF64())
      return failure();
    Elementwise e(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, Remainder(e, op.getLhs(), op.getRhs()).build());
    return success();
  }
};

} // namespace

void populateRoundingPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandRounding<math::FloorOp>, ExpandRounding<math::CeilOp>, ExpandRounding<math::TruncOp>,
               ExpandRounding<math::RoundEvenOp>>(patterns.getContext());
}

void populateFmaPatterns(RewritePatternSet &patterns) { patterns.add<ExpandFma>(patterns.getContext()); }

void populateRemainderPatterns(RewritePatternSet &patterns) { patterns.add<ExpandRemainder>(patterns.getContext()); }

} // namespace attn::cpu
