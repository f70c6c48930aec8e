//===- Softmax.cpp - Weights, sums, and the end of a tile -----------------===//
#include "Kernels.h"

namespace attn::cuda {

using mlir::arith::CmpFPredicate;

/// A reference may lag behind the largest score by this many powers of two before the output is rescaled: weights then
/// stay below 2^8, far from the end of f16 (as in FlashAttention-4).
constexpr float kLag = 8.0f;

static Value infinity(Emit &e, bool negative) {
  float v = std::numeric_limits<float>::infinity();
  return e.f32(negative ? -v : v);
}

/// The reference as it is subtracted: 0 for a row that has seen no key, whose scores are all -infinity.
static Value finite(Emit &e, Value reference) {
  return e.select(e.cmpf(CmpFPredicate::OEQ, reference, infinity(e, true)), e.f32(0), reference);
}

/// Elements of a tile that belong to row `row` of the lane.
template <typename Fn>
static void forRow(const KernelShape &shape, size_t elements, int64_t row, Fn fn) {
  int64_t perBlock = elements / shape.rowBlocks();
  for (int64_t at = (row / 2) * perBlock; at < (row / 2 + 1) * perBlock; at += kFragmentElements)
    for (int64_t side : {0, 1})
      fn(at + 2 * (row % 2) + side);
}

static Values raiseReferences(Emit &e, const KernelShape &shape, const State &state, ValueRange maxima) {
  Values output(state.output), sum(state.sum);
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value less = e.subf(state.maximum[row], finite(e, maxima[row]));
    Value weight = e.exp2(e.mulf(less, state.scale));
    sum[row] = e.mulf(sum[row], weight);
    forRow(shape, output.size(), row, [&](int64_t i) { output[i] = e.mulf(output[i], weight); });
  }
  output.append(maxima.begin(), maxima.end());
  output.append(sum);
  return output;
}

void emitSoftmax(Emit &e, const KernelShape &shape, State &state, Values &scores, bool exact) {
  Values maxima;
  Value grow = e.make<mlir::arith::ConstantOp>(e.b.getBoolAttr(false));
  Value largest = e.f32(std::numeric_limits<float>::max());
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value high = infinity(e, true);
    forRow(shape, scores.size(), row, [&](int64_t i) {
      if (exact)
        scores[i] = e.select(e.cmpf(CmpFPredicate::OGT, scores[i], largest), largest, scores[i]);
      high = e.maxf(high, scores[i]);
    });
    maxima.push_back(e.maxf(state.maximum[row], e.quadMax(high)));
    Value lag = e.mulf(e.subf(maxima[row], state.maximum[row]), state.scale);
    grow = e.either(grow, e.cmpf(CmpFPredicate::OGT, lag, e.f32(exact ? 0.0f : kLag)));
  }

  Values kept(state.output);
  kept.append(state.maximum);
  kept.append(state.sum);
  Values raised =
      e.ifElse(e.anyOfWarp(grow), [&] { return raiseReferences(e, shape, state, maxima); }, [&] { return kept; });
  Values rest{state.factor, state.scale};
  rest.append(state.query);
  raised.append(rest);
  state = State(shape, raised);

  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value reference = finite(e, state.maximum[row]), shift = e.negf(e.mulf(reference, state.scale));
    forRow(shape, scores.size(), row, [&](int64_t i) {
      // Exactly, a large reference cancels before it is scaled.
      Value exponent = exact ? e.mulf(e.subf(scores[i], reference), state.scale) : e.fma(scores[i], state.scale, shift);
      scores[i] = e.exp2(exponent);
      state.sum[row] = e.addf(state.sum[row], scores[i]);
    });
  }
}

Value emitCheck(Emit &e, const KernelShape &shape, const State &state) {
  Value zero = e.f32(0), test = zero;
  for (Value v : llvm::concat<const Value>(state.output, state.sum))
    test = e.fma(v, zero, test); // NaN from an infinity or a NaN
  return e.anyOfBlock(e.cmpf(CmpFPredicate::UNO, test, test));
}

namespace {

/// Where a lane's elements go; rows of the output are guarded by the caller.
class Storing {
public:
  Storing(Emit &e, const KernelShape &shape, GlobalRows to) : e(e), shape(shape), to(to), place(e, shape) {
    Value address = mlir::LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI64Type(), to.pointer);
    Value stride = e.mul(e.toI64(to.stride), shape.globalBytes());
    pairs = e.equal(e.bits(e.either(address, stride), 3), e.i64(0));
  }

