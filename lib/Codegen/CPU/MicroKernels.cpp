//===- MicroKernels.cpp - Starting and finishing a tile -------------------===//
#include "MicroKernelsDetail.h"
#include <cfloat>

using namespace mlir;

namespace attn::cpu {

MicroKernels::MicroKernels(ModuleOp module, StringRef prefix, RegisterBlock block, tile::StateType state,
                           int64_t keyTile)
    : module(module), prefix(prefix), block(block), state(state), keyTile(keyTile), queries(state.getQueries()),
      vectors(state.getQueries() / block.lanes), packedKeys(block.packedKeys), exactSums(block.exactSums) {}

MemRefType MicroKernels::slotType() {
  MLIRContext *context = module.getContext();
  auto anywhere = StridedLayoutAttr::get(context, ShapedType::kDynamic, {1});
  return MemRefType::get({ShapedType::kDynamic}, Float32Type::get(context), anywhere);
}

std::string MicroKernels::name(StringRef stem) const { return (prefix + "." + stem + "." + Twine(queries)).str(); }

func::FuncOp MicroKernels::build(StringRef name, TypeRange arguments, TypeRange results,
                                 llvm::function_ref<void(Body &)> emit) {
  if (auto found = module.lookupSymbol<func::FuncOp>(name))
    return found;
  OpBuilder b(module.getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto fn = func::FuncOp::create(b, module.getLoc(), name, b.getFunctionType(arguments, results));
  fn.setPrivate();
  fn->setAttr("llvm.linkage", LLVM::LinkageAttr::get(b.getContext(), LLVM::Linkage::Internal));
  fn->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  Block *entry = fn.addEntryBlock();
  b.setInsertionPointToStart(entry);
  Body body{Emit(b, module.getLoc(), block.lanes), entry->getArguments(), {}};
  emit(body);
  func::ReturnOp::create(b, module.getLoc(), body.results);
  return fn;
}

MicroKernels::Layout MicroKernels::layout(Emit &e, Value dim, Value valueDim) const {
  Layout l{queries, dim, valueDim, e.index(kSlotRows * queries), {}};
  l.output = e.add(l.scaled, e.mul(dim, queries));
  return l;
}

//===----------------------------------------------------------------------===//
// Transposition of a square of `lanes` x `lanes`
//===----------------------------------------------------------------------===//

// Exchanges, at distance s, the upper lanes of row i with the lower lanes of row i + s: after all distances the square
// is transposed.
static void butterfly(Emit &e, Values &rows, int64_t s) {
  int64_t n = e.lanes;
  SmallVector<int64_t> low(n), high(n);
  for (int64_t lane = 0; lane < n; ++lane) {
    low[lane] = lane & s ? n + lane - s : lane;
    high[lane] = lane & s ? n + lane : lane + s;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (i & s)
      continue;
    Value a = rows[i], b = rows[i + s];
    rows[i] = vector::ShuffleOp::create(e.b, e.loc, a, b, low);
    rows[i + s] = vector::ShuffleOp::create(e.b, e.loc, a, b, high);
  }
}

// (source, offset, row stride) -> (target, offset, row stride); shared by all shapes, since its shuffles are slow to
// compile.
func::FuncOp MicroKernels::transpose() {
  Type index = IndexType::get(module.getContext());
  return build("attn.transpose" + std::to_string(block.lanes), {slotType(), index, index, slotType(), index, index}, {},
               [&](Body &body) {
                 Emit &e = body.e;
                 Values rows;
                 for (int64_t i = 0; i < block.lanes; ++i)
                   rows.push_back(e.vload(body.args[0], e.add(body.args[1], e.mul(body.args[2], e.index(i)))));
                 for (int64_t s = 1; s < block.lanes; s *= 2)
                   butterfly(e, rows, s);
                 for (int64_t i = 0; i < block.lanes; ++i)
                   e.vstore(rows[i], body.args[3], e.add(body.args[4], e.mul(body.args[5], e.index(i))));
               });
}

//===----------------------------------------------------------------------===//
// widen
//===----------------------------------------------------------------------===//

func::FuncOp MicroKernels::widen(MemRefType rows) {
  Type index = IndexType::get(module.getContext());
  std::string type;
  llvm::raw_string_ostream(type) << rows.getElementType() << "x" << rows.getShape().back();
  // rows, first row, number of rows, columns, floats
  return build(prefix + ".widen." + type, {rows, index, index, index, slotType()}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value from = body.args[0], dim = dimArgument(e, rows.getShape().back(), body.args[3]), to = body.args[4];
    Value whole = e.roundDown(dim, block.lanes);
    e.loop(e.index(0), body.args[2], 1, [&](Value i) {
      Value row = e.add(body.args[1], i), start = e.mul(i, dim);
      e.loop(e.index(0), whole, block.lanes,
             [&](Value d) { e.vstore(e.vloadWide(from, {row, d}), to, e.add(start, d)); });
      e.loop(whole, dim, 1, [&](Value d) { e.store(e.loadWide(from, {row, d}), to, e.add(start, d)); });
    });
  });
}

//===----------------------------------------------------------------------===//
// begin, restart, check
//===----------------------------------------------------------------------===//

// m starts as the score with the query's own key row; 0 where there are no keys at all, or where that score is not
// finite: the mask may exclude this key, and then nothing of it may reach the row.
static void guessReference(Emit &e, Value query, Value key, Value slot, Value row, Value own, Value scale, Value dim,
                           int64_t queries) {
  Value lastQuery = e.sub(e.make<memref::DimOp>(query, e.index(0)), e.index(1));
  Value keys = e.make<memref::DimOp>(key, e.index(0));
  e.loop(e.index(0), e.index(queries), 1, [&](Value i) { e.store(e.scalar(0), slot, i); });
  e.ifThen(e.less(e.index(0), keys), [&] {
    Value lastKey = e.sub(keys, e.index(1));
    Value minus = arith::NegFOp::create(e.b, e.loc, scale);
    e.loop(e.index(0), e.index(queries), 1, [&](Value i) {
      Value q = e.min(e.add(row, i), lastQuery), k = e.max(e.min(e.add(q, own), lastKey), e.index(0));
      Value whole = e.roundDown(dim, e.lanes);
      Values sum = e.loop(e.index(0), whole, e.lanes, {e.splat(0)}, [&](Value d, ValueRange acc) {
        return Values{e.fma(e.vloadWide(query, {q, d}), e.vloadWide(key, {k, d}), acc[0])};
      });
      Value dot =
          vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, sum[0], arith::FastMathFlags::reassoc);
      Values rest = e.loop(whole, dim, 1, {dot}, [&](Value d, ValueRange acc) {
        return Values{e.addf(acc[0], e.mulf(e.loadWide(query, {q, d}), e.loadWide(key, {k, d})))};
      });
      Value guess = e.mulf(rest[0], minus);
      Value finite = e.cmpf(arith::CmpFPredicate::OEQ, e.subf(guess, guess), e.scalar(0));
      e.store(e.select(finite, guess, e.scalar(0)), slot, i);
    });
  });
}

