//===- Products.cpp - Q K^T and P V ---------------------------------------===//
#include "Kernels.h"

namespace attn::cuda {

using mlir::VectorType;

static float zero() { return 0.0f; }

// Lane l of a warp points ldmatrix at row l % 16 of a 16 x 16 block, first or second chunk by l / 16.
static Values loadRowsBlock(Emit &e, const SharedLayout &layout, Value tile, Value firstRow, int64_t chunk,
                            bool transposed) {
  Value lane = e.lane();
  Value row = e.add(e.bits(lane, 15), firstRow);
  return e.loadMatrices(e.at(tile, layout.chunkOffset(e, row, chunk, e.divide(lane, 16))), transposed);
}

static Values loadQueries(Emit &e, const KernelShape &shape, Value tile, int64_t block, int64_t step) {
  SharedLayout layout(shape.paddedDim(), shape.sharedBytes());
  Value first = e.add(LanePlace(e, shape).firstRow, block * kFragmentRows);
  return loadRowsBlock(e, layout, tile, first, 2 * step, /*transposed=*/false);
}

State emitBegin(Emit &e, const KernelShape &shape, Value query, Value factor, Value scale) {
  State state;
  state.output.assign(shape.outputs(), e.f32(zero()));
  state.maximum.assign(shape.rows(), e.negativeInfinity());
  state.sum.assign(shape.rows(), e.f32(zero()));
  state.factor = factor, state.scale = scale;
  if (!shape.queriesInRegisters()) {
    state.query = {query};
    return state;
  }
  for (int64_t block = 0; block < shape.rowBlocks(); ++block)
    for (int64_t step = 0; step < shape.paddedDim() / 16; ++step)
      state.query.append(loadQueries(e, shape, query, block, step));
  return state;
}

//===----------------------------------------------------------------------===//
// Tensor cores
//===----------------------------------------------------------------------===//

static ValueRange fragment(ValueRange all, int64_t index) {
  return all.slice(index * kFragmentElements, kFragmentElements);
}

static void addProduct(Emit &e, const KernelShape &shape, Values &sums, int64_t index, ValueRange a, ValueRange b) {
  Values sum = e.multiply(shape.element, a, b, fragment(sums, index));
  llvm::copy(sum, sums.begin() + index * kFragmentElements);
}

// Key rows as columns of the second operand: of each 16 rows a lane points at row l % 8 + 8 (l / 16), chunk l / 8 % 2.
static Values loadKeys(Emit &e, const SharedLayout &layout, Value tile, int64_t firstRow, int64_t chunk) {
  Value lane = e.lane();
  Value row = e.add(e.add(e.bits(lane, 7), e.mul(e.divide(lane, 16), 8)), firstRow);
  Value low = e.bits(e.divide(lane, 8), 1);
  return e.loadMatrices(e.at(tile, layout.chunkOffset(e, row, chunk, low)), /*transposed=*/false);
}

static Values scoreByTensorCores(Emit &e, const KernelShape &shape, const State &state, Value key, int64_t keys) {
  SharedLayout layout(shape.paddedDim(), shape.sharedBytes());
  int64_t steps = shape.paddedDim() / 16, columns = keys / kFragmentColumns;
  Values scores(shape.rowBlocks() * columns * kFragmentElements, e.f32(zero()));
  for (int64_t step = 0; step < steps; ++step) {
    llvm::SmallVector<Values> query;
    for (int64_t block = 0; block < shape.rowBlocks(); ++block)
      query.push_back(shape.queriesInRegisters() ? Values(fragment(state.query, block * steps + step))
                                                 : loadQueries(e, shape, state.query[0], block, step));
    for (int64_t column = 0; column < columns; column += 2) {
      Values words = loadKeys(e, layout, key, column * kFragmentColumns, 2 * step);
      for (int64_t block = 0; block < shape.rowBlocks(); ++block)
        for (int64_t half : {0, 1})
          addProduct(e, shape, scores, block * columns + column + half, query[block],
                     ValueRange(words).slice(2 * half, 2));
    }
  }
  return scores;
}

// The accumulators of two neighbouring score fragments are, rounded, an A fragment of weights.
static Values weightFragment(Emit &e, const KernelShape &shape, ValueRange weights, int64_t first) {
  Values words;
  for (int64_t column : {first, first + 1})
    for (int64_t half : {0, 1}) {
      ValueRange elements = fragment(weights, column).slice(2 * half, 2);
      words.push_back(e.pack(elements[0], elements[1], shape.element));
    }
  return words;
}

// A 16 x 16 block of value rows, at fragment `column` of the warp's part. A whole group of eight chunks further on, or
// where nothing is permuted, parts are so many bytes apart.
static Values loadValueBlock(Emit &e, const KernelShape &shape, Value tile, int64_t row, int64_t column) {
  SharedLayout layout(shape.paddedValueDim(), shape.sharedBytes());
  int64_t apart = shape.outputColumns();
  Value part = LanePlace(e, shape).part;
  if (shape.parts() == 1 || !layout.swizzled() || apart % 8 == 0)
    return loadRowsBlock(e, layout, e.at(tile, e.mul(part, apart * 16)), e.i32(row), column, /*transposed=*/true);
  Value lane = e.lane(), chunk = e.add(e.add(e.mul(part, apart), column), e.divide(lane, 16));
  return e.loadMatrices(e.at(tile, layout.chunkOffset(e, e.add(e.bits(lane, 15), row), chunk)), /*transposed=*/true);
}

static void accumulateByTensorCores(Emit &e, const KernelShape &shape, State &state, ValueRange weights, Value value) {
  int64_t columns = weights.size() / kFragmentElements / shape.rowBlocks(), outputs = shape.outputColumns();
  for (int64_t step = 0; step < columns / 2; ++step) {
    llvm::SmallVector<Values> rows;
    for (int64_t block = 0; block < shape.rowBlocks(); ++block)
      rows.push_back(weightFragment(e, shape, weights, block * columns + 2 * step));
    for (int64_t column = 0; column < outputs; column += 2) {
      Values words = loadValueBlock(e, shape, value, 16 * step, column);
      for (int64_t block = 0; block < shape.rowBlocks(); ++block)
        for (int64_t half : {0, 1})
          addProduct(e, shape, state.output, block * outputs + column + half, rows[block],
                     ValueRange(words).slice(2 * half, 2));
    }
  }
}

//===----------------------------------------------------------------------===//
// Plain FMAs
//===----------------------------------------------------------------------===//

static Values loadFloats(Emit &e, Value pointer, int64_t count) {
  Value vector = e.load(VectorType::get({count}, e.b.getF32Type()), pointer, 4 * count);
  Values floats;
  for (int64_t i = 0; i < count; ++i)
    floats.push_back(mlir::LLVM::ExtractElementOp::create(e.b, e.loc, vector, e.i32(i)));
  return floats;
}

// Four dims at a time: each lane reads them of its two rows per block and of its two keys per column block.
static Values scoreByFMA(Emit &e, const KernelShape &shape, const State &state, Value key, int64_t keys) {
  SharedLayout layout(shape.paddedDim(), shape.sharedBytes());
  LanePlace place(e, shape);
  int64_t columns = keys / kFragmentColumns;
  Values zeros(shape.rowBlocks() * columns * kFragmentElements, e.f32(zero()));
  return e.loop(layout.chunks(), 1, zeros, [&](Value chunk, ValueRange sums) {
    Values scores(sums);
    llvm::SmallVector<Values> query;
    for (int64_t row = 0; row < shape.rows(); ++row)
      query.push_back(
          loadFloats(e, e.at(state.query[0], layout.chunkOffset(e, place.row(e, row / 2, row % 2), chunk)), 4));
    for (int64_t column = 0; column < columns; ++column)
      for (int64_t side : {0, 1}) {
        Value keyRow = e.add(place.column, column * kFragmentColumns + side);
        Values dims = loadFloats(e, e.at(key, layout.chunkOffset(e, keyRow, chunk)), 4);
        for (int64_t row = 0; row < shape.rows(); ++row) {
          Value &score = scores[((row / 2) * columns + column) * kFragmentElements + 2 * (row % 2) + side];
          for (int64_t d = 0; d < 4; ++d)
            score = e.fma(query[row][d], dims[d], score);
        }
      }
    return scores;
  });
}

static Value loadWide(Emit &e, Type element, Value pointer) {
  Value v = e.load(element, pointer);
  return element.isF32() ? v : e.make<mlir::arith::ExtFOp>(e.b.getF32Type(), v);
}

/// fn(element, key) for the elements of a tile that belong to row `row` of the lane; keys from the lane's column on.
static void forRowElements(const KernelShape &shape, int64_t elements, int64_t row,
                           llvm::function_ref<void(int64_t, int64_t)> fn) {
  int64_t columns = elements / kFragmentElements / shape.rowBlocks();
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t side : {0, 1})
      fn(((row / 2) * columns + column) * kFragmentElements + 2 * (row % 2) + side, column * kFragmentColumns + side);
}

