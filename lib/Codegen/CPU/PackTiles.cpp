//===- PackTiles.cpp - Rows of bf16 as tiles ------------------------------===//
//
// S^T = K Q^T and O^T = V^T P^T as products of tiles. K is the left factor of the first as it lies in memory. Q, P and
// V are packed: two numbers that meet in one step of a product lie in one word, so that a tile of the right factor is
// 16 words of 16 queries, and one of V^T, 16 columns of words of two keys each.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"
#include "TileInstructions.h"

using namespace mlir;

namespace attn::cpu {

/// Words of two bf16 as f32 vectors, which is what transposes and stores take; `even` comes first in memory. Both have
/// nothing in their lower halves.
static Value pair(Emit &e, Value even, Value odd) {
  auto bits = [&](Value x) -> Value {
    return arith::BitcastOp::create(e.b, e.loc, isa<VectorType>(x.getType()) ? Type(e.ivec) : e.b.getI32Type(), x);
  };
  Value low = bits(even), sixteen = isa<VectorType>(even.getType())
                                        ? e.splatInt(16)
                                        : arith::ConstantIntOp::create(e.b, e.loc, 16, 32).getResult();
  low = arith::ShRUIOp::create(e.b, e.loc, low, sixteen);
  return arith::BitcastOp::create(e.b, e.loc, even.getType(), arith::OrIOp::create(e.b, e.loc, low, bits(odd)));
}

/// 16 words of columns [column, column + 32) of a row, as they lie.
static Value loadWords(Emit &e, Value matrix, Value row, Value column) {
  auto type = VectorType::get({2 * e.lanes}, e.b.getBF16Type());
  Value halves = vector::LoadOp::create(e.b, e.loc, type, matrix, ValueRange{row, column});
  return vector::BitCastOp::create(e.b, e.loc, e.vec, halves);
}

/// The same where the row ends at column `end`, with zeros behind it.
static void storeRest(Emit &e, Value matrix, Value row, Value column, Value end, Value to, Value place) {
  e.vstore(e.splat(0), to, place);
  Value count = e.sub(end, column), even = e.roundDown(count, 2);
  auto element = [&](Value c) { return e.loadWide(matrix, {row, e.add(column, c)}); };
  auto word = [&](Value c) { return e.add(place, e.make<arith::DivUIOp>(c, e.index(2))); };
  e.loop(e.index(0), even, 2, [&](Value c) { e.store(pair(e, element(c), element(e.add(c, 1))), to, word(c)); });
  e.loop(even, count, 1, [&](Value c) { e.store(pair(e, element(c), e.scalar(0)), to, word(c)); });
}

/// A whole row, padded with zeros to a whole number of tiles.
static void copyRow(Emit &e, Value matrix, Value row, Value dim, bool isWhole, Value to, Value place) {
  Value whole = e.roundDown(dim, kTileDepth);
  auto word = [&](Value d) { return e.add(place, e.make<arith::DivUIOp>(d, e.index(2))); };
  e.loop(e.index(0), whole, kTileDepth, [&](Value d) { e.vstore(loadWords(e, matrix, row, d), to, word(d)); });
  if (!isWhole)
    e.ifThen(e.less(whole, dim), [&] { storeRest(e, matrix, row, whole, dim, to, word(whole)); });
}

static Value makeSquare(Emit &e, MemRefType type) {
  auto memory = MemRefType::get({e.lanes * e.lanes}, e.b.getF32Type());
  Value square = memref::AllocaOp::create(e.b, e.loc, memory, e.b.getI64IntegerAttr(64));
  return memref::CastOp::create(e.b, e.loc, type, square);
}

func::FuncOp MicroKernels::packQueries(MemRefType query) {
  Type index = IndexType::get(context()), f32 = Float32Type::get(context());
  // packed, head_dim, query, row, scale
  return build(name("pack_queries"), {slotType(), index, query, index, f32}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value packed = body.args[0], dim = dimArgument(e, state.getDim(), body.args[1]), q = body.args[2];
    Value factor = isNatural() ? body.args[4] : e.mulf(body.args[4], e.scalar(0.25f));
    e.vstore(e.broadcast(factor), packed, e.index(0));
    for (int64_t v = 0; v < vectors; ++v)
      e.vstore(e.splat(0), packed, e.index(kExcess + v * e.lanes));
    Value last = e.sub(e.make<memref::DimOp>(q, e.index(0)), e.index(1)), whole = e.roundDown(dim, kTileDepth);
    Value square = makeSquare(e, slotType());
    func::FuncOp transposed = transpose();
    auto tile = [&](Value j, Value d, llvm::function_ref<void(Value, Value)> fill) {
      e.loop(e.index(0), e.index(kTileRows), 1,
             [&](Value i) { fill(e.min(e.add(body.args[3], e.add(j, i)), last), e.mul(i, e.lanes)); });
      // Tile (d / 32, j / 16) of `vectors` tiles a row.
      Value column = e.add(e.mul(j, kTileRows), tilesOffset());
      Value to = e.add(e.mul(e.make<arith::DivUIOp>(d, e.index(kTileDepth)), kTileFloats * vectors), column);
      func::CallOp::create(e.b, e.loc, transposed,
                           ValueRange{square, e.index(0), e.index(e.lanes), packed, to, e.index(e.lanes)});
    };
    e.loop(e.index(0), e.index(queries), kTileRows, [&](Value j) {
      e.loop(e.index(0), whole, kTileDepth, [&](Value d) {
        tile(j, d, [&](Value row, Value place) { e.vstore(loadWords(e, q, row, d), square, place); });
      });
      if (state.getDim() < 0 || state.getDim() % kTileDepth)
        e.ifThen(e.less(whole, dim), [&] {
          tile(j, whole, [&](Value row, Value place) { storeRest(e, q, row, whole, dim, square, place); });
        });
    });
  });
}