static void zero(Emit &e, Value slot, Value from, Value count) {
  e.loop(e.index(0), count, e.lanes, [&](Value i) { e.vstore(e.splat(0), slot, e.add(from, i)); });
}

func::FuncOp MicroKernels::begin(MemRefType query, MemRefType key) {
  Type index = IndexType::get(module.getContext()), f32 = Float32Type::get(module.getContext());
  // slot, head_dim, value_dim, query, row, key, own, scale
  return build(name("begin"), {slotType(), index, index, query, index, key, index, f32}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value slot = body.args[0], q = body.args[3], row = body.args[4], scale = body.args[7];
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    if (!isNatural()) // quarters of an exponent
      scale = e.mulf(scale, e.scalar(0.25f));
    if (isSoftmax())
      guessReference(e, q, body.args[5], slot, row, body.args[6], scale, dim, queries);
    if (!isNatural())
      e.loop(e.index(0), e.index(queries), block.lanes, [&](Value j) { // scores above the largest shall show as huge
        e.vstore(e.roundUp(e.atLeast(e.vload(slot, j), e.splat(-kLargestScore))), slot, j);
      });
    zero(e, slot, e.index(queries), e.index(2 * queries));
    zero(e, slot, at.output, e.mul(valueDim, queries));
    if (packedKeys) // see unpackQueries
      return;

    Value last = e.sub(e.make<memref::DimOp>(q, e.index(0)), e.index(1));
    Value whole = e.roundDown(dim, block.lanes), factor = e.broadcast(scale);
    Value square = memref::AllocaOp::create(e.b, e.loc, MemRefType::get({block.lanes * block.lanes}, f32));
    square = memref::CastOp::create(e.b, e.loc, slotType(), square);
    func::FuncOp transposed = transpose();
    e.loop(e.index(0), e.index(queries), block.lanes, [&](Value j) {
      e.loop(e.index(0), whole, block.lanes, [&](Value d) {
        e.loop(e.index(0), e.index(block.lanes), 1, [&](Value i) {
          Value r = e.min(e.add(row, e.add(j, i)), last);
          e.vstore(e.mulf(e.vloadWide(q, {r, d}), factor), square, e.mul(i, block.lanes));
        });
        Value to = e.add(e.add(at.scaled, e.mul(d, queries)), j);
        func::CallOp::create(e.b, e.loc, transposed,
                             ValueRange{square, e.index(0), e.index(block.lanes), slot, to, e.index(queries)});
      });
      e.loop(whole, dim, 1, [&](Value d) {
        e.loop(e.index(0), e.index(block.lanes), 1, [&](Value i) {
          Value r = e.min(e.add(row, e.add(j, i)), last);
          e.store(e.mulf(e.loadWide(q, {r, d}), scale), slot, e.add(e.add(at.scaled, e.mul(d, queries)), e.add(j, i)));
        });
      });
    });
  });
}

