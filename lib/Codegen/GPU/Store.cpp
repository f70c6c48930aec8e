//===- Store.cpp - The end of a tile: output rows, partial results --------===//
//
// A quad has the columns of a row in turns of two. Where rows start at multiples of 16 bytes it first exchanges words,
// so that it writes whole sectors of 32 bytes; otherwise elements go one by one.
//
//===----------------------------------------------------------------------===//
#include "Kernels.h"
#include "attn/Dialect/AttnTile/IR/LargestScore.h"
#include "attn/Runtime/Device.h"

namespace attn::cuda {

using mlir::Type;
using mlir::arith::CmpFPredicate;

namespace {

constexpr int64_t kWordBytes = 4;

/// Stores rows of elements of one type; values[2 c + side] of a row stand in column 8 c + 2 (lane % 4) + side.
class RowStore {
public:
  RowStore(Emit &e, const KernelShape &shape, Type element) : e(e), shape(shape), element(element), place(e, shape) {
    Value quadLane = e.bits(e.lane(), 3);
    for (int64_t bit : {1, 2})
      odd.push_back(e.equal(e.bits(quadLane, bit), e.i32(bit)));
    this->quadLane = e.toI64(quadLane);
    firstColumn = place.firstColumn(e, shape);
  }

  /// A row that starts at a multiple of 16 bytes, where `live`. All lanes of the warp take part.
  void together(Value row, Value live, ValueRange values) {
    llvm::SmallVector<Piece> pieces = cut(values);
    Value start = e.at(row, e.toI64(e.mul(firstColumn, bytes())));
    e.ifThen(live, [&] {
      for (const Piece &piece : pieces) {
        Value lane = e.mul(quadLane, kWordBytes * piece.words.size());
        e.storeTogether(piece.words, e.at(e.at(start, lane), piece.column * bytes()));
      }
      separately(row, values, wholeBlocks());
    });
  }

  /// Any row, from block `first` of 8 columns on.
  void separately(Value row, ValueRange values, int64_t first = 0) {
    for (int64_t block = first; block < shape.outputColumns(); ++block)
      for (int64_t side : {0, 1}) {
        Value column = e.add(e.add(firstColumn, place.column), block * kFragmentColumns + side);
        auto store = [&] { e.store(narrow(values[2 * block + side]), e.at(row, e.toI64(e.mul(column, bytes())))); };
        if (block < wholeBlocks())
          store();
        else if (shape.parts() > 1 || block * kFragmentColumns < shape.valueDim)
          e.ifThen(e.less(column, e.i32(shape.valueDim)), store);
      }
  }

private:
  /// What a quad writes side by side: the words of each lane, one lane's behind the other's, from a column on.
  struct Piece {
    int64_t column;
    Values words;
  };

  int64_t bytes() { return element.getIntOrFloatBitWidth() / 8; }
  /// Blocks that are whole in every part.
  int64_t wholeBlocks() {
    int64_t last = shape.valueDim - (shape.parts() - 1) * shape.outputColumns() * kFragmentColumns;
    return std::max<int64_t>(last, 0) / kFragmentColumns;
  }
  Value narrow(Value v) { return element.isF32() ? v : e.make<mlir::arith::TruncFOp>(element, v); }

  Value pack(Value low, Value high) {
    if (shape.form == Form::TensorCores)
      return e.pack(low, high, element);
    Type pair = mlir::VectorType::get({2}, element);
    Value packed = mlir::LLVM::PoisonOp::create(e.b, e.loc, pair);
    packed = mlir::LLVM::InsertElementOp::create(e.b, e.loc, packed, narrow(low), e.i32(0));
    packed = mlir::LLVM::InsertElementOp::create(e.b, e.loc, packed, narrow(high), e.i32(1));
    return mlir::LLVM::BitcastOp::create(e.b, e.loc, e.b.getI32Type(), packed);
  }

  // Two floats of each lane of a quad fill a sector as they are. Of 16-bit elements, 4 or 2 blocks of 8 columns do.
  llvm::SmallVector<Piece> cut(ValueRange values) {
    llvm::SmallVector<Piece> pieces;
    for (int64_t block = 0; block < wholeBlocks();) {
      int64_t left = wholeBlocks() - block, count = element.isF32() || left < 2 ? 1 : left < 4 ? 2 : 4;
      Piece &piece = pieces.emplace_back(Piece{block * kFragmentColumns, {}});
      for (int64_t end = block + count; block < end; ++block) {
        Value low = values[2 * block], high = values[2 * block + 1];
        if (element.isF32())
          piece.words = {low, high};
        else
          piece.words.push_back(pack(low, high));
      }
      if (count == 4)
        exchange(piece.words, 1, 1), exchange(piece.words, 2, 2);
      else if (count == 2)
        exchange(piece.words, 1, 2), exchange(piece.words, 1, 1);
    }
    return pieces;
  }

  /// Swaps bit `bit` of the number of a word with bit `laneBit` of the lane that has it.
  void exchange(Values &words, int64_t bit, int64_t laneBit) {
    Value upper = odd[laneBit / 2];
    for (int64_t low = 0, count = words.size(); low < count; ++low) {
      if (low & bit)
        continue;
      Value &first = words[low], &second = words[low | bit];
      Value got = e.shuffleXor(e.select(upper, first, second), laneBit);
      first = e.select(upper, got, first);
      second = e.select(upper, second, got);
    }
  }

