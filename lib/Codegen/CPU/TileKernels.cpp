//===- TileKernels.cpp - Scores and weights of a tile ---------------------===//
#include "Lanes.h"
#include "MicroKernelsDetail.h"
#include <cfloat>

using namespace mlir;

namespace attn::cpu {

static constexpr float kLog2e = 1.44269504088896341f;
static constexpr float kSumLimit = 0x1p40f; // a larger sum means that the reference is far too low

// What `softmax` and `raise` share: arguments and the scores of a block of key rows.
// slot, head_dim, value_dim, weights, key, row, count, then, where there is a region: batch, head, position of the
// first query, position of the tile's first key, numbers of queries and keys, captured of modify, captured of mask.
struct MicroKernels::TileCode {
  MicroKernels &kernels;
  Emit &e;
  ValueRange args;
  std::optional<LaneRegion> modify, mask;
  Layout at;

  TileCode(MicroKernels &kernels, Body &body, tile::ModifyOp modifyOp, tile::MaskOp maskOp)
      : kernels(kernels), e(body.e), args(body.args) {
    auto dim = [&](int64_t known, Value argument) { return known >= 0 ? e.index(known) : argument; };
    at = kernels.layout(e, dim(kernels.state.getDim(), args[1]), dim(kernels.state.getValueDim(), args[2]));
    size_t captured = 13;
    auto region = [&](auto op, std::optional<LaneRegion> &code) {
      if (!op)
        return;
      ValueRange own = args.slice(captured, op.getCaptured().size());
      captured += own.size();
      LaneRegion::Place place{args[7],  args[8],  args[9], args[10], int64_t(op.getStep()), op.getNonnegative(),
                              args[11], args[12], own};
      code.emplace(e, op.getBody().front(), place, kernels.vectors);
      code->prepare();
    };
    region(modifyOp, modify);
    region(maskOp, mask);
  }

  Value slot() { return args[0]; }
  Value lane(int64_t v) { return e.index(v * e.lanes); }
  Value minusM(int64_t v) { return e.vload(slot(), lane(v)); }
  /// Where the weights of a key row of the tile lie.
  Value place(Value row, int64_t v) { return e.add(e.mul(row, kernels.queries), v * e.lanes); }
  Value sum(int64_t v) { return e.vload(slot(), e.index(kernels.queries + v * e.lanes)); }

  /// K Q^T for key rows row + i .. + rows of the tile, on top of `init`.
  Values products(Value i, int64_t rows, ValueRange init) {
    int64_t dim = kernels.state.getDim(), unroll = dim >= 0 && dim % 2 == 0 ? 2 : 1;
    Values keyRows;
    for (int64_t r = 0; r < rows; ++r)
      keyRows.push_back(e.add(e.add(args[5], i), r));
    return kernels.fmaBlock(
        e, rows, init, e.index(0), at.dim, unroll, [&](Value d, int64_t r) { return e.load(args[4], {keyRows[r], d}); },
        [&](Value d, int64_t v) {
          return e.vload(slot(), e.add(e.add(at.scaled, e.mul(d, kernels.queries)), v * e.lanes));
        },
        /*skipZero=*/false);
  }

  /// Starts key row i of the tile in the regions.
  void startRow(Value i) {
    if (modify)
      modify->startRow(i);
    if (mask)
      mask->startRow(i);
  }

  /// The score region, with +inf made the largest finite score; its -inf is a masked element.
  Value modified(Value s, int64_t v, Value &keep) {
    keep = mask ? mask->yielded(v) : Value();
    if (!modify)
      return s;
    s = e.atMost(modify->yielded(v, s), e.splat(FLT_MAX));
    Value finite = e.cmpf(arith::CmpFPredicate::UNE, s, e.splat(-INFINITY));
    keep = keep ? Value(arith::AndIOp::create(e.b, e.loc, keep, finite)) : finite;
    return s;
  }

