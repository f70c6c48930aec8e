//===- PairProducts.cpp - Scores and outputs by vdpbf16ps -----------------===//
//
// The products of TileProducts.cpp for CPUs with AVX512-BF16 and no AMX, of the same packed tiles: a vector has a pair
// of numbers for each of 16 queries, and meets one pair of a key row, or of a column of values, that is broadcast.
//
//===----------------------------------------------------------------------===//
#include "MicroKernelsDetail.h"
#include "TileInstructions.h"

using namespace mlir;

namespace attn::cpu {

/// Words of a row of a tile: its pairs.
static constexpr int64_t kPairs = kTileDepth / 2;

/// Rows of a register block: a divisor of the rows of a tile, with which accumulators fill most registers.
int64_t MicroKernels::pairRows() const { return vectors == 1 && !block.compact ? 16 : vectors <= 3 ? 8 : 4; }

static Value loadVector(Emit &e, Value address) {
  return LLVM::LoadOp::create(e.b, e.loc, VectorType::get({kTileDepth}, e.b.getBF16Type()), address, /*alignment=*/4);
}

static Value loadBroadcast(Emit &e, Value address) {
  Value word = LLVM::LoadOp::create(e.b, e.loc, e.b.getI32Type(), address, /*alignment=*/2);
  Value words = vector::BroadcastOp::create(e.b, e.loc, e.ivec, word);
  return vector::BitCastOp::create(e.b, e.loc, VectorType::get({kTileDepth}, e.b.getBF16Type()), words);
}

Value multiplyPairs(Emit &e, Value sum, Value a, Value b) {
  return LLVM::CallIntrinsicOp::create(e.b, e.loc, e.vec, e.b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                       ValueRange{sum, a, b})
      .getResult(0);
}

/// acc[r][v] += the 16 pairs of row r at `left`, `pitch` bytes apart, times those of vector v at `right`, `step` bytes
/// apart.
static Values multiplyTile(Emit &e, ValueRange init, Value left, Value pitch, Value right, Value step,
                           int64_t vectors) {
  TileInstructions memory(e);
  int64_t rows = init.size() / vectors;
  Values rowsAt, vectorsAt;
  for (int64_t r = 0; r < rows; ++r)
    rowsAt.push_back(memory.at(left, e.mul(pitch, r)));
  for (int64_t v = 0; v < vectors; ++v)
    vectorsAt.push_back(memory.at(right, e.mul(step, v)));
  return e.loop(e.index(0), e.index(kPairs), 2, init, [&](Value first, ValueRange carried) {
    Values acc(carried);
    for (int64_t u = 0; u < 2; ++u) {
      Value pair = e.add(first, u), words = e.mul(pair, 4), lines = e.mul(pair, 4 * kTileRows);
      Values queries;
      for (int64_t v = 0; v < vectors; ++v)
        queries.push_back(loadVector(e, memory.at(vectorsAt[v], lines)));
      for (int64_t r = 0; r < rows; ++r) {
        Value row = loadBroadcast(e, memory.at(rowsAt[r], words));
        for (int64_t v = 0; v < vectors; ++v)
          acc[r * vectors + v] = multiplyPairs(e, acc[r * vectors + v], row, queries[v]);
      }
    }
    return acc;
  });
}

func::FuncOp MicroKernels::pairScores(MemRefType key) {
  Type index = IndexType::get(context());
  // products, queries, ring, tail, head_dim, value_dim, key, row, count
  return build(
      name("pair_scores"), {slotType(), slotType(), slotType(), slotType(), index, index, key, index, index}, {},
      [&](Body &body) {
        Emit &e = body.e;
        TileInstructions memory(e);
        ValueRange args = body.args;
        Value right = memory.at(memory.address(args[1]), 4 * tilesOffset());
        KeyPlaces places = keyPlaces(e, args);
        Value depth = e.ceilDiv(places.dim, kTileDepth);
        int64_t rows = pairRows();
        e.loop(e.index(0), args[8], rows, [&](Value k) {
          auto [left, pitch] = keyRows(e, places, e.add(args[7], k));
          Values zeros(rows * vectors, e.splat(0));
          Values sums = e.loop(e.index(0), depth, 1, zeros, [&, left = left, pitch = pitch](Value d, ValueRange acc) {
            return multiplyTile(e, acc, memory.at(left, e.mul(d, 2 * kTileDepth)), pitch,
                                memory.at(right, e.mul(d, vectors * kTileBytes)), e.index(kTileBytes), vectors);
          });
          for (auto [n, sum] : llvm::enumerate(sums))
            e.vstore(sum, args[0], e.add(e.mul(e.add(k, n / vectors), queries), int64_t(n % vectors) * e.lanes));
        });
      });
}

// The sum over a tile's keys starts from 0, which loses less than one long sum over all tiles. What is not finite is
// left to `check`.
func::FuncOp MicroKernels::pairAccumulate() {
  Type index = IndexType::get(context());
  // slot, head_dim, value_dim, pairs, ring, row, count
  return build(
      name("pair_accumulate"), {slotType(), index, index, slotType(), slotType(), index, index}, {}, [&](Body &body) {
        Emit &e = body.e;
        TileInstructions memory(e);
        ValueRange args = body.args;
        Value dim = dimArgument(e, state.getDim(), args[1]), valueDim = dimArgument(e, state.getValueDim(), args[2]);
        Value output = layout(e, dim, valueDim).output, pairs = memory.address(args[3]), ring = memory.address(args[4]);
        Value blockBytes = e.mul(ringFloats(e, dim, valueDim), 4), step = e.index(keyTile / kTileDepth * kTileBytes);
        Value firstBlock = e.make<arith::DivUIOp>(args[5], e.index(kTileDepth)),
              blocks = e.ceilDiv(args[6], kTileDepth);
        int64_t rows = pairRows();
        e.loop(e.index(0), e.roundUp(valueDim, kTileRows), rows, [&](Value d) {
          Values sums(rows * vectors, e.splat(0));
          sums = e.loop(e.index(0), blocks, 1, sums, [&](Value b, ValueRange acc) {
            Value block = memory.at(ring, e.mul(ringPlace(e, e.add(firstBlock, b)), blockBytes));
            return multiplyTile(e, acc, memory.at(block, e.mul(d, 4 * kPairs)), e.index(4 * kPairs),
                                memory.at(pairs, e.mul(b, kTileBytes)), step, vectors);
          });
          for (auto [n, sum] : llvm::enumerate(sums)) {
            Value place = e.add(e.add(output, e.mul(e.add(d, n / vectors), queries)), int64_t(n % vectors) * e.lanes);
            e.vstore(e.addf(e.vload(args[0], place), sum), args[0], place);
          }
        });
      });
}

} // namespace attn::cpu