  Emit &e;
  const KernelShape &shape;
  Type element;
  LanePlace place;
  Value quadLane;    // i64
  Value firstColumn; // of the warp's part
  Values odd;        // is bit 0, bit 1 of the lane's number set?
};

} // namespace

static Values elementsOfRow(const KernelShape &shape, const State &state, int64_t row) {
  Values elements;
  forRow(shape, state.output.size(), row, [&](int64_t i) { elements.push_back(state.output[i]); });
  return elements;
}

/// Once per row.
static void storeOnce(Emit &e, const LanePlace &place, llvm::function_ref<void()> store) {
  e.ifThen(e.both(e.equal(place.column, e.i32(0)), e.equal(place.part, e.i32(0))), store);
}

/// The reference of a row as partial results have it. Rounding takes none past the largest score.
static Value partialReference(Emit &e, const KernelShape &shape, const State &state, int64_t row) {
  Value reference = finiteReference(e, state.maximum[row]);
  if (shape.natural)
    return reference;
  return e.minf(e.mulf(reference, partialUnit(e, shape, state.scale)), e.f32(tile::kLargestScore));
}

Value logSumExp(Emit &e, const KernelShape &shape, Value reference, Value sum) {
  Value log = mlir::math::Log2Op::create(e.b, e.loc, sum);
  Value lse = shape.natural ? e.fma(log, e.f32(0.693147180559945309f), reference)
                            : e.mulf(e.fma(log, e.f32(0.25f), reference), e.f32(2.77258872223978124f));
  return e.select(e.cmpf(CmpFPredicate::OEQ, sum, e.f32(0)), e.negativeInfinity(), lse);
}

static Value inverseOf(Emit &e, Value sum) {
  Value inverse = e.make<mlir::arith::DivFOp>(e.f32(1), sum);
  return e.select(e.cmpf(CmpFPredicate::OEQ, sum, e.f32(0)), e.f32(0), inverse);
}

void emitFinish(Emit &e, const KernelShape &shape, const State &state, OutputRows to, Value row) {
  LanePlace place(e, shape);
  RowStore store(e, shape, shape.element);
  Value first = e.mul(e.toI64(row), e.toI64(to.output.stride)), left = e.sub(e.toI32(to.output.rows), e.toI32(row));
  Value output = e.at(to.output.pointer, e.mul(first, shape.globalBytes())), lse;
  if (to.lse.pointer)
    lse = e.at(to.lse.pointer, e.mul(e.mul(e.toI64(row), e.toI64(to.lse.stride)), 4));
  // Of the rows of a tile `pack` may leave some over.
  int64_t queries = shape.queries / shape.pack;
  if (shape.queries % shape.pack)
    left = e.min(left, e.i32(queries));
  Values starts, live;
  llvm::SmallVector<Values> rows;
  for (int64_t own = 0; own < shape.rows(); ++own) {
    Value at = place.row(e, own / 2, own % 2);
    Value sum = e.quadSum(state.sum[own]);
    rows.push_back(elementsOfRow(shape, state, own));
    if (shape.softmax) {
      Value inverse = inverseOf(e, sum);
      for (Value &v : rows.back())
        v = e.mulf(v, inverse);
    }
    starts.push_back(e.at(output, to.output.offset(e, at, shape.globalBytes())));
    live.push_back(e.less(e.divide(at, shape.pack), left));
    if (!lse)
      continue;
    Value exponent = logSumExp(e, shape, partialReference(e, shape, state, own), sum);
    Value its = e.at(lse, to.lse.offset(e, at, 4));
    e.ifThen(live[own], [&] { storeOnce(e, place, [&] { e.store(exponent, its); }); });
  }
  e.ifThen(
      to.output.startsAtChunks(e, shape.globalBytes()),
      [&] {
        for (int64_t own = 0; own < shape.rows(); ++own)
          store.together(starts[own], live[own], rows[own]);
      },
      [&] {
        for (int64_t own = 0; own < shape.rows(); ++own)
          e.ifThen(live[own], [&] { store.separately(starts[own], rows[own]); });
      });
}

void emitFinishPartial(Emit &e, const KernelShape &shape, const State &state, Value partials, Value row, Value rows) {
  LanePlace place(e, shape);
  RowStore store(e, shape, e.b.getF32Type());
  int64_t sumBytes = 4 * attn_sum_floats(shape.valueDim);
  for (int64_t own = 0; own < shape.rows(); ++own) {
    Value at = e.add(e.toI32(row), place.row(e, own / 2, own % 2)), live = e.less(at, e.toI32(rows));
    Value sum = e.quadSum(state.sum[own]), reference = partialReference(e, shape, state, own);
    Value start = e.at(partials, e.mul(e.toI64(at), sumBytes));
    store.together(start, live, elementsOfRow(shape, state, own));
    Value pair = e.at(e.at(partials, e.mul(e.toI64(rows), sumBytes)), e.mul(e.toI64(at), 8));
    e.ifThen(live, [&] { storeOnce(e, place, [&] { e.storeTogether({reference, sum}, pair); }); });
  }
}

} // namespace attn::cuda