  void forRows(llvm::function_ref<Values(Value, int64_t, ValueRange)> rowsAt, Values &carried) {
    int64_t rows = getBlockRows(kernels.block.rows, kernels.vectors);
    Value whole = e.roundDown(args[6], rows);
    carried = e.loop(e.index(0), whole, rows, carried, [&](Value i, ValueRange c) { return rowsAt(i, rows, c); });
    carried = e.loop(whole, args[6], 1, carried, [&](Value i, ValueRange c) { return rowsAt(i, 1, c); });
  }
};

static SmallVector<Type> tileArguments(MLIRContext *context, MemRefType slot, MemRefType key, tile::ModifyOp modify,
                                       tile::MaskOp mask) {
  Type index = IndexType::get(context);
  SmallVector<Type> types{slot, index, index, slot, key, index, index, index, index, index, index, index, index};
  if (modify)
    llvm::append_range(types, modify.getCaptured().getTypes());
  if (mask)
    llvm::append_range(types, mask.getCaptured().getTypes());
  return types;
}

void MicroKernels::callScores(Emit &e, MemRefType key, ValueRange args, bool relative) {
  Values operands(args.take_front(7));
  operands.push_back(arith::ConstantIntOp::create(e.b, e.loc, relative, 1));
  func::CallOp::create(e.b, e.loc, scores(key), operands);
}

// Products of all key rows of the tile, on top of -m or of 0, for what is done row by row behind it: where regions are
// evaluated their code is needed once, not once per accumulator.
func::FuncOp MicroKernels::scores(MemRefType key) {
  MLIRContext *context = module.getContext();
  Type index = IndexType::get(context);
  // slot, head_dim, value_dim, weights, key, row, count, on top of -m?
  SmallVector<Type> types{slotType(), index, index, slotType(), key, index, index, IntegerType::get(context, 1)};
  return build(name("scores"), types, {}, [&](Body &body) {
    Emit &e = body.e;
    TileCode code(*this, body, nullptr, nullptr);
    Values none, start;
    for (int64_t v = 0; v < vectors; ++v)
      start.push_back(e.select(body.args[7], code.minusM(v), e.splat(0)));
    auto rowsAt = [&](Value i, int64_t rows, ValueRange) {
      Values init;
      for (int64_t r = 0; r < rows; ++r)
        llvm::append_range(init, start);
      for (auto [n, x] : llvm::enumerate(code.products(i, rows, init)))
        e.vstore(x, body.args[3], code.place(e.add(i, n / vectors), n % vectors));
      return Values();
    };
    code.forRows(rowsAt, none);
  });
}

// Accumulators start at -m, so that a product ends as the exponent itself and only weights are stored. With regions the
// products are stored first; a score region needs them without -m.
func::FuncOp MicroKernels::softmax(MemRefType key, tile::ModifyOp modify, tile::MaskOp mask) {
  MLIRContext *context = module.getContext();
  return build(name(mask ? "softmax_partial" : "softmax"), tileArguments(context, slotType(), key, modify, mask),
               {IntegerType::get(context, 1)}, [&](Body &body) {
                 Emit &e = body.e;
                 if (modify || mask)
                   callScores(e, key, body.args, /*relative=*/!modify);
                 TileCode code(*this, body, modify, mask);
                 Values sums, reference;
                 for (int64_t v = 0; v < vectors; ++v) {
                   sums.push_back(code.sum(v));
                   reference.push_back(code.minusM(v));
                 }
                 auto weigh = [&](Value x, Value row, int64_t v, Value &sum) {
                   Value keep, s = code.modified(x, v, keep);
                   if (modify)
                     s = e.addf(s, reference[v]);
                   if (isNatural())
                     s = e.mulf(s, e.splat(kLog2e));
                   Value weight = e.exp2(s, block.exp);
                   if (keep) // behind the exponential: no NaN can come of a mask
                     weight = e.select(keep, weight, e.splat(0));
                   sum = e.addf(sum, weight);
                   e.vstore(weight, body.args[3], code.place(row, v));
                 };
                 if (modify || mask)
                   sums = e.loop(e.index(0), body.args[6], 1, sums, [&](Value row, ValueRange carried) {
                     Values sums(carried);
                     code.startRow(row);
                     for (int64_t v = 0; v < vectors; ++v)
                       weigh(e.vload(body.args[3], code.place(row, v)), row, v, sums[v]);
                     return sums;
                   });
                 else
                   code.forRows(
                       [&](Value i, int64_t rows, ValueRange carried) {
                         Values init, sums(carried);
                         for (int64_t r = 0; r < rows; ++r)
                           llvm::append_range(init, reference);
                         for (auto [n, x] : llvm::enumerate(code.products(i, rows, init)))
                           weigh(x, e.add(i, n / vectors), n % vectors, sums[n % vectors]);
                         return sums;
                       },
                       sums);
                 Value high;
                 for (int64_t v = 0; v < vectors; ++v) {
                   e.vstore(sums[v], code.slot(), e.index(2 * queries + v * block.lanes));
                   Value passed = e.cmpf(arith::CmpFPredicate::OGT, sums[v], e.splat(kSumLimit));
                   high = high ? Value(arith::OrIOp::create(e.b, e.loc, high, passed)) : passed;
                 }
                 body.results = {vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, high)};
               });
}

