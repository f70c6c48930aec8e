//===- TileKernels.cpp - Scores and weights of a tile ---------------------===//
#include "Lanes.h"
#include "MicroKernelsDetail.h"
#include <cfloat>

using namespace mlir;

namespace attn::cpu {

static constexpr float kQuarterLog2e = 0.360673760222240853f;

// What `softmax` and `raise` share: arguments and the scores of a block of key rows.
// slot, head_dim, value_dim, weights, key, row, count, then, where there is a region: batch, head, position of the
// first query, position of the tile's first key, numbers of queries and keys, captured of modify, captured of mask;
// then what `addRelative` takes, or where scores are read: row of the first query, scale. Key rows are then those of
// scores. Code is for all vectors of queries, or, where it shall be small, for the one whose first query is `only`.
struct MicroKernels::TileCode {
  MicroKernels &kernels;
  Emit &e;
  ValueRange args;
  Value only;
  int64_t vectors;
  std::optional<LaneRegion> modify, mask;
  Layout at;

  TileCode(MicroKernels &kernels, Body &body, const ScoreChain &chain, Value only = {})
      : kernels(kernels), e(body.e), args(body.args), only(only), vectors(only ? 1 : kernels.vectors) {
    auto dim = [&](int64_t known, Value argument) { return known >= 0 ? e.index(known) : argument; };
    at = kernels.layout(e, dim(kernels.state.getDim(), args[1]), dim(kernels.state.getValueDim(), args[2]));
    size_t captured = 13;
    auto region = [&](auto op, std::optional<LaneRegion> &code) {
      if (!op)
        return;
      ValueRange own = args.slice(captured, op.getCaptured().size());
      captured += own.size();
      Value query = only ? e.add(args[9], e.mul(only, int64_t(op.getStep()))) : args[9];
      LaneRegion::Place place{args[7],  args[8],  query, args[10], int64_t(op.getStep()), op.getNonnegative(),
                              args[11], args[12], own};
      code.emplace(e, op.getBody().front(), place, vectors);
      code->prepare();
    };
    region(chain.modify, modify);
    region(chain.mask, mask);
  }

  Value slot() { return args[0]; }
  Value lane(int64_t v) { return only ? only : e.index(v * e.lanes); }
  Value minusM(int64_t v) { return e.vload(slot(), lane(v)); }
  /// Where the weights of a key row of the tile lie.
  Value place(Value row, int64_t v) { return e.add(e.mul(row, kernels.queries), lane(v)); }
  Values sums() {
    Values all;
    for (int64_t v = 0; v < vectors; ++v)
      all.push_back(sum(v));
    return all;
  }
  Value sum(int64_t v) { return e.vload(slot(), e.add(lane(v), kernels.queries)); }

