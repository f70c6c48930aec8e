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
    int64_t rows = blockRows(kernels.block, kernels.vectors);
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

// Accumulators start at -m, so that a product ends as the exponent itself and only weights are stored. With a score
// region the score is needed first.
func::FuncOp MicroKernels::softmax(MemRefType key, tile::ModifyOp modify, tile::MaskOp mask) {
  MLIRContext *context = module.getContext();
  return build(name(mask ? "softmax_partial" : "softmax"), tileArguments(context, slotType(), key, modify, mask),
               {IntegerType::get(context, 1)}, [&](Body &body) {
                 Emit &e = body.e;
                 TileCode code(*this, body, modify, mask);
                 Values sums;
                 for (int64_t v = 0; v < vectors; ++v)
                   sums.push_back(code.sum(v));
                 code.forRows(
                     [&](Value i, int64_t rows, ValueRange carried) {
                       Values reference, init;
                       for (int64_t v = 0; v < vectors; ++v)
                         reference.push_back(code.minusM(v));
                       for (int64_t r = 0; r < rows; ++r)
                         for (int64_t v = 0; v < vectors; ++v)
                           init.push_back(modify ? e.splat(0) : reference[v]);
                       Values x = code.products(i, rows, init), sums(carried);
                       for (int64_t r = 0; r < rows; ++r) {
                         Value row = e.add(i, r);
                         code.startRow(row);
                         for (int64_t v = 0; v < vectors; ++v) {
                           Value keep, s = code.modified(x[r * vectors + v], v, keep);
                           if (modify)
                             s = e.mulf(e.addf(s, reference[v]), e.splat(kLog2e));
                           Value weight = e.exp2(s, block.exp);
                           if (keep)
                             weight = e.select(keep, weight,
                                               e.splat(0)); // behind the exponential: no NaN can come of a mask
                           sums[v] = e.addf(sums[v], weight);
                           e.vstore(weight, body.args[3], e.add(e.mul(row, queries), v * block.lanes));
                         }
                       }
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
                 TileCode code(*this, body, modify, mask);
                 Values most;
                 for (int64_t v = 0; v < vectors; ++v)
                   most.push_back(arith::NegFOp::create(e.b, e.loc, code.minusM(v)));
                 most = e.loop(e.index(0), body.args[6], 1, most, [&](Value i, ValueRange carried) {
                   Values s = code.products(i, 1, Values(vectors, e.splat(0))), most(carried);
                   code.startRow(i);
                   for (int64_t v = 0; v < vectors; ++v) {
                     Value keep, x = code.modified(s[v], v, keep);
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
                   if (natural)
                     difference = e.mulf(difference, e.splat(kLog2e));
                   factor.push_back(e.exp2(e.atLeast(difference, e.splat(-126)), block.exp));
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
