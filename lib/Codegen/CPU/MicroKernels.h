//===- MicroKernels.h - The code of one tile on a CPU -----------*- C++ -*-===//
//
// Queries lie in vector lanes: S^T = K Q^T and O^T = V^T P^T, so that there is no horizontal work and K and V are read
// as they lie, as scalars broadcast into FMAs. A register block is `rows` key rows (or value columns) by `vectors`
// vectors of queries. Each function below is built once per kernel and shape, internal and not inlined: a call per tile
// costs nothing, a copy costs compile time.
//
// A state is one slot of scratch memory, in floats, for Q queries:
// In powers of two, the slot counts in quarters: all floats are scores, also the largest, and so is their reference.
//   -m [Q] | l [Q] | l after this tile [Q] | scaled queries [head_dim, Q] | output [value_dim, Q]
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_CPU_MICROKERNELS_H
#define ATTN_LIB_CODEGEN_CPU_MICROKERNELS_H

#include "Emit.h"
#include "TaskForm.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Dialect/AttnTile/IR/LargestScore.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace attn::cpu {

/// Rows of a slot before the queries: -m, l and the next l.
constexpr int64_t kSlotRows = 3;

/// Floats for the products of queries with distances: the strip of one vector, then the bias products of a tile's.
inline int64_t stripFloats(int64_t keyTile, int64_t queries, int64_t lanes) {
  return (keyTile + lanes) * lanes + keyTile + queries;
}

/// What a target's micro-kernels look like.
struct RegisterBlock {
  int64_t lanes = 16; // floats of a vector
  int64_t rows = 8;   // rows of a register block
  ExpForm exp = ExpForm::AVX512;
  int64_t packedKeys = 0; // whose values stay packed as tiles of bf16; 0: products are FMAs
  bool amx = false;       // packed tiles are multiplied in tile registers, else by vdpbf16ps
  bool exactSums =
      false;            // sums of weights are results themselves (a log-sum-exp), not only what outputs are divided by
  bool compact = false; // for the few rows of a tail: smaller code for some speed
};

using tile::kLargestScore;

/// Are weights in such scores measured against a reference and summed up?
inline bool isSoftmax(tile::ScoreUnit unit) {
  return unit == tile::ScoreUnit::Log2 || unit == tile::ScoreUnit::Natural;
}

class MicroKernels {
public:
  MicroKernels(mlir::ModuleOp module, llvm::StringRef prefix, RegisterBlock block, tile::StateType state,
               int64_t keyTile);

  /// Offsets inside a slot.
  struct Layout {
    int64_t queries;
    Value dim, valueDim;
    Value scaled, output; // offsets; -m, l and the next l are at 0, Q and 2Q
  };

  // Each returns the function, building it on first use. Views of query, key, value and output are memref<?x(D)xT>
  // with any row stride, T being f32, f16 or bf16; those of key and value that a tile reads are f32.
  mlir::func::FuncOp begin(mlir::MemRefType query, mlir::MemRefType key);
  mlir::func::FuncOp clear();
  mlir::func::FuncOp restart();
  /// Rows of any type as rows of f32 that lie one after the other.
  mlir::func::FuncOp widen(mlir::MemRefType rows);
  mlir::func::FuncOp check();
  /// Adds a logit, in natural units, to the sum.
  mlir::func::FuncOp sink();
  mlir::func::FuncOp finish(mlir::MemRefType output, mlir::MemRefType lse);
  mlir::func::FuncOp finishPartial(mlir::MemRefType partials);
  /// O += V^T P. With `skipZero`, values of keys whose weight is 0 take no part, NaN and infinities included;
  /// `accumulateCarefully` is the same for some columns, small and slow.
  mlir::func::FuncOp accumulate(mlir::MemRefType value, bool skipZero);
  mlir::func::FuncOp accumulateCarefully(mlir::MemRefType value);
  /// Scores, regions and weights of a tile in one pass. Returns i1: the reference is far too low.
  mlir::func::FuncOp softmax(mlir::MemRefType key, const ScoreChain &chain);
  /// The same where a weight is made of its score alone, without a reference and a sum.
  mlir::func::FuncOp weigh(mlir::MemRefType key, const ScoreChain &chain);
  /// As `softmax`, after raising m to the largest kept score and rescaling the sum and the output.
  mlir::func::FuncOp onlineSoftmax(mlir::MemRefType key, const ScoreChain &chain);