func::FuncOp MicroKernels::clear() {
  Type index = IndexType::get(module.getContext());
  return build(name("clear"), {slotType(), index, index}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    zero(e, body.args[0], e.index(0), e.index(kSlotRows * queries));
    zero(e, body.args[0], layout(e, dim, valueDim).output, e.mul(valueDim, queries));
  });
}

func::FuncOp MicroKernels::restart() {
  Type index = IndexType::get(module.getContext());
  return build(name("restart"), {slotType(), index, index}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    for (int64_t v = 0; v < vectors; ++v)
      e.vstore(e.splat(INFINITY), body.args[0], e.index(v * block.lanes)); // -m
    zero(e, body.args[0], e.index(queries), e.index(2 * queries));
    zero(e, body.args[0], at.output, e.mul(valueDim, queries));
  });
}

func::FuncOp MicroKernels::check() {
  Type i1 = IntegerType::get(module.getContext(), 1), index = IndexType::get(module.getContext());
  // slot, head_dim, value_dim
  return build(name("check"), {slotType(), index, index}, {i1}, [&](Body &body) {
    Emit &e = body.e;
    Value slot = body.args[0], lost;
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    Values zeros(vectors, e.splat(0)); // 0 times the outputs: NaN where one is not finite
    zeros = e.loop(e.index(0), valueDim, 1, zeros, [&](Value d, ValueRange carried) {
      Values next;
      Value row = e.add(at.output, e.mul(d, queries));
      for (auto [v, zero] : llvm::enumerate(carried))
        next.push_back(e.fma(e.vload(slot, e.add(row, v * block.lanes)), e.splat(0), zero));
      return next;
    });
    for (auto [v, zero] : llvm::enumerate(zeros)) {
      Value l = e.addf(e.vload(slot, e.index(queries + v * block.lanes)), zero);
      // Natural units: the distance from a far reference is rounded, so that weights miss digits long before they are
      // 0.
      Value low = isSoftmax() ? e.cmpf(arith::CmpFPredicate::ULT, l, e.splat(isNatural() ? 0x1p-8f : 0x1p-60f))
                              : e.cmpf(arith::CmpFPredicate::UNO, zero, zero);
      lost = lost ? Value(arith::OrIOp::create(e.b, e.loc, lost, low)) : low;
    }
    body.results = {vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::OR, lost)};
  });
}

//===----------------------------------------------------------------------===//
// finish
//===----------------------------------------------------------------------===//

// (4 m + log2 l) ln 2 for l > 0. The exponent of l goes to m first, where the sum is exact: both may be much larger
// than their sum.
static Value logOfPowers(Emit &e, Value minusM, Value l) {
  Value bits = arith::BitcastOp::create(e.b, e.loc, e.ivec, l);
  Value exponent = arith::ShRSIOp::create(e.b, e.loc, arith::SubIOp::create(e.b, e.loc, bits, e.splatInt(0x3f3504f3)),
                                          e.splatInt(23)); // of l / sqrt(1/2)
  Value fraction = arith::SubIOp::create(e.b, e.loc, bits, arith::ShLIOp::create(e.b, e.loc, exponent, e.splatInt(23)));
  Value log = math::LogOp::create(e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, e.vec, fraction));
  Value m = e.subf(e.mulf(arith::SIToFPOp::create(e.b, e.loc, e.vec, exponent), e.splat(0.25f)), minusM);
  return e.fma(m, e.splat(2.77258872f), e.fma(m, e.splat(6.1904672e-9f), log)); // 4 ln 2 in two parts
}

