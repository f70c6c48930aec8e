//===- AttnExpand.cpp - The meaning of the named predicates -----------------===//
//
// Each expand() builds its predicate from arith, tensor.extract and attn.num_keys. Positions may be negative
// (bottom_right with more queries than keys), so divisions round towards negative infinity.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

namespace {
/// Writes index arithmetic as expressions; constants are made where they are used.
class Emitter {
public:
  Emitter(OpBuilder &builder, Operation *op) : b(builder), loc(op->getLoc()) {}

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(b, loc, value); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value add(Value x, int64_t c) { return c == 0 ? x : add(x, constant(c)); }
  Value sub(Value x, int64_t c) { return c == 0 ? x : sub(x, constant(c)); }
  Value mul(Value x, int64_t c) { return arith::MulIOp::create(b, loc, x, constant(c)); }
  Value min(Value x, Value y) { return arith::MinSIOp::create(b, loc, x, y); }
  Value max(Value x, Value y) { return arith::MaxSIOp::create(b, loc, x, y); }
  Value floorDiv(Value x, int64_t c) { return arith::FloorDivSIOp::create(b, loc, x, constant(c)); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }

  Value eq(Value x, Value y) { return cmp(arith::CmpIPredicate::eq, x, y); }
  Value le(Value x, Value y) { return cmp(arith::CmpIPredicate::sle, x, y); }
  Value lt(Value x, Value y) { return cmp(arith::CmpIPredicate::slt, x, y); }

  /// lo <= x < hi
  Value within(Value lo, Value x, Value hi) { return both(le(lo, x), lt(x, hi)); }

  /// The remainder that is never negative.
  Value floorMod(Value x, int64_t c) {
    Value size = constant(c);
    Value rest = arith::RemSIOp::create(b, loc, x, size);
    return arith::SelectOp::create(b, loc, lt(rest, constant(0)), add(rest, size), rest);
  }

  /// (x - y) mod c == 0; the sign of the remainder does not matter.
  Value congruent(Value x, Value y, int64_t c) {
    return eq(arith::RemSIOp::create(b, loc, sub(x, y), constant(c)), constant(0));
  }

  Value extract(Value tensor, ValueRange indices) { return tensor::ExtractOp::create(b, loc, tensor, indices); }

  Value toIndex(Value x) {
    return x.getType().isIndex() ? x : arith::IndexCastOp::create(b, loc, b.getIndexType(), x).getResult();
  }

  Value isNonZero(Value x) {
    if (x.getType().isInteger(1))
      return x;
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(x.getType()));
    return cmp(arith::CmpIPredicate::ne, x, zero);
  }

  /// i - left <= j <= i + right, where a bound may be absent; the caller sees to it that one is present.
  Value window(Value i, Value j, std::optional<int64_t> left, std::optional<int64_t> right) {
    Value after, before;
    if (left)
      after = le(sub(i, *left), j);
    if (right)
      before = le(j, add(i, *right));
    return after && before ? both(after, before) : after ? after : before;
  }

  /// The block of x, widened: q * size - before <= y < (q + 1) * size + after with q = x div size.
  Value inWidenedBlock(Value x, Value y, int64_t size, int64_t before, int64_t after) {
    Value start = mul(floorDiv(x, size), size);
    return within(sub(start, before), y, add(start, size + after));
  }

  /// y among the `size` nearest places to x in [0, extent), moved inwards at the borders.
  Value inNeighborhood(Value x, Value y, Value extent, int64_t size) {
    Value start = max(min(sub(x, size / 2), sub(extent, size)), constant(0));
    return within(start, y, add(start, size));
  }

private:
  Value cmp(arith::CmpIPredicate predicate, Value x, Value y) { return arith::CmpIOp::create(b, loc, predicate, x, y); }

  OpBuilder &b;
  Location loc;
};
} // namespace

//===----------------------------------------------------------------------===//
// By distance
//===----------------------------------------------------------------------===//

Value CausalOp::expand(OpBuilder &builder) { return Emitter(builder, *this).le(getJ(), getI()); }

Value WindowOp::expand(OpBuilder &builder) {
  return Emitter(builder, *this).window(getI(), getJ(), getLeft(), getRight());
}

Value DilatedWindowOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  int64_t dilation = getDilation();
  Value near = e.window(getI(), getJ(), getLeft() * dilation, getRight() * dilation);
  return e.both(e.congruent(getI(), getJ(), dilation), near);
}

Value StrideOp::expand(OpBuilder &builder) { return Emitter(builder, *this).congruent(getI(), getJ(), getSize()); }