  /// Elements of one row: values[2 c + side] stands in column 8 c + 2 (lane % 4) + side.
  void row(Value row, ValueRange values) {
    Value stride = e.mul(e.toI64(to.stride), shape.globalBytes());
    Value start = e.at(to.pointer, e.mul(e.toI64(row), stride));
    start = e.at(start, e.toI64(e.mul(place.column, shape.globalBytes())));
    for (int64_t block = 0; block < shape.outputColumns(); ++block)
      pair(block, e.at(start, block * kFragmentColumns * shape.globalBytes()), values.slice(2 * block, 2));
  }

private:
  void pair(int64_t block, Value at, ValueRange two) {
    int64_t left = shape.valueDim - block * kFragmentColumns;
    if (left >= kFragmentColumns && shape.form == Form::TensorCores)
      return e.ifThen(
          pairs, [&] { e.store(e.pack(two[0], two[1], shape.element), at, 4); }, [&] { separately(at, two, left); });
    if (left > 0)
      separately(at, two, left);
  }

  void separately(Value at, ValueRange two, int64_t left) {
    for (int64_t side : {0, 1}) {
      auto store = [&] {
        Value v = shape.globalBytes() == 2 ? e.make<mlir::arith::TruncFOp>(shape.element, two[side]) : two[side];
        e.store(v, e.at(at, side * shape.globalBytes()));
      };
      if (left >= kFragmentColumns)
        store();
      else
        e.ifThen(e.less(e.add(place.column, side), e.i32(left)), store);
    }
  }

  Emit &e;
  const KernelShape &shape;
  GlobalRows to;
  LanePlace place;
  Value pairs; // do pairs of 16-bit elements lie at multiples of 4 bytes?
};

} // namespace

static Values elementsOfRow(const KernelShape &shape, const State &state, int64_t row) {
  Values elements;
  forRow(shape, state.output.size(), row, [&](int64_t i) { elements.push_back(state.output[i]); });
  return elements;
}

/// Once per quad.
static void storeOnce(Emit &e, const LanePlace &place, llvm::function_ref<void()> store) {
  e.ifThen(e.equal(place.column, e.i32(0)), store);
}

// lse = (reference in log2 units + log2 sum) ln 2; the reference is scaled late where it is a score.
static Value logSumExp(Emit &e, const State &state, Value reference, Value sum) {
  Value exponent = e.fma(finite(e, reference), state.scale, mlir::math::Log2Op::create(e.b, e.loc, sum));
  Value lse = e.mulf(exponent, e.f32(0.693147180559945309f));
  return e.select(e.cmpf(CmpFPredicate::OEQ, sum, e.f32(0)), infinity(e, true), lse);
}

void emitFinish(Emit &e, const KernelShape &shape, const State &state, OutputRows to, Value row) {
  LanePlace place(e, shape);
  Storing storing(e, shape, to.output);
  for (int64_t own = 0; own < shape.rows(); ++own) {
    Value at = e.add(e.toI32(row), place.row(e, own / 2, own % 2));
    Value sum = e.quadSum(state.sum[own]);
    Value inverse = e.make<mlir::arith::DivFOp>(e.f32(1), sum);
    inverse = e.select(e.cmpf(CmpFPredicate::OEQ, sum, e.f32(0)), e.f32(0), inverse);
    Values values = elementsOfRow(shape, state, own);
    for (Value &v : values)
      v = e.mulf(v, inverse);
    Value lse = to.lse ? logSumExp(e, state, state.maximum[own], sum) : Value();
    e.ifThen(e.less(at, e.toI32(to.output.rows)), [&] {
      storing.row(at, values);
      if (lse)
        storeOnce(e, place, [&] { e.store(lse, e.at(to.lse, e.mul(e.mul(e.toI64(at), e.toI64(to.lseStride)), 4))); });
    });
  }
}

void emitFinishPartial(Emit &e, const KernelShape &shape, const State &state, Value partials, Value row, Value rows,
                       bool natural) {
  LanePlace place(e, shape);
  int64_t width = shape.valueDim + 2;
  for (int64_t own = 0; own < shape.rows(); ++own) {
    Value at = e.add(e.toI32(row), place.row(e, own / 2, own % 2));
    Value sum = e.quadSum(state.sum[own]), reference = finite(e, state.maximum[own]);
    if (!natural)
      reference = e.mulf(reference, state.scale);
    Values values = elementsOfRow(shape, state, own);
    e.ifThen(e.less(at, e.toI32(rows)), [&] {
      Value start = e.at(partials, e.mul(e.toI64(at), width * 4));
      for (int64_t i = 0, n = values.size(); i < n; ++i) {
        int64_t left = shape.valueDim - i / 2 * kFragmentColumns;
        Value column = e.add(place.column, i / 2 * kFragmentColumns + i % 2);
        auto store = [&] { e.store(values[i], e.at(start, e.toI64(e.mul(column, 4)))); };
        if (left >= kFragmentColumns)
          store();
        else if (left > 0)
          e.ifThen(e.less(column, e.i32(shape.valueDim)), store);
      }
      storeOnce(e, place, [&] {
        e.store(reference, e.at(start, shape.valueDim * 4));
        e.store(sum, e.at(start, shape.valueDim * 4 + 4));
      });
    });
  }
}

} // namespace attn::cuda