// log-sum-exp in natural units; -inf of no key, NaN of a NaN.
static Value logSumExp(Emit &e, Value minusM, Value l, bool natural) {
  Value lse = natural ? e.subf(math::LogOp::create(e.b, e.loc, l), minusM) : logOfPowers(e, minusM, l);
  Value none = e.cmpf(arith::CmpFPredicate::OEQ, l, e.splat(0)),
        some = e.cmpf(arith::CmpFPredicate::OGT, l, e.splat(0));
  return e.select(none, e.splat(-INFINITY), e.select(some, lse, l));
}

// Of the lanes from query j on; 0 where the sum is.
static void divideOutput(Emit &e, Value slot, const MicroKernels::Layout &at, Value j, Value sum) {
  Value none = e.cmpf(arith::CmpFPredicate::OEQ, sum, e.splat(0));
  Value inverse = e.select(none, e.splat(0), arith::DivFOp::create(e.b, e.loc, e.splat(1), sum));
  e.loop(e.index(0), at.valueDim, 1, [&](Value d) {
    Value place = e.add(e.add(at.output, e.mul(d, at.queries)), j);
    e.vstore(e.mulf(e.vload(slot, place), inverse), slot, place);
  });
}

func::FuncOp MicroKernels::finish(MemRefType output, MemRefType lse) {
  Type index = IndexType::get(module.getContext()), f32 = Float32Type::get(module.getContext());
  SmallVector<Type> types{slotType(), index, index, output, index};
  if (lse)
    types.push_back(lse);
  return build(name("finish"), types, {}, [&](Body &body) {
    Emit &e = body.e;
    Value slot = body.args[0], out = body.args[3], row = body.args[4];
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    Value rows = e.make<memref::DimOp>(out, e.index(0)), whole = e.roundDown(valueDim, block.lanes);
    Value square = memref::AllocaOp::create(e.b, e.loc, MemRefType::get({block.lanes * block.lanes}, f32));
    square = memref::CastOp::create(e.b, e.loc, slotType(), square);
    func::FuncOp transposed = transpose();
    e.loop(e.index(0), e.index(queries), block.lanes, [&](Value j) {
      Value l = e.vload(slot, e.add(j, queries));
      if (isSoftmax())
        divideOutput(e, slot, at, j, l);
      Value left = e.sub(rows, e.add(row, j)), valid = e.min(left, e.index(block.lanes));
      e.loop(e.index(0), whole, block.lanes, [&](Value d) {
        Value from = e.add(e.add(at.output, e.mul(d, queries)), j);
        func::CallOp::create(e.b, e.loc, transposed,
                             ValueRange{slot, from, e.index(queries), square, e.index(0), e.index(block.lanes)});
        e.loop(e.index(0), valid, 1, [&](Value i) {
          e.vstoreNarrow(e.vload(square, e.mul(i, block.lanes)), out, {e.add(row, e.add(j, i)), d});
        });
      });
      e.loop(whole, valueDim, 1, [&](Value d) {
        e.loop(e.index(0), valid, 1, [&](Value i) {
          Value x = e.load(slot, e.add(e.add(at.output, e.mul(d, queries)), e.add(j, i)));
          e.storeNarrow(x, out, {e.add(row, e.add(j, i)), d});
        });
      });
      if (!lse)
        return;
      e.vstore(logSumExp(e, e.vload(slot, j), l, isNatural()), square, e.index(0));
      e.loop(e.index(0), valid, 1, [&](Value i) { e.store(e.load(square, i), body.args[5], e.add(row, e.add(j, i))); });
    });
  });
}

func::FuncOp MicroKernels::finishPartial(MemRefType partials) {
  Type index = IndexType::get(module.getContext());
  // slot, head_dim, value_dim, partials, row, rows
  return build(name("finish_partial"), {slotType(), index, index, partials, index, index}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value slot = body.args[0], to = body.args[3], row = body.args[4];
    Value dim = dimArgument(e, state.getDim(), body.args[1]),
          valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    Value pitch = e.add(valueDim, 2), valid = e.min(e.sub(body.args[5], row), e.index(queries));
    e.loop(e.index(0), valid, 1, [&](Value i) {
      Value start = e.mul(e.add(row, i), pitch);
      e.loop(e.index(0), valueDim, 1, [&](Value d) {
        e.store(e.load(slot, e.add(e.add(at.output, e.mul(d, queries)), i)), to, e.add(start, d));
      });
      Value m = arith::NegFOp::create(e.b, e.loc, e.load(slot, i));
      e.store(m, to, e.add(start, valueDim));
      e.store(e.load(slot, e.add(i, queries)), to, e.add(e.add(start, valueDim), 1));
    });
  });
}

} // namespace attn::cpu