func::FuncOp MicroKernels::unpackQueries() {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, queries
  return build(name("unpack_queries"), {slotType(), index, index, slotType()}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value dim = dimArgument(e, state.getDim(), body.args[1]);
    Layout at = layout(e, dim, dimArgument(e, state.getValueDim(), body.args[2]));
    Value factor = e.vload(body.args[3], e.index(0));
    e.loop(e.index(0), dim, 1, [&](Value d) {
      // Word d / 2 of each query; what comes first is in its lower half.
      Value tile = e.make<arith::DivUIOp>(d, e.index(kTileDepth));
      Value word = e.make<arith::DivUIOp>(e.make<arith::RemUIOp>(d, e.index(kTileDepth)), e.index(2));
      Value isOdd = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, e.make<arith::RemUIOp>(d, e.index(2)), e.index(1));
      for (int64_t v = 0; v < vectors; ++v) {
        Value from = e.add(e.add(e.mul(tile, vectors * kTileFloats), e.mul(word, e.lanes)), tilesOffset());
        Value words = e.vload(body.args[3], e.add(from, v * kTileFloats));
        Value bits = arith::BitcastOp::create(e.b, e.loc, e.ivec, words);
        Value upper = arith::AndIOp::create(e.b, e.loc, bits, e.splatInt(-0x10000));
        Value half = e.select(isOdd, upper, arith::ShLIOp::create(e.b, e.loc, bits, e.splatInt(16)));
        Value number = arith::BitcastOp::create(e.b, e.loc, e.vec, half);
        e.vstore(e.mulf(number, factor), body.args[0], e.add(e.add(at.scaled, e.mul(d, queries)), v * e.lanes));
      }
    });
  });
}

/// Columns [column, column + 16) of a block of 32 keys of which `valid` are there; `load` takes key and column.
static void packColumns(Emit &e, Value valid, Value square, llvm::function_ref<Value(Value)> load,
                        llvm::function_ref<void(Value, Value)> store) {
  Value even = e.roundDown(valid, 2);
  auto place = [&](Value key) { return e.mul(e.make<arith::DivUIOp>(key, e.index(2)), e.lanes); };
  e.loop(e.index(0), even, 2, [&](Value key) { store(pair(e, load(key), load(e.add(key, 1))), place(key)); });
  e.loop(even, valid, 1, [&](Value key) {
    Value last = load(key);
    Value zero = isa<VectorType>(last.getType()) ? e.splat(0) : e.scalar(0);
    store(pair(e, last, zero), place(key));
  });
}