Values emitRead(Emit &e, const KernelShape &shape, const State &state, llvm::function_ref<Value(Value, Value)> at,
                Type element, int64_t keys) {
  LanePlace place(e, shape);
  Values scores(shape.rowBlocks() * keys / kFragmentColumns * kFragmentElements);
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value own = place.row(e, row / 2, row % 2);
    forRowElements(shape, scores.size(), row, [&](int64_t i, int64_t key) {
      scores[i] = e.mulf(loadWide(e, element, at(own, e.add(place.column, key))), state.factor);
    });
  }
  return scores;
}

// Element by element, from global memory: neighbours on a diagonal read the same row, which stays in the cache.
void emitRelative(Emit &e, const KernelShape &shape, const State &state, const DistanceRows &from, Values &scores) {
  SharedLayout layout(shape.paddedDim(), shape.sharedBytes());
  LanePlace place(e, shape);
  Type shared = shape.form == Form::Plain ? Type(e.b.getF32Type()) : shape.element;
  Values tableRows(scores.size()), biasRows;
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value own = place.row(e, row / 2, row % 2);
    biasRows.push_back(from.biasRow ? from.biasRow(own) : Value());
    forRowElements(shape, scores.size(), row,
                   [&](int64_t i, int64_t key) { tableRows[i] = from.tableRow(own, e.add(place.column, key)); });
  }
  Values zeros(scores.size(), e.f32(zero()));
  Values sums = e.loop(shape.dim, 1, zeros, [&](Value d, ValueRange carried) {
    Values next(carried);
    Value bytes = e.toI64(e.mul(d, from.element.getIntOrFloatBitWidth() / 8));
    for (int64_t row = 0; row < shape.rows(); ++row) {
      Value q = loadWide(e, shared, e.at(from.query, layout.elementOffset(e, place.row(e, row / 2, row % 2), d)));
      if (biasRows[row])
        q = e.addf(q, loadWide(e, from.element, e.at(biasRows[row], bytes)));
      forRowElements(shape, next.size(), row, [&](int64_t i, int64_t) {
        next[i] = e.fma(q, loadWide(e, from.element, e.at(tableRows[i], bytes)), next[i]);
      });
    }
    return next;
  });
  for (auto [score, sum] : llvm::zip_equal(scores, sums))
    score = e.fma(sum, state.factor, score);
}