//===----------------------------------------------------------------------===//
// By block
//===----------------------------------------------------------------------===//

Value SameBlockOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.eq(e.floorDiv(getI(), getSize()), e.floorDiv(getJ(), getSize()));
}

Value ChunkLookbackOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  Value query = e.floorDiv(getI(), getSize()), key = e.floorDiv(getJ(), getSize());
  return e.both(e.le(key, query), e.le(e.sub(query, getBefore()), key));
}

Value LocalBlocksOp::expand(OpBuilder &builder) {
  return Emitter(builder, *this).inWidenedBlock(getI(), getJ(), getSize(), getBefore(), getAfter());
}

Value LastColumnsOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.le(e.constant(getBlock() - getCount()), e.floorMod(getJ(), getBlock()));
}

//===----------------------------------------------------------------------===//
// On a grid
//===----------------------------------------------------------------------===//

Value SameRowOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.eq(e.floorDiv(getI(), getWidth()), e.floorDiv(getJ(), getWidth()));
}

Value SameColumnOp::expand(OpBuilder &builder) { return Emitter(builder, *this).congruent(getI(), getJ(), getWidth()); }

Value LocalBlocks2DOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  int64_t width = getWidth();
  ArrayRef<int64_t> block = getBlock(), flange = getFlange();
  Value rows = e.inWidenedBlock(e.floorDiv(getI(), width), e.floorDiv(getJ(), width), block[0], flange[0], flange[0]);
  Value columns =
      e.inWidenedBlock(e.floorMod(getI(), width), e.floorMod(getJ(), width), block[1], flange[1], flange[1]);
  return e.both(rows, columns);
}

Value NeighborhoodOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  Value keys = NumKeysOp::create(builder, getLoc());
  return e.inNeighborhood(getI(), getJ(), keys, getSize());
}

Value Neighborhood2DOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  int64_t width = getWidth();
  Value height = e.floorDiv(NumKeysOp::create(builder, getLoc()), width);
  Value rows = e.inNeighborhood(e.floorDiv(getI(), width), e.floorDiv(getJ(), width), height, getSize()[0]);
  Value columns =
      e.inNeighborhood(e.floorMod(getI(), width), e.floorMod(getJ(), width), e.constant(width), getSize()[1]);
  return e.both(rows, columns);
}

//===----------------------------------------------------------------------===//
// By token
//===----------------------------------------------------------------------===//

Value PrefixOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.lt(getJ(), e.constant(getLength()));
}

Value HeadsOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.eq(e.floorMod(getH(), getPeriod()), e.constant(getIndex()));
}

Value KeyLengthOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  bool perBatch = getLengths().getType().getRank() == 1;
  return e.lt(getJ(), e.toIndex(e.extract(getLengths(), perBatch ? ValueRange(getB()) : ValueRange())));
}

Value GlobalOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  if (std::optional<uint64_t> count = getCount()) {
    // A query before the first key (bottom_right) has a negative position and is no global token.
    Value first = e.constant(0), end = e.constant(*count);
    return e.either(e.within(first, getI(), end), e.within(first, getJ(), end));
  }
  Value any;
  for (int64_t token : getTokensAttr().asArrayRef()) {
    Value at = e.constant(token);
    Value hit = e.either(e.eq(getI(), at), e.eq(getJ(), at));
    any = any ? e.either(any, hit) : hit;
  }
  return any;
}

Value SameDocumentOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  return e.eq(e.extract(getDocuments(), {getB(), getI()}), e.extract(getDocuments(), {getB(), getJ()}));
}

//===----------------------------------------------------------------------===//
// By table
//===----------------------------------------------------------------------===//

Value BlockMaskOp::expand(OpBuilder &builder) {
  Emitter e(builder, *this);
  int64_t rank = getTable().getType().getRank();
  SmallVector<Value> indices;
  if (rank == 4)
    indices.push_back(getB());
  if (rank >= 3)
    indices.push_back(getH());
  indices.push_back(e.floorDiv(getI(), getSize()));
  indices.push_back(e.floorDiv(getJ(), getSize()));
  return e.isNonZero(e.extract(getTable(), indices));
}

FailureOr<Interval> ContainsOp::readInterval(IntervalBuilder &builder, ArrayRef<Interval> operands) {
  return builder.range(*this, operands.drop_front());
}

FailureOr<Interval> NumKeysOp::readInterval(IntervalBuilder &builder, ArrayRef<Interval>) {
  return builder.point(builder.numKeys());
}

FailureOr<Interval> NumQueriesOp::readInterval(IntervalBuilder &builder, ArrayRef<Interval>) {
  return builder.point(builder.numQueries());
}