// V^T of the block whose first key is `first`, at `to`, one tile for 16 columns.
void MicroKernels::packValues(Emit &e, Value value, Value first, Value valid, Value valueDim, Value square, Value ring,
                              Value to) {
  Value whole = e.roundDown(valueDim, kTileRows);
  auto clear = [&](Value from) {
    e.loop(e.mul(from, e.lanes), e.index(e.lanes * e.lanes), e.lanes,
           [&](Value i) { e.vstore(e.splat(0), square, i); });
  };
  auto finish = [&](Value d) {
    func::CallOp::create(
        e.b, e.loc, transpose(),
        ValueRange{square, e.index(0), e.index(e.lanes), ring, e.add(to, e.mul(d, kTileRows)), e.index(e.lanes)});
  };
  clear(e.make<arith::DivUIOp>(valid, e.index(2))); // keys that are not there
  e.loop(e.index(0), whole, kTileRows, [&](Value d) {
    packColumns(
        e, valid, square, [&](Value key) { return e.vloadWide(value, {e.add(first, key), d}); },
        [&](Value words, Value place) { e.vstore(words, square, place); });
    finish(d);
  });
  if (state.getValueDim() >= 0 && state.getValueDim() % kTileRows == 0)
    return;
  e.ifThen(e.less(whole, valueDim), [&] {
    clear(e.index(0));
    e.loop(whole, valueDim, 1, [&](Value d) {
      packColumns(
          e, valid, square, [&](Value key) { return e.loadWide(value, {e.add(first, key), d}); },
          [&](Value word, Value place) { e.store(word, square, e.add(place, e.sub(d, whole))); });
    });
    finish(whole);
  });
}

// Blocks of 32 keys are packed when a tile first wants them, each into the place its number has in a ring. A tag says
// which block, counted from 1, lies in a place. Keys are copied where tiles cannot read them as they lie: where rows
// are no whole number of tiles, and in the last block, which has fewer.
func::FuncOp MicroKernels::packKeys(MemRefType key, MemRefType value) {
  Type index = IndexType::get(context());
  // ring, tags, tail, head_dim, value_dim, key, value, row, count
  return build(name("pack_keys"), {slotType(), slotType(), slotType(), index, index, key, value, index, index}, {},
               [&](Body &body) {
                 Emit &e = body.e;
                 ValueRange args = body.args;
                 Value dim = dimArgument(e, state.getDim(), args[3]),
                       valueDim = dimArgument(e, state.getValueDim(), args[4]);
                 Value keys = e.make<memref::DimOp>(args[5], e.index(0)), square = makeSquare(e, slotType());
                 Value width = tileWords(e, dim), end = e.add(args[7], args[8]);
                 e.loop(args[7], end, kTileDepth, [&](Value row) {
                   Value block = e.make<arith::DivUIOp>(row, e.index(kTileDepth)), place = ringPlace(e, block);
                   Value number = arith::IndexCastOp::create(e.b, e.loc, e.b.getI32Type(), e.add(block, 1));
                   Value tag = arith::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), e.load(args[1], place));
                   Value fresh = e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, tag, number);
                   e.ifThen(fresh, [&] {
                     e.store(arith::BitcastOp::create(e.b, e.loc, e.b.getF32Type(), number), args[1], place);
                     Value first = e.mul(block, kTileDepth), valid = e.min(e.sub(keys, first), e.index(kTileDepth));
                     Value to = e.mul(place, ringFloats(e, dim, valueDim));
                     packValues(e, args[6], first, valid, valueDim, square, args[0], to);
                     auto copy = [&](Value memory, Value start) {
                       e.loop(e.index(0), valid, 1, [&](Value i) {
                         copyRow(e, args[5], e.add(first, i), dim, readsKeys(), memory, e.add(start, e.mul(i, width)));
                       });
                     };
                     if (!readsKeys())
                       return copy(args[0], e.add(to, e.mul(e.roundUp(valueDim, kTileRows), kTileRows)));
                     e.ifThen(e.less(valid, e.index(kTileDepth)), [&] { copy(args[2], e.index(0)); });
                   });
                 });
               });
}