  /// K Q^T for key rows row + i .. + rows of the tile.
  Values products(Value i, int64_t rows) {
    Values keyRows;
    for (int64_t r = 0; r < rows; ++r)
      keyRows.push_back(e.add(e.add(args[5], i), r));
    return kernels.fmaBlock(
        e, rows, Values(rows * kernels.vectors, e.splat(0)), at.dim,
        [&](Value d, int64_t r) { return e.load(args[4], {keyRows[r], d}); },
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

  /// The score as it takes part: clamped from above, -inf where it is masked.
  Value clamped(Value x, int64_t v) {
    Value keep, s = modified(x, v, keep);
    if (!modify) {
      float largest = kernels.isNatural() ? FLT_MAX : kLargestScore;
      s = e.atMost(s, e.splat(largest));
      s = e.select(e.cmpf(arith::CmpFPredicate::OLT, s, e.splat(-largest)), e.splat(-INFINITY), s);
    }
    return keep ? e.select(keep, s, e.splat(-INFINITY)) : s;
  }

  /// What `weight` needs of the state, by vector.
  SmallVector<Reference> references() {
    SmallVector<Reference> all;
    for (int64_t v = 0; v < vectors; ++v)
      all.push_back(e.reference(kernels.isNatural() ? e.splat(0) : minusM(v), kernels.block.exp));
    return all;
  }

  /// The weight of a scaled product of the current key row. Masked behind the exponential: no NaN can come of a mask.
  Value weight(Value x, int64_t v, const Reference &reference) {
    Value keep, s = modified(x, v, keep);
    if (kernels.isNatural())
      s = e.mulf(e.addf(s, minusM(v)), e.splat(kQuarterLog2e));
    Value weight = e.exp2(s, reference, kernels.block.exp);
    return keep ? e.select(keep, weight, e.splat(0)) : weight;
  }

  /// Leaves the scores that take part in place of the products; answers the largest so far.
  Values largest() {
    Values most;
    for (int64_t v = 0; v < vectors; ++v)
      most.push_back(arith::NegFOp::create(e.b, e.loc, minusM(v)));
    return e.loop(e.index(0), args[6], 1, most, [&](Value row, ValueRange carried) {
      Values most(carried);
      startRow(row);
      for (int64_t v = 0; v < vectors; ++v) {
        Value x = clamped(e.vload(args[3], place(row, v)), v);
        e.vstore(x, args[3], place(row, v));
        most[v] = e.select(e.cmpf(arith::CmpFPredicate::OGT, x, most[v]), x, most[v]);
      }
      return most;
    });
  }

  /// Gives the state another reference; answers the sums in it. What weighs 2^40 in the old one may be nothing in the
  /// new one, and one factor is not that small: there are two.
  Values rescale(ValueRange minusMs) {
    Values sums, factors, rests;
    Reference zero = e.reference(e.splat(0), kernels.block.exp);
    for (auto [v, next] : llvm::enumerate(minusMs)) {
      Value difference = e.subf(next, minusM(v)), least = e.splat(-24);
      if (kernels.isNatural())
        difference = e.mulf(difference, e.splat(kQuarterLog2e));
      // Both may be -inf, of rows that have kept nothing yet.
      difference = e.select(e.cmpf(arith::CmpFPredicate::OEQ, next, minusM(v)), e.splat(0), difference);
      Value first = e.atLeast(difference, least), rest = e.atLeast(e.subf(difference, first), least);
      factors.push_back(e.exp2(first, zero, kernels.block.exp));
      rests.push_back(e.exp2(rest, zero, kernels.block.exp));
      sums.push_back(e.mulf(e.mulf(sum(v), factors[v]), rests[v]));
      e.vstore(next, slot(), lane(v));
    }
    e.loop(e.index(0), at.valueDim, 1, [&](Value d) {
      for (auto [v, factor] : llvm::enumerate(factors)) {
        Value place = e.add(e.add(at.output, e.mul(d, kernels.queries)), lane(v));
        e.vstore(e.mulf(e.mulf(e.vload(slot(), place), factor), rests[v]), slot(), place);
      }
    });
    return sums;
  }

  Values add(ValueRange x, ValueRange y) {
    Values sums;
    for (auto [a, b] : llvm::zip_equal(x, y))
      sums.push_back(e.addf(a, b));
    return sums;
  }

  /// The sums of the weights of all key rows. Equal weights are rounded the same way in a long sum, so eight are added
  /// to each other first.
  Values sumRows(llvm::function_ref<void(Value)> start, llvm::function_ref<Value(Value, int64_t)> weightAt) {
    Values zeros(vectors, e.splat(0));
    return e.loop(e.index(0), args[6], 8, zeros, [&](Value first, ValueRange sums) {
      Value end = e.min(e.add(first, 8), args[6]);
      return add(sums, e.loop(first, end, 1, zeros, [&](Value row, ValueRange carried) {
        Values weights;
        start(row);
        for (int64_t v = 0; v < vectors; ++v)
          weights.push_back(weightAt(row, v));
        return add(carried, weights);
      }));
    });
  }

  /// Has some weight of the tile, whose sums are given, shown the reference to be far too low? In natural units its
  /// distance is rounded, so that it has to lie nearer.
  Value isHigh(ValueRange sums) {
    Value high, limit = e.splat(kernels.isNatural() ? 0x1p8f * float(kernels.keyTile) : 0x1p40f);
    for (auto [v, next] : llvm::enumerate(sums)) {
      Value passed = e.cmpf(arith::CmpFPredicate::OGT, next, limit);
      high = high ? Value(arith::OrIOp::create(e.b, e.loc, high, passed)) : passed;
    }
    return vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, high);
  }

  void storeNext(ValueRange sums) {
    for (auto [v, next] : llvm::enumerate(sums))
      e.vstore(next, slot(), e.add(lane(v), 2 * kernels.queries));
  }

  void forRows(llvm::function_ref<Values(Value, int64_t, ValueRange)> rowsAt, Values &carried) {
    // Beside packed tiles this is what stands behind them: rare, so it shall be small.
    int64_t rows = kernels.packedKeys ? 2 : getBlockRows(kernels.block.rows, kernels.vectors);
    Value whole = e.roundDown(args[6], rows);
    carried = e.loop(e.index(0), whole, rows, carried, [&](Value i, ValueRange c) { return rowsAt(i, rows, c); });
    carried = e.loop(whole, args[6], 1, carried, [&](Value i, ValueRange c) { return rowsAt(i, 1, c); });
  }
};

SmallVector<Type> MicroKernels::tileArguments(MemRefType key, const ScoreChain &chain) {
  Type index = IndexType::get(context());
  SmallVector<Type> types(13, index);
  types[0] = types[3] = slotType();
  types[4] = key;
  if (tile::ModifyOp modify = chain.modify)
    llvm::append_range(types, modify.getCaptured().getTypes());
  if (tile::MaskOp mask = chain.mask)
    llvm::append_range(types, mask.getCaptured().getTypes());
  llvm::append_range(types, productArguments(chain));
  return types;
}

SmallVector<Type> MicroKernels::productArguments(const ScoreChain &chain) {
  if (chain.read)
    return {IndexType::get(context()), Float32Type::get(context())};
  return relativeArguments(chain.relative);
}

// Rows of a matrix become columns of the tile: a square at a time where they lie one element behind the other.
func::FuncOp MicroKernels::readScores(MemRefType scores) {
  Type index = IndexType::get(context()), f32 = Float32Type::get(context());
  // slot, head_dim, value_dim, weights, scores, key, count, query, scale
  SmallVector<Type> types{slotType(), index, index, slotType(), scores, index, index, index, f32};
  return build(name("read_scores"), types, {}, [&](Body &body) {
    Emit &e = body.e;
    Value to = body.args[3], from = body.args[4], key = body.args[5], count = body.args[6], scale = body.args[8];
    if (!isNatural()) // quarters of an exponent
      scale = e.mulf(scale, e.scalar(0.25f));
    Value last = e.sub(e.make<memref::DimOp>(from, e.index(0)), e.index(1)), factor = e.broadcast(scale);
    auto row = [&](Value q) { return e.min(e.add(body.args[7], q), last); };
    bool inSquares = scores.getStridesAndOffset().first.back() == 1;
    Value whole = inSquares ? e.roundDown(count, block.lanes) : e.index(0);
    Value square = memref::AllocaOp::create(e.b, e.loc, MemRefType::get({block.lanes * block.lanes}, f32));
    square = memref::CastOp::create(e.b, e.loc, slotType(), square);
    func::FuncOp transposed = transpose();
    e.loop(e.index(0), e.index(queries), block.lanes, [&](Value q) {
      if (inSquares)
        e.loop(e.index(0), whole, block.lanes, [&](Value c) {
          e.loop(e.index(0), e.index(block.lanes), 1, [&](Value i) {
            Value s = e.vloadWide(from, {row(e.add(q, i)), e.add(key, c)});
            e.vstore(e.mulf(s, factor), square, e.mul(i, block.lanes));
          });
          Value place = e.add(e.mul(c, queries), q);
          func::CallOp::create(e.b, e.loc, transposed,
                               ValueRange{square, e.index(0), e.index(block.lanes), to, place, e.index(queries)});
        });
      e.loop(e.index(0), e.index(block.lanes), 1, [&](Value i) {
        Value r = row(e.add(q, i));
        e.loop(whole, count, 1, [&](Value c) {
          Value place = e.add(e.add(e.mul(c, queries), q), i);
          e.store(e.mulf(e.loadWide(from, {r, e.add(key, c)}), scale), to, place);
        });
      });
    });
  });
}

// Products of all key rows of the tile, for what is done row by row behind them: where regions are evaluated their code
// is needed once, not once per accumulator.
func::FuncOp MicroKernels::scores(MemRefType key, const ScoreChain &chain) {
  if (chain.read)
    return readScores(key);
  tile::RelativeOp relative = chain.relative;
  Type index = IndexType::get(module.getContext());
  // slot, head_dim, value_dim, weights, key, row, count
  SmallVector<Type> types{slotType(), index, index, slotType(), key, index, index};
  llvm::append_range(types, relativeArguments(relative));
  return build(name("scores"), types, {}, [&](Body &body) {
    Emit &e = body.e;
    TileCode code(*this, body, {});
    Values none;
    auto rowsAt = [&](Value i, int64_t rows, ValueRange) {
      for (auto [n, x] : llvm::enumerate(code.products(i, rows)))
        e.vstore(x, body.args[3], code.place(e.add(i, n / vectors), n % vectors));
      return Values();
    };
    code.forRows(rowsAt, none);
    if (!relative)
      return;
    Values args(body.args.take_front(4));
    llvm::append_range(args, body.args.drop_front(6));
    func::CallOp::create(e.b, e.loc, addRelative(relative), args);
  });
}

void MicroKernels::callScores(Body &body, MemRefType key, const ScoreChain &chain) {
  Values args(body.args.take_front(7));
  llvm::append_range(args, body.args.take_back(productArguments(chain).size()));
  func::CallOp::create(body.e.b, body.e.loc, scores(key, chain), args);
}

// Without regions only weights are stored; else the products are stored first.
func::FuncOp MicroKernels::softmax(MemRefType key, const ScoreChain &chain) {
  return build(name(chain.mask ? "softmax_partial" : "softmax"), tileArguments(key, chain),
               {IntegerType::get(context(), 1)}, [&](Body &body) {
                 Emit &e = body.e;
                 if (chain.rowByRow())
                   callScores(body, key, chain);
                 TileCode code(*this, body, chain);
                 Values sums(vectors, e.splat(0));
                 SmallVector<Reference> references = code.references();
                 auto weigh = [&](Value x, Value row, int64_t v) {
                   Value weight = code.weight(x, v, references[v]);
                   e.vstore(weight, body.args[3], code.place(row, v));
                   return weight;
                 };
                 auto oneRow = [&](Value row, int64_t v) {
                   return weigh(e.vload(body.args[3], code.place(row, v)), row, v);
                 };
                 auto block = [&](Value i, int64_t rows, ValueRange carried) {
                   Values own(vectors);
                   for (auto [n, x] : llvm::enumerate(code.products(i, rows))) {
                     Value weight = weigh(x, e.add(i, n / vectors), n % vectors), &sum = own[n % vectors];
                     sum = sum ? e.addf(sum, weight) : weight;
                   }
                   return code.add(carried, own);
                 };
                 if (chain.rowByRow())
                   sums = code.sumRows([&](Value row) { code.startRow(row); }, oneRow);
                 else
                   code.forRows(block, sums);
                 body.results = {code.isHigh(sums)};
                 code.storeNext(code.add(code.sums(), sums));
               });
}

// The products come unscaled, as tiles leave them.
func::FuncOp MicroKernels::tileSoftmax(MemRefType key, const ScoreChain &chain) {
  SmallVector<Type> types = tileArguments(key, chain);
  types.append(4, slotType()); // pairs, queries, ring, tail
  return build(
      name(chain.mask ? "tile_softmax_partial" : "tile_softmax"), types, {IntegerType::get(context(), 1)},
      [&](Body &body) {
        Emit &e = body.e;
        ValueRange args = body.args, own = args.take_back(4);
        Value count = args[6], even = e.roundDown(count, 2);
        func::CallOp::create(e.b, e.loc, block.amx ? tileScores(key) : pairScores(key),
                             ValueRange{args[3], own[1], own[2], own[3], args[1], args[2], args[4], args[5], count});
        TileCode code(*this, body, chain);
        SmallVector<Reference> references = code.references();
        Value factor = e.vload(own[1], e.index(0));
        auto weights = [&](Value row) {
          Values all;
          code.startRow(row);
          for (int64_t v = 0; v < vectors; ++v)
            all.push_back(code.weight(e.mulf(e.vload(args[3], code.place(row, v)), factor), v, references[v]));
          return all;
        };
        // Of the rounded weights, then of the weights.
        auto add = [&](Value row, ValueRange carried, bool both) {
          Values sums(carried), one = weights(row), other = both ? weights(e.add(row, 1)) : Values();
          for (int64_t v = 0; v < vectors; ++v) {
            auto [first, second] =
                storeWeights(e, own[0], row, e.index(v * e.lanes), one[v], both ? other[v] : nullptr);
            sums[v] = e.addf(sums[v], both ? e.addf(first, second) : first);
            if (exactSums)
              sums[vectors + v] = e.addf(sums[vectors + v], both ? e.addf(one[v], other[v]) : one[v]);
          }
          return sums;
        };
        Values zeros(exactSums ? 2 * vectors : vectors, e.splat(0));
        Values sums = e.loop(e.index(0), even, 8, zeros, [&](Value first, ValueRange sums) {
          return code.add(sums, e.loop(first, e.min(e.add(first, 8), even), 2, zeros,
                                       [&](Value row, ValueRange sums) { return add(row, sums, true); }));
        });
        sums = e.loop(even, count, 1, sums, [&](Value row, ValueRange sums) { return add(row, sums, false); });
        clearWeights(e, own[0], count);
        ArrayRef<Value> rounded = ArrayRef(sums).take_front(vectors), exact = ArrayRef(sums).take_back(vectors);
        Value high = code.isHigh(exact);
        for (int64_t v = 0; exactSums && v < vectors; ++v) {
          Value place = e.index(kExcess + v * e.lanes), before = e.vload(own[1], place);
          Value after = e.addf(before, e.subf(rounded[v], exact[v]));
          e.vstore(e.select(high, before, after), own[1], place);
        }
        body.results = {high};
        code.storeNext(code.add(code.sums(), exact));
      });
}

// Row by row: what is masked is left out behind the function, as no NaN may come of a mask.
func::FuncOp MicroKernels::weigh(MemRefType key, const ScoreChain &chain) {
  return build(name(chain.mask ? "weigh_partial" : "weigh"), tileArguments(key, chain), {}, [&](Body &body) {
    Emit &e = body.e;
    callScores(body, key, chain);
    TileCode code(*this, body, chain);
    Reference zero = e.reference(e.splat(0), block.exp);
    auto weightOf = [&](Value s) {
      if (state.getUnit() == tile::ScoreUnit::Weight)
        return s;
      Value away = e.exp2(e.mulf(s, e.splat(-kQuarterLog2e)), zero, block.exp);
      return arith::DivFOp::create(e.b, e.loc, e.splat(1), e.addf(e.splat(1), away)).getResult();
    };
    e.loop(e.index(0), body.args[6], 1, [&](Value row) {
      code.startRow(row);
      for (int64_t v = 0; v < vectors; ++v) {
        Value s = code.clamped(e.vload(body.args[3], code.place(row, v)), v);
        Value masked = e.cmpf(arith::CmpFPredicate::OEQ, s, e.splat(-INFINITY));
        e.vstore(e.select(masked, e.splat(0), weightOf(s)), body.args[3], code.place(row, v));
      }
    });
  });
}

// As a score that is larger than all so far raises the reference, here exactly. The reference of the logit is rounded;
// its weight, e to the rest, makes up for that.
func::FuncOp MicroKernels::sink() {
  Type index = IndexType::get(context()), f32 = Float32Type::get(context());
  // slot, head_dim, value_dim, logit
  return build(name("sink"), {slotType(), index, index, f32}, {}, [&](Body &body) {
    Emit &e = body.e;
    TileCode code(*this, body, {});
    constexpr double kUnit = 2.772588722239781; // 4 ln 2
    constexpr float kHigh = kUnit, kLow = kUnit - double(kHigh);
    Value logit = e.atMost(e.broadcast(body.args[3]), e.splat(FLT_MAX)), at = logit, weight = e.splat(1);
    Reference zero = e.reference(e.splat(0), block.exp);
    if (!isNatural()) {
      at = e.atMost(e.mulf(logit, e.splat(kQuarterLog2e)), e.splat(kLargestScore));
      Value rest = e.fma(at, e.splat(-kLow), e.fma(at, e.splat(-kHigh), logit));
      rest = e.atMost(e.atLeast(rest, e.splat(-1)), e.splat(1));
      weight = e.exp2(e.mulf(rest, e.splat(kQuarterLog2e)), zero, block.exp);
    }
    Value none = e.cmpf(arith::CmpFPredicate::OEQ, logit, e.splat(-INFINITY));
    Values minusM;
    for (int64_t v = 0; v < vectors; ++v)
      minusM.push_back(e.atMost(code.minusM(v), arith::NegFOp::create(e.b, e.loc, at)));
    for (auto [v, sum] : llvm::enumerate(code.rescale(minusM))) {
      Value distance = e.addf(at, minusM[v]);
      if (isNatural())
        distance = e.mulf(distance, e.splat(kQuarterLog2e));
      Value own = e.mulf(e.exp2(distance, zero, block.exp), weight);
      e.vstore(e.addf(sum, e.select(none, e.splat(0), own)), code.slot(), e.index(queries + v * block.lanes));
    }
  });
}

// Twice over the stored scores: the largest, then the weights. Nothing of a masked score is left: it is -inf. Vector by
// vector, as it is rare and shall be small.
func::FuncOp MicroKernels::onlineSoftmax(MemRefType key, const ScoreChain &chain) {
  return build(name(chain.mask ? "online_softmax_partial" : "online_softmax"), tileArguments(key, chain), {},
               [&](Body &body) {
                 Emit &e = body.e;
                 callScores(body, key, chain);
                 e.loop(e.index(0), e.index(queries), block.lanes, [&](Value first) {
                   TileCode code(*this, body, chain, first);
                   Value most = code.largest()[0];
                   Value minusM = arith::NegFOp::create(e.b, e.loc, isNatural() ? most : e.roundUp(most));
                   Values sums = code.rescale(minusM);
                   Reference zero = e.reference(e.splat(0), block.exp);
                   auto weigh = [&](Value row, int64_t v) {
                     Value x = e.vload(body.args[3], code.place(row, v)), distance = e.addf(x, minusM);
                     if (isNatural())
                       distance = e.mulf(distance, e.splat(kQuarterLog2e));
                     Value masked = e.cmpf(arith::CmpFPredicate::OEQ, x, e.splat(-INFINITY));
                     Value weight = e.select(masked, e.splat(0), e.exp2(distance, zero, block.exp));
                     e.vstore(weight, body.args[3], code.place(row, v));
                     return weight;
                   };
                   code.storeNext(code.add(sums, code.sumRows([](Value) {}, weigh)));
                 });
               });
}

} // namespace attn::cpu
