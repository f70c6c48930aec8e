//===- RegionCode.cpp - A score or mask region for one element ------------===//
#include "RegionCode.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::cuda {

// The largest extent on a GPU (lib/Runtime/check.c): sums and differences of two positions fit 32 bits. Rows and
// columns past the last may wrap: nothing of them is kept.
static constexpr int64_t kPositionLimit = int64_t(1) << 30;

static ConstantIntRanges boundsOfPositions(bool nonnegative) {
  return ConstantIntRanges::fromSigned(APInt(64, nonnegative ? 0 : -kPositionLimit, /*isSigned=*/true),
                                       APInt(64, kPositionLimit));
}

RegionCode::RegionCode(Block &body, unsigned positions, bool nonnegative) : body(body) {
  // Batch, head, query, key, number of queries and of keys.
  for (auto [number, argument] : llvm::enumerate(body.getArguments().slice(positions, 6))) {
    ranges.try_emplace(argument, boundsOfPositions(number != 2 || nonnegative));
    words.insert(argument);
  }
  for (Operation &op : body.without_terminator()) {
    bound(op);
    if (computesInWords(op) && op.getResult(0).getType().isIndex())
      words.insert(op.getResult(0));
  }
}

void RegionCode::bound(Operation &op) {
  if (!llvm::all_of(op.getResultTypes(), [](Type type) { return type.isIntOrIndex(); }))
    return;
  for (Value result : op.getResults())
    ranges.try_emplace(result, IntegerValueRange::getMaxRange(result).getValue());
  if (isa<memref::DimOp>(op))
    ranges.at(op.getResult(0)) = boundsOfPositions(/*nonnegative=*/true);
  auto inferable = dyn_cast<InferIntRangeInterface>(op);
  if (!inferable || isa<memref::DimOp>(op))
    return;
  SmallVector<ConstantIntRanges> operands;
  for (Value operand : op.getOperands()) {
    auto known = ranges.find(operand);
    operands.push_back(known != ranges.end() ? known->second : IntegerValueRange::getMaxRange(operand).getValue());
  }
  inferable.inferResultRanges(operands, [&](Value v, const ConstantIntRanges &range) { ranges.at(v) = range; });
}

static bool isIndexCast(Operation &op) { return isa<arith::IndexCastOp, arith::IndexCastUIOp>(op); }

/// A cast from an index, or to one that is held as `held`. MLIR folds two index_cast of each other to nothing, even if
/// the first cuts bits off: what is narrower becomes narrower by a truncation.
static Value castIndex(Emit &e, Operation &op, Value x, Type held) {
  Type to = op.getResult(0).getType();
  if (!to.isIndex())
    return e.cast(x.getType().isIndex() ? e.toI64(x) : x, to);
  bool widens = x.getType().getIntOrFloatBitWidth() < held.getIntOrFloatBitWidth();
  return widens && isa<arith::IndexCastUIOp>(op) ? e.make<arith::ExtUIOp>(held, x) : e.cast(x, held);
}

bool RegionCode::fits(Value v) const {
  const ConstantIntRanges &range = ranges.at(v);
  return range.smin().isSignedIntN(32) && range.smax().isSignedIntN(32);
}

/// Ops whose result is the same in 32 bits if all that they meet fits.
bool RegionCode::computesInWords(Operation &op) const {
  auto isSmall = [&](Value v) { return !v.getType().isIndex() || isWord(v); };
  if (!llvm::all_of(op.getResults(), [&](Value v) { return !v.getType().isIndex() || fits(v); }))
    return false;
  if (isa<memref::DimOp>(op))
    return true;
  if (isa<arith::ShRSIOp>(op)) // shifts by more than 31 are not the same
    return llvm::all_of(op.getOperands(), isSmall) && ranges.at(op.getOperand(1)).umax().ult(32);
  if (isIndexCast(op) && op.getResult(0).getType().isIndex())
    return op.getOperand(0).getType().getIntOrFloatBitWidth() <= 32;
  bool known =
      isIndexCast(op) || isa<arith::ConstantOp, arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivSIOp,
                             arith::RemSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::MinSIOp, arith::MaxSIOp,
                             arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::CmpIOp, arith::SelectOp>(op);
  return known && llvm::all_of(op.getOperands(), isSmall);
}