Value roundWeights(Emit &e, Value x) {
  Value bits = arith::AddIOp::create(e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, e.ivec, x), e.splatInt(0x8000));
  bits = arith::AndIOp::create(e.b, e.loc, bits, e.splatInt(-0x10000));
  return arith::BitcastOp::create(e.b, e.loc, e.vec, bits);
}

std::pair<Value, Value> MicroKernels::storeWeights(Emit &e, Value pairs, Value row, Value query, Value even,
                                                   Value odd) {
  Value first = roundWeights(e, even), second = odd ? roundWeights(e, odd) : e.splat(0);
  e.vstore(pair(e, first, second), pairs, e.add(e.mul(row, kTileRows / 2), e.mul(query, keyTile / 2)));
  return {first, second};
}

void MicroKernels::clearWeights(Emit &e, Value pairs, Value count) {
  Value from = e.roundUp(count, 2), to = e.roundUp(count, kTileDepth);
  e.loop(from, to, 2, [&](Value row) {
    e.loop(e.index(0), e.index(queries), e.lanes,
           [&](Value query) { storeWeights(e, pairs, row, query, e.splat(0), nullptr); });
  });
}

func::FuncOp MicroKernels::packWeights() {
  Type index = IndexType::get(context());
  // weights, pairs, count, what has the sums that rounding changes
  return build(name("pack_weights"), {slotType(), slotType(), index, slotType()}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value weights = body.args[0], pairs = body.args[1], count = body.args[2], even = e.roundDown(count, 2);
    e.loop(e.index(0), e.index(queries), e.lanes, [&](Value query) {
      auto load = [&](Value row) { return e.vload(weights, e.add(e.mul(row, queries), query)); };
      auto add = [&](Value row, Value sum, bool both) {
        Value first = load(row), second = both ? load(e.add(row, 1)) : e.splat(0);
        auto [firstRounded, secondRounded] = storeWeights(e, pairs, row, query, first, second);
        return Values{e.addf(sum, e.addf(e.subf(firstRounded, first), e.subf(secondRounded, second)))};
      };
      Values sum{e.splat(0)};
      sum = e.loop(e.index(0), even, 2, sum, [&](Value row, ValueRange sum) { return add(row, sum[0], true); });
      sum = e.loop(even, count, 1, sum, [&](Value row, ValueRange sum) { return add(row, sum[0], false); });
      // The sum after this tile, or the excess.
      Value place = e.add(query, exactSums ? kExcess : 2 * queries);
      e.vstore(e.addf(e.vload(body.args[3], place), sum[0]), body.args[3], place);
    });
    clearWeights(e, pairs, count);
  });
}

// The outputs are sums of rounded weights times values: from here on they go with the sum of the weights themselves.
func::FuncOp MicroKernels::settle() {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, queries
  return build(name("settle"), {slotType(), index, index, slotType()}, {}, [&](Body &body) {
    Emit &e = body.e;
    Value slot = body.args[0], dim = dimArgument(e, state.getDim(), body.args[1]);
    Value valueDim = dimArgument(e, state.getValueDim(), body.args[2]);
    Layout at = layout(e, dim, valueDim);
    Values factors;
    for (int64_t v = 0; v < vectors; ++v) {
      Value sum = e.vload(slot, e.index(queries + v * e.lanes)), place = e.index(kExcess + v * e.lanes);
      Value rounded = e.addf(sum, e.vload(body.args[3], place));
      Value none = e.cmpf(arith::CmpFPredicate::OEQ, rounded, e.splat(0));
      factors.push_back(e.select(none, e.splat(1), arith::DivFOp::create(e.b, e.loc, sum, rounded)));
      e.vstore(e.splat(0), body.args[3], place);
    }
    e.loop(e.index(0), valueDim, 1, [&](Value d) {
      for (auto [v, factor] : llvm::enumerate(factors)) {
        Value place = e.add(e.add(at.output, e.mul(d, queries)), v * e.lanes);
        e.vstore(e.mulf(e.vload(slot, place), factor), slot, place);
      }
    });
  });
}

} // namespace attn::cpu
