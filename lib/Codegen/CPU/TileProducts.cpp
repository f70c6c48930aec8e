//===- TileProducts.cpp - Scores and outputs by AMX -----------------------===//
#include "MicroKernelsDetail.h"
#include "TileInstructions.h"

using namespace mlir;

namespace attn::cpu {

/// Columns of tiles that are computed at a time: a tile of the left factor is loaded once for them.
static constexpr int64_t kColumns = 2;
/// Tile numbers: sums from 0 on, the left factor, the right ones.
static constexpr int64_t kLeft = 2, kRight = 4;

Value MicroKernels::tileWords(Emit &e, Value dim) { return e.mul(e.ceilDiv(dim, kTileDepth), kTileRows); }

Value MicroKernels::ringFloats(Emit &e, Value dim, Value valueDim) {
  Value values = e.mul(e.roundUp(valueDim, kTileRows), kTileRows);
  return readsKeys() ? values : e.add(values, e.mul(tileWords(e, dim), kTileDepth));
}

Value MicroKernels::ringPlace(Emit &e, Value block) {
  return e.make<arith::RemUIOp>(block, e.index(packedKeys / kTileDepth));
}

Value MicroKernels::queryFloats(Emit &e, Value dim) { return e.add(e.mul(tileWords(e, dim), queries), tilesOffset()); }

// Of what the functions of scores take: products, queries, ring, tail, head_dim, value_dim, key, row, count.
MicroKernels::KeyPlaces MicroKernels::keyPlaces(Emit &e, ValueRange args) {
  TileInstructions memory(e);
  return {dimArgument(e, state.getDim(), args[4]),
          dimArgument(e, state.getValueDim(), args[5]),
          memory.address(args[2]),
          memory.address(args[3]),
          memory.address(args[6]),
          memory.rowBytes(args[6]),
          e.make<memref::DimOp>(args[6], e.index(0))};
}

// The rows of 16 keys as the left factor, and the bytes between them.
std::pair<Value, Value> MicroKernels::keyRows(Emit &e, const KeyPlaces &places, Value row) {
  TileInstructions tiles(e);
  Value inBlock = e.make<arith::RemUIOp>(row, e.index(kTileDepth)),
        block = e.make<arith::DivUIOp>(row, e.index(kTileDepth));
  Value width = e.mul(tileWords(e, places.dim), 4), packed = e.mul(inBlock, width);
  if (!readsKeys()) {
    Value start = e.mul(ringPlace(e, block), ringFloats(e, places.dim, places.valueDim));
    start = e.add(start, e.mul(e.roundUp(places.valueDim, kTileRows), kTileRows));
    return {tiles.at(places.ring, e.add(e.mul(start, 4), packed)), width};
  }
  Value last = e.less(places.keys, e.mul(e.add(block, 1), kTileDepth));
  Value direct = tiles.at(places.key, e.mul(row, places.keyBytes)), copy = tiles.at(places.tail, packed);
  return {LLVM::SelectOp::create(e.b, e.loc, last, copy, direct), e.select(last, width, places.keyBytes)};
}

func::FuncOp MicroKernels::tileScores(MemRefType key) {
  Type index = IndexType::get(context());
  // products, queries, ring, tail, head_dim, value_dim, key, row, count
  return build(name("tile_scores"), {slotType(), slotType(), slotType(), slotType(), index, index, key, index, index},
               {}, [&](Body &body) {
                 Emit &e = body.e;
                 TileInstructions tiles(e);
                 ValueRange args = body.args;
                 Value products = tiles.address(args[0]), right = tiles.at(tiles.address(args[1]), 4 * tilesOffset());
                 KeyPlaces places = keyPlaces(e, args);
                 Value row = tiles.i64(64), pitch = tiles.i64(4 * queries), depth = e.ceilDiv(places.dim, kTileDepth);
                 e.loop(e.index(0), args[8], kTileRows, [&](Value k) {
                   auto [left, stride] = keyRows(e, places, e.add(args[7], k));
                   Value leftPitch = tiles.i64(stride);
                   for (int64_t first = 0; first < vectors; first += kColumns) {
                     int64_t columns = std::min(kColumns, vectors - first);
                     for (int64_t c = 0; c < columns; ++c)
                       tiles.zero(c);
                     e.loop(e.index(0), depth, 1, [&, left = left](Value d) {
                       tiles.stream(kLeft, tiles.at(left, e.mul(d, 2 * kTileDepth)), leftPitch);
                       for (int64_t c = 0; c < columns; ++c) {
                         Value offset = e.add(e.mul(d, vectors * kTileBytes), (first + c) * kTileBytes);
                         tiles.load(kRight + c, tiles.at(right, offset), row);
                         tiles.multiply(c, kLeft, kRight + c);
                       }
                     });
                     for (int64_t c = 0; c < columns; ++c)
                       tiles.store(c, tiles.at(products, e.add(e.mul(k, 4 * queries), (first + c) * 4 * kTileRows)),
                                   pitch);
                   }
                 });
               });
}

// The output is summed up where it lies, over all tiles. What is not finite, also a NaN of a weight of 0, is left to
// `check`, which has the query tile done again in f32.
func::FuncOp MicroKernels::tileAccumulate() {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, pairs, ring, row, count
  return build(
      name("tile_accumulate"), {slotType(), index, index, slotType(), slotType(), index, index}, {}, [&](Body &body) {
        Emit &e = body.e;
        TileInstructions tiles(e);
        ValueRange args = body.args;
        Value dim = dimArgument(e, state.getDim(), args[1]), valueDim = dimArgument(e, state.getValueDim(), args[2]);
        Value output = tiles.at(tiles.address(args[0]), e.mul(layout(e, dim, valueDim).output, 4));
        Value pairs = tiles.address(args[3]), ring = tiles.address(args[4]);
        Value row = tiles.i64(64), pitch = tiles.i64(4 * queries), blockBytes = e.mul(ringFloats(e, dim, valueDim), 4);
        Value firstBlock = e.make<arith::DivUIOp>(args[5], e.index(kTileDepth)),
              blocks = e.ceilDiv(args[6], kTileDepth);
        e.loop(e.index(0), e.ceilDiv(valueDim, kTileRows), 1, [&](Value d) {
          for (int64_t first = 0; first < vectors; first += kColumns) {
            int64_t columns = std::min(kColumns, vectors - first);
            auto sum = [&](int64_t c) {
              return tiles.at(output, e.add(e.mul(d, 4 * kTileRows * queries), (first + c) * 4 * kTileRows));
            };
            for (int64_t c = 0; c < columns; ++c)
              tiles.load(c, sum(c), pitch);
            e.loop(e.index(0), blocks, 1, [&](Value b) {
              Value block = e.mul(ringPlace(e, e.add(firstBlock, b)), blockBytes);
              tiles.stream(kLeft, tiles.at(ring, e.add(block, e.mul(d, kTileBytes))), row);
              for (int64_t c = 0; c < columns; ++c) {
                Value offset = e.add(e.mul(b, kTileBytes), (first + c) * keyTile / kTileDepth * kTileBytes);
                tiles.load(kRight + c, tiles.at(pairs, offset), row);
                tiles.multiply(c, kLeft, kRight + c);
              }
            });
            for (int64_t c = 0; c < columns; ++c)
              tiles.store(c, sum(c), pitch);
          }
        });
      });
}

} // namespace attn::cpu