/// Two neighbouring elements of a value row, as f32.
static Values loadValues(Emit &e, const KernelShape &shape, const SharedLayout &layout, Value tile, Value row,
                         Value column) {
  Value at = e.at(tile, layout.elementOffset(e, row, column));
  if (shape.form == Form::Plain)
    return loadFloats(e, at, 2);
  Values pair;
  for (int64_t side : {0, 1})
    pair.push_back(
        e.make<mlir::arith::ExtFOp>(e.b.getF32Type(), e.load(shape.element, e.at(at, side * shape.sharedBytes()))));
  return pair;
}

// Key after key: the lane of the quad that has the key's weights hands them to the other three.
static void accumulateByFMA(Emit &e, const KernelShape &shape, State &state, ValueRange weights, Value value,
                            bool skipZero) {
  SharedLayout layout(shape.paddedValueDim(), shape.sharedBytes());
  LanePlace place(e, shape);
  int64_t columns = weights.size() / kFragmentElements / shape.rowBlocks(), outputs = shape.outputColumns();
  Value quadStart = e.sub(e.lane(), e.bits(e.lane(), 3)),
        firstColumn = e.add(place.firstColumn(e, shape), place.column);
  for (int64_t column = 0; column < columns; ++column)
    state.output = e.loop(kFragmentColumns, 1, state.output, [&](Value key, ValueRange sums) {
      Values output(sums), weight;
      Value owner = e.add(quadStart, e.divide(key, 2)), odd = e.equal(e.bits(key, 1), e.i32(1));
      for (int64_t row = 0; row < shape.rows(); ++row) {
        ValueRange own = fragment(weights, (row / 2) * columns + column).slice(2 * (row % 2), 2);
        weight.push_back(e.shuffleFrom(e.select(odd, own[1], own[0]), owner));
      }
      for (int64_t out = 0; out < outputs; ++out) {
        Values v = loadValues(e, shape, layout, value, e.add(key, column * kFragmentColumns),
                              e.add(firstColumn, out * kFragmentColumns));
        for (int64_t row = 0; row < shape.rows(); ++row)
          for (int64_t side : {0, 1}) {
            Value &sum = output[((row / 2) * outputs + out) * kFragmentElements + 2 * (row % 2) + side];
            Value more = e.fma(weight[row], v[side], sum);
            Value none = e.cmpf(mlir::arith::CmpFPredicate::OEQ, weight[row], e.f32(zero()));
            sum = skipZero ? e.select(none, sum, more) : more;
          }
      }
      return output;
    });
}

//===----------------------------------------------------------------------===//
// Either
//===----------------------------------------------------------------------===//

Values emitScore(Emit &e, const KernelShape &shape, const State &state, Value key, int64_t keys) {
  Values scores = shape.form == Form::TensorCores ? scoreByTensorCores(e, shape, state, key, keys)
                                                  : scoreByFMA(e, shape, state, key, keys);
  for (Value &score : scores)
    score = e.mulf(score, state.factor); // a constant 1 folds away
  return scores;
}

void emitAccumulate(Emit &e, const KernelShape &shape, State &state, ValueRange weights, Value value, bool skipZero) {
  if (shape.form == Form::TensorCores && !skipZero)
    accumulateByTensorCores(e, shape, state, weights, value);
  else
    accumulateByFMA(e, shape, state, weights, value, skipZero);
}

} // namespace attn::cuda
