//===- Accumulate.cpp - Register blocks, and the output of a tile ---------===//
#include "MicroKernelsDetail.h"

using namespace mlir;

namespace attn::cpu {

/// acc[r][v] += scalarAt(i, r) * vectorAt(i, v) for i in [0, count): the register block of both products. The vectors
/// are loaded once per step, each scalar is broadcast once and used `vectors` times.
Values MicroKernels::fmaBlock(Emit &e, int64_t rows, ValueRange init, Value count,
                              llvm::function_ref<Value(Value, int64_t)> scalarAt,
                              llvm::function_ref<Value(Value, int64_t)> vectorAt, bool skipZero) {
  return e.loop(e.index(0), count, 1, init, [&](Value i, ValueRange carried) {
    Values acc(carried), vectorsAt, used;
    for (int64_t v = 0; v < vectors; ++v) {
      vectorsAt.push_back(vectorAt(i, v));
      if (skipZero)
        used.push_back(e.cmpf(arith::CmpFPredicate::UNE, vectorsAt[v], e.splat(0)));
    }
    for (int64_t r = 0; r < rows; ++r) {
      Value scalar = e.broadcast(scalarAt(i, r));
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = acc[r * vectors + v];
        Value next = e.fma(scalar, vectorsAt[v], sum);
        sum = skipZero ? e.select(used[v], next, sum) : next;
      }
    }
    return acc;
  });
}

// Output rows [column, column + rows) of O^T += V^T P^T over `count` key rows. These are summed up from 0, which loses
// less than one long sum over all tiles. A NaN must not come of a weight of 0: where there is one in a guarded block,
// the block is done again by `careful`.
void MicroKernels::valueRows(Emit &e, ValueRange args, Value output, Value column, int64_t rows, bool skipZero,
                             llvm::function_ref<void()> careful) {
  Value slot = args[0], weights = args[3], value = args[4], row = args[5], count = args[6];
  auto place = [&](int64_t n) {
    return e.add(e.add(output, e.mul(e.add(column, n / vectors), queries)), n % vectors * block.lanes);
  };
  Values acc(rows * vectors, e.splat(0));
  auto scalarAt = [&](Value i, int64_t r) { return e.load(value, {e.add(row, i), e.add(column, r)}); };
  auto vectorAt = [&](Value i, int64_t v) { return e.vload(weights, e.add(e.mul(i, queries), v * block.lanes)); };
  acc = fmaBlock(e, rows, acc, count, scalarAt, vectorAt, skipZero);
  auto store = [&] {
    for (auto [n, sum] : llvm::enumerate(acc))
      e.vstore(e.addf(e.vload(slot, place(n)), sum), slot, place(n));
  };
  if (!careful)
    return store();
  Value bad;
  for (size_t n = 0; n < acc.size(); n += 2) { // one comparison looks at two vectors
    Value nan = e.cmpf(arith::CmpFPredicate::UNO, acc[n], acc[std::min(n + 1, acc.size() - 1)]);
    bad = bad ? Value(arith::OrIOp::create(e.b, e.loc, bad, nan)) : nan;
  }
  bad = vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, bad);
  e.ifThen(bad, careful, store);
}

// Columns [column, column + columns) with weights of 0 left out, one by one: rare, so it may be slow and shall be
// small.
func::FuncOp MicroKernels::accumulateCarefully(MemRefType value) {
  Type index = IndexType::get(module.getContext());
  // slot, head_dim, value_dim, weights, value, row, count, column, columns
  return build(name("accumulate_careful"), {slotType(), index, index, slotType(), value, index, index, index, index},
               {}, [&](Body &body) {
                 Emit &e = body.e;
                 Layout at = layout(e, dimArgument(e, state.getDim(), body.args[1]), body.args[2]);
                 e.loop(body.args[7], e.add(body.args[7], body.args[8]), 1,
                        [&](Value d) { valueRows(e, body.args, at.output, d, 1, /*skipZero=*/true, nullptr); });
               });
}

func::FuncOp MicroKernels::accumulate(MemRefType value, bool skipZero) {
  Type index = IndexType::get(module.getContext());
  // slot, head_dim, value_dim, weights, value, row, count
  return build(name(skipZero ? "accumulate_partial" : "accumulate"),
               {slotType(), index, index, slotType(), value, index, index}, {}, [&](Body &body) {
                 Emit &e = body.e;
                 Value dim = dimArgument(e, state.getDim(), body.args[1]);
                 Value valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
                 Layout at = layout(e, dim, valueDim);
                 int64_t rows = accumulateRows(block, vectors);
                 auto columns = [&](Value column, int64_t rows) {
                   auto careful = [&] {
                     Values args(body.args);
                     args.append({column, e.index(rows)});
                     func::CallOp::create(e.b, e.loc, accumulateCarefully(value), args);
                   };
                   llvm::function_ref<void()> guard = careful;
                   valueRows(e, body.args, at.output, column, rows, /*skipZero=*/false, skipZero ? guard : nullptr);
                 };
                 Value whole = e.roundDown(valueDim, rows);
                 e.loop(e.index(0), whole, rows, [&](Value d) { columns(d, rows); });
                 if (state.getValueDim() < 0)
                   e.loop(whole, valueDim, 1, [&](Value d) { columns(d, 1); });
                 else if (int64_t rest = state.getValueDim() % rows)
                   columns(whole, rest);
               });
}

} // namespace attn::cpu