  // The same on tiles of bf16, see PackTiles.cpp. A slot has 16 rows of output for each tile, also the last, and behind
  // them the packed queries: 16 times their factor, Q times the excess, then the tiles. What outputs are divided by is
  // the sum of the rounded weights; with exact sums l is that of the weights, and the excess of the rounded ones over
  // it is kept beside, until the outputs are settled.
  mlir::func::FuncOp packQueries(mlir::MemRefType query);
  /// The scaled queries of the slot from the packed ones, for a tile that is done again in f32.
  mlir::func::FuncOp unpackQueries();
  mlir::func::FuncOp packKeys(mlir::MemRefType key, mlir::MemRefType value);
  /// Scores, regions and weights, in f32; weights are left as pairs of bf16. Returns i1: the reference is far too low.
  mlir::func::FuncOp tileSoftmax(mlir::MemRefType key, const ScoreChain &chain);
  mlir::func::FuncOp settle();
  /// Weights of f32 as pairs.
  mlir::func::FuncOp packWeights();
  mlir::func::FuncOp tileAccumulate();
  mlir::func::FuncOp pairAccumulate();
  /// Full tiles one after the other, see TilePipeline.cpp: from, to -> where it stopped.
  mlir::func::FuncOp tileRun(mlir::MemRefType key);
  bool hasPipeline() const;
  /// The same for one or a few queries, see FewQueries.cpp. Takes the packed queries where it multiplies pairs.
  mlir::func::FuncOp fewQueriesRun(mlir::MemRefType key, mlir::MemRefType value, bool pairs);
  bool takesFewQueries() const;
  /// Are they multiplied in pairs of bf16 where there are several?
  bool fewQueriesArePairs() const;
  /// Beyond these, queries in lanes take less; packed as tiles, half as much, which rows of f32 do not match.
  int64_t mostFewQueries() const { return packedKeys && !fewQueriesArePairs() ? block.lanes / 4 : block.lanes / 2; }
  /// Words of a row of `dim` numbers, floats of a packed block of keys, of the packed queries of a slot.
  Value tileWords(Emit &e, Value dim);
  Value ringFloats(Emit &e, Value dim, Value valueDim);
  Value queryFloats(Emit &e, Value dim);
  /// Are rows of keys whole tiles, which need no copy?
  bool readsKeys() const { return state.getDim() >= 0 && state.getDim() % 32 == 0; }

  /// Has the state a reference and a sum?
  bool isSoftmax() const { return cpu::isSoftmax(state.getUnit()); }

  /// A slot, or any other run of floats.
  mlir::MemRefType slotType();

private:
  struct Body; // a function under construction: emitter and arguments
  mlir::func::FuncOp build(llvm::StringRef name, mlir::TypeRange arguments, mlir::TypeRange results,
                           llvm::function_ref<void(Body &)> body);
  mlir::func::FuncOp transpose();
  mlir::func::FuncOp scores(mlir::MemRefType key, const ScoreChain &chain);
  mlir::func::FuncOp readScores(mlir::MemRefType scores);
  void callScores(Body &body, mlir::MemRefType key, const ScoreChain &chain);
  /// What `scores` takes behind key rows: of relative, or query row and scale of read.
  llvm::SmallVector<mlir::Type> productArguments(const ScoreChain &chain);
  mlir::func::FuncOp addRelative(tile::RelativeOp op);
  llvm::SmallVector<mlir::Type> relativeArguments(tile::RelativeOp op);
  llvm::SmallVector<mlir::Type> tileArguments(mlir::MemRefType key, const ScoreChain &chain);
  mlir::func::FuncOp tileScores(mlir::MemRefType key);
  mlir::func::FuncOp pairScores(mlir::MemRefType key);
  void packValues(Emit &e, Value value, Value first, Value valid, Value valueDim, Value square, Value ring, Value to);
  /// Weights of key rows `row` and the next one, of the vector from `query` on; no `odd`: there is none.
  /// Answers what they are rounded to.
  std::pair<Value, Value> storeWeights(Emit &e, Value pairs, Value row, Value query, Value even, Value odd);
  /// Zeros behind `count` rows of weights, to the end of the block.
  void clearWeights(Emit &e, Value pairs, Value count);
  int64_t pairRows() const;
  Value ringPlace(Emit &e, Value block);
  /// Of the packed queries: the excess, and the tiles.
  static constexpr int64_t kExcess = 16;
  int64_t tilesOffset() const { return kExcess + queries; }
  /// Where keys are read from: addresses, bytes between rows, how many there are.
  struct KeyPlaces {
    Value dim, valueDim, ring, tail, key, keyBytes, keys;
  };
  KeyPlaces keyPlaces(Emit &e, ValueRange args);
  std::pair<Value, Value> keyRows(Emit &e, const KeyPlaces &places, Value row);
  mlir::MLIRContext *context() { return module.getContext(); }
  /// Does the reference count in natural units? Then it is any number and must lie near the largest score, for the
  /// rounded distance is what counts; else it is a whole power of 2, which may lie anywhere.
  bool isNatural() const { return state.getUnit() != tile::ScoreUnit::Log2; }
  Layout layout(Emit &e, Value dim, Value valueDim) const;
  std::string name(llvm::StringRef stem) const;

  Values fmaBlock(Emit &e, int64_t rows, ValueRange init, Value count,
                  llvm::function_ref<Value(Value, int64_t)> scalarAt,
                  llvm::function_ref<Value(Value, int64_t)> vectorAt, bool skipZero);
  void valueRows(Emit &e, ValueRange args, Value output, Value column, int64_t rows, bool skipZero,
                 llvm::function_ref<void()> careful);
  struct TileCode;

  mlir::ModuleOp module;
  std::string prefix;
  RegisterBlock block;
  tile::StateType state;
  int64_t keyTile, queries, vectors, packedKeys;
  bool exactSums;
};

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_MICROKERNELS_H
