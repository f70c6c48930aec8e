//===- Relative.cpp - Products of queries with distances ------------------===//
//
// Distances of a tile are a strip: key rows and queries less one. For each vector of queries its part of the strip is
// multiplied like a tile of keys, T[u][lane]; the product of key row c is then T[u + lane][lane], lanes apart by one
// row each. Taking bit after bit of the lane's number, rows are shifted into place by a blend for each bit, in place.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"

using namespace mlir;

namespace attn::cpu {

SmallVector<Type> MicroKernels::relativeArguments(tile::RelativeOp op) {
  if (!op)
    return {};
  Type index = IndexType::get(context());
  SmallVector<Type> types{slotType(), op.getTable().getType(), index, index, Float32Type::get(context())};
  if (op.getBias())
    types.push_back(op.getBias().getType());
  return types;
}

namespace {

/// Builds the body of `addRelative`: slot, head_dim, value_dim, weights, count, then strip, table, head, distance of
/// the first query from the first key, scale and perhaps bias.
class RelativeCode {
public:
  RelativeCode(Emit &e, ValueRange args, const MicroKernels::Layout &at, int64_t step, int64_t blockRows)
      : e(e), at(at), step(step), blockRows(blockRows), slot(args[0]), weights(args[3]), count(args[4]), strip(args[5]),
        table(args[6]), head(args[7]), distance(args[8]), scale(args[9]), bias(args.size() > 10 ? args[10] : Value()) {}

  void build() {
    last = e.sub(e.make<memref::DimOp>(table, e.index(1)), e.index(1));
    Value rows = e.add(count, at.queries - 1);
    if (bias)
      e.loop(e.index(0), rows, 1, [&](Value u) { e.store(biasProduct(tableRow(u)), strip, e.add(terms(), u)); });
    e.loop(e.index(0), e.index(at.queries), e.lanes, [&](Value query) {
      Value own = e.add(count, e.lanes - 1), whole = e.roundDown(own, blockRows);
      e.loop(e.index(0), whole, blockRows, [&](Value u) { products(query, u, blockRows); });
      e.loop(whole, own, 1, [&](Value u) { products(query, u, 1); });
      skew(query);
    });
  }

private:
  /// Behind the strip of a vector: bias products of the whole strip.
  Value terms() { return e.mul(e.add(count, e.lanes - 1), e.lanes); }

  /// The row of the table for row u of the strip: the last key row is the nearest.
  Value tableRow(Value u) {
    Value far = e.add(distance, e.mul(e.sub(u, e.sub(count, e.index(1))), step));
    return e.max(e.min(far, last), e.index(0));
  }

  Value biasProduct(Value row) {
    Value whole = e.roundDown(at.dim, e.lanes);
    Values sum = e.loop(e.index(0), whole, e.lanes, {e.splat(0)}, [&](Value d, ValueRange sum) {
      return Values{e.fma(e.vloadWide(bias, {head, d}), e.vloadWide(table, {head, row, d}), sum[0])};
    });
    Value dot =
        vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, sum[0], arith::FastMathFlags::reassoc);
    Values rest = e.loop(whole, at.dim, 1, {dot}, [&](Value d, ValueRange sum) {
      return Values{e.addf(sum[0], e.mulf(e.loadWide(bias, {head, d}), e.loadWide(table, {head, row, d})))};
    });
    return e.mulf(rest[0], scale);
  }

  /// Rows u, u + 1, ... of the strip of the vector of queries from `query` on.
  void products(Value query, Value u, int64_t rows) {
    Values sums, tableRows;
    for (int64_t r = 0; r < rows; ++r) {
      Value place = e.add(e.add(query, u), r);
      tableRows.push_back(tableRow(place));
      sums.push_back(bias ? e.broadcast(e.load(strip, e.add(terms(), place))) : e.splat(0));
    }
    sums = e.loop(e.index(0), at.dim, 1, sums, [&](Value d, ValueRange carried) {
      Values next(carried);
      Value q = e.vload(slot, e.add(e.add(at.scaled, e.mul(d, at.queries)), query));
      for (auto [sum, row] : llvm::zip_equal(next, tableRows))
        sum = e.fma(e.broadcast(e.loadWide(table, {head, row, d})), q, sum);
      return next;
    });
    for (auto [r, sum] : llvm::enumerate(sums))
      e.vstore(sum, strip, e.mul(e.add(u, r), e.lanes));
  }

  void skew(Value query) {
    int64_t left = e.lanes - 1; // rows behind the key rows that later bits still ask
    for (int64_t bit = 1; bit < e.lanes; bit *= 2) {
      left -= bit;
      SmallVector<bool> isSet;
      for (int64_t lane = 0; lane < e.lanes; ++lane)
        isSet.push_back(lane & bit);
      Value shifts = arith::ConstantOp::create(e.b, e.loc, DenseElementsAttr::get(e.mask, isSet));
      e.loop(e.index(0), e.add(count, left), 1, [&](Value u) {
        Value here = e.vload(strip, e.mul(u, e.lanes)), next = e.vload(strip, e.mul(e.add(u, bit), e.lanes));
        Value shifted = e.select(shifts, next, here);
        if (left)
          return e.vstore(shifted, strip, e.mul(u, e.lanes));
        Value key = e.sub(e.sub(count, e.index(1)), u), place = e.add(e.mul(key, at.queries), query);
        e.vstore(e.addf(e.vload(weights, place), shifted), weights, place);
      });
    }
  }

  Emit &e;
  MicroKernels::Layout at;
  int64_t step, blockRows;
  Value slot, weights, count, strip, table, head, distance, scale, bias, last;
};

} // namespace

func::FuncOp MicroKernels::addRelative(tile::RelativeOp op) {
  Type index = IndexType::get(context());
  SmallVector<Type> types{slotType(), index, index, slotType(), index};
  llvm::append_range(types, relativeArguments(op));
  return build(name("add_relative"), types, {}, [&](Body &body) {
    Emit &e = body.e;
    Value dim = dimArgument(e, state.getDim(), body.args[1]);
    Layout at = layout(e, dim, dimArgument(e, state.getValueDim(), body.args[2]));
    Value scale = body.args[9];
    if (!isNatural()) // quarters of an exponent, as the queries are
      scale = e.mulf(scale, e.scalar(0.25f));
    Values args(body.args);
    args[9] = scale;
    RelativeCode(e, args, at, op.getStep(), accumulateRows(block, 1)).build();
  });
}

} // namespace attn::cpu