func::FuncOp MicroKernels::raise(MemRefType key, tile::ModifyOp modify, tile::MaskOp mask) {
  MLIRContext *context = module.getContext();
  return build(name(mask ? "raise_partial" : "raise"), tileArguments(context, slotType(), key, modify, mask), {},
               [&](Body &body) {
                 Emit &e = body.e;
                 callScores(e, key, body.args, /*relative=*/false);
                 TileCode code(*this, body, modify, mask);
                 Values most;
                 for (int64_t v = 0; v < vectors; ++v)
                   most.push_back(arith::NegFOp::create(e.b, e.loc, code.minusM(v)));
                 most = e.loop(e.index(0), body.args[6], 1, most, [&](Value i, ValueRange carried) {
                   Values most(carried);
                   code.startRow(i);
                   for (int64_t v = 0; v < vectors; ++v) {
                     Value keep, x = code.modified(e.vload(body.args[3], code.place(i, v)), v, keep);
                     if (keep)
                       x = e.select(keep, x, e.splat(-INFINITY));
                     most[v] = e.select(e.cmpf(arith::CmpFPredicate::OGT, x, most[v]), x, most[v]);
                   }
                   return most;
                 });
                 Values factor;
                 for (int64_t v = 0; v < vectors; ++v) {
                   Value old = arith::NegFOp::create(e.b, e.loc, code.minusM(v));
                   Value none = e.cmpf(arith::CmpFPredicate::OEQ, most[v], e.splat(-INFINITY));
                   Value difference = e.select(none, e.splat(0), e.subf(old, most[v]));
                   if (isNatural())
                     difference = e.mulf(difference, e.splat(kLog2e));
                   // Where the reference stays, nothing is scaled: the polynomial of 2^0 is not quite 1, and there may
                   // be thousands of tiles.
                   Value stays = e.cmpf(arith::CmpFPredicate::OEQ, difference, e.splat(0));
                   Value power = e.exp2(e.atLeast(difference, e.splat(-126)), block.exp);
                   factor.push_back(e.select(stays, e.splat(1), power));
                   e.vstore(arith::NegFOp::create(e.b, e.loc, most[v]), code.slot(), code.lane(v));
                   e.vstore(e.mulf(code.sum(v), factor[v]), code.slot(), e.index(queries + v * block.lanes));
                 }
                 e.loop(e.index(0), code.at.valueDim, 1, [&](Value d) {
                   for (int64_t v = 0; v < vectors; ++v) {
                     Value place = e.add(e.add(code.at.output, e.mul(d, queries)), v * block.lanes);
                     e.vstore(e.mulf(e.vload(code.slot(), place), factor[v]), code.slot(), place);
                   }
                 });
               });
}

} // namespace attn::cpu