/// In two steps, so that LLVM sees which bits do not matter.
static Value divideNatural(Emit &e, Value x, Value y, Value divisor) {
  APInt known;
  if (!matchPattern(divisor, m_ConstantInt(&known)))
    return e.make<arith::DivUIOp>(x, y);
  unsigned zeros = known.countr_zero();
  Value shifted = zeros ? e.make<arith::ShRUIOp>(x, e.number(x, zeros)) : x;
  return e.divide(shifted, known.getSExtValue() >> zeros);
}

Value RegionCode::writeInWords(Emit &e, Operation &op, ValueRange x) const {
  auto areNatural = [&] {
    return isNonNegative(op.getOperand(0)) && ranges.at(op.getOperand(1)).smin().isStrictlyPositive();
  };
  return llvm::TypeSwitch<Operation *, Value>(&op)
      .Case([&](arith::ConstantOp c) { return e.i32(cast<IntegerAttr>(c.getValue()).getInt()); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>([&](auto) { return castIndex(e, op, x[0], e.b.getI32Type()); })
      .Case([&](arith::CmpIOp c) { return e.make<arith::CmpIOp>(c.getPredicate(), x[0], x[1]); })
      .Case([&](arith::SelectOp) { return e.select(x[0], x[1], x[2]); })
      .Case<arith::DivSIOp, arith::FloorDivSIOp>([&](auto divide) {
        return areNatural() ? divideNatural(e, x[0], x[1], op.getOperand(1)) : e.make<decltype(divide)>(x[0], x[1]);
      })
      .Case([&](arith::RemSIOp) {
        return areNatural() ? e.make<arith::RemUIOp>(x[0], x[1]) : e.make<arith::RemSIOp>(x[0], x[1]);
      })
      .Case<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::CeilDivSIOp, arith::MinSIOp, arith::MaxSIOp,
            arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::ShRSIOp>(
          [&](auto same) { return e.make<decltype(same)>(x[0], x[1]); });
}

// An index outside reads the nearest element; of an empty tensor nothing is ever read, as it is refused.
Value RegionCode::read(Emit &e, memref::LoadOp load, IRMapping &map) const {
  Value memref = map.lookupOrDefault(load.getMemRef());
  Values indices;
  for (auto [dim, original] : llvm::enumerate(load.getIndices())) {
    Value extent = memref::DimOp::create(e.b, e.loc, memref, dim), index = map.lookupOrDefault(original);
    Value last = e.add(e.cast(extent, index.getType()), -1);
    index = e.min(index, last);
    indices.push_back(e.toIndex(isNonNegative(original) ? index : e.max(index, e.number(index, 0))));
  }
  return memref::LoadOp::create(e.b, e.loc, memref, indices);
}

void RegionCode::writeOp(Emit &e, Operation &op, IRMapping &map) const {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return map.map(load.getResult(), read(e, load, map));
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    if (std::optional<APInt> known = ranges.at(cmp.getResult()).getConstantValue())
      return map.map(cmp.getResult(), arith::ConstantIntOp::create(e.b, e.loc, e.b.getI1Type(), known->getZExtValue()));
  bool inWords = llvm::any_of(op.getResults(), [&](Value v) { return isWord(v); }) ||
                 (llvm::any_of(op.getOperands(), [&](Value v) { return isWord(v); }) && computesInWords(op));
  IRMapping operands;
  for (Value operand : op.getOperands()) {
    Value v = map.lookupOrDefault(operand);
    operands.map(operand, isWord(operand) && (!inWords || isa<memref::DimOp>(op)) ? e.toIndex(v) : v);
  }
  if (isa<memref::DimOp>(op))
    map.map(op.getResult(0), e.toI32(e.b.clone(op, operands)->getResult(0)));
  else if (!inWords && isIndexCast(op))
    map.map(op.getResult(0),
            e.cast(castIndex(e, op, operands.lookup(op.getOperand(0)), e.b.getI64Type()), op.getResult(0).getType()));
  else if (!inWords)
    map.map(op.getResults(), e.b.clone(op, operands)->getResults());
  else
    map.map(op.getResult(0),
            writeInWords(e, op, llvm::map_to_vector(op.getOperands(), [&](Value v) { return operands.lookup(v); })));
}

Value RegionCode::write(Emit &e, ValueRange arguments) const {
  IRMapping map;
  map.map(body.getArguments(), arguments);
  for (Operation &op : body.without_terminator())
    writeOp(e, op, map);
  return map.lookupOrDefault(body.getTerminator()->getOperand(0));
}

} // namespace attn::cuda
