//===- Softmax.cpp - Weights, sums and references -------------------------===//
#include "Kernels.h"
#include "attn/Dialect/AttnTile/IR/LargestScore.h"

namespace attn::cuda {

using mlir::arith::CmpFPredicate;

/// A reference may lag behind the largest score by this many powers of two before the output is rescaled: weights then
/// stay below 2^8, far from the end of f16 (as in FlashAttention-4).
constexpr float kLag = 8.0f;

constexpr float kLog2E = 1.44269504088896341f;

static Values raiseReferences(Emit &e, const KernelShape &shape, const State &state, ValueRange maxima) {
  Values output(state.output), sum(state.sum);
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value less = e.subf(state.maximum[row], finiteReference(e, maxima[row]));
    Value weight = e.exp2(e.mulf(less, state.scale));
    sum[row] = e.mulf(sum[row], weight);
    forRow(shape, output.size(), row, [&](int64_t i) { output[i] = e.mulf(output[i], weight); });
  }
  output.append(maxima.begin(), maxima.end());
  output.append(sum);
  return output;
}

/// The largest f32, in natural units, as a score.
static Value largestScore(Emit &e, const KernelShape &shape, const State &state) {
  Value most = e.f32(std::numeric_limits<float>::max());
  if (shape.natural)
    return most;
  return e.minf(most, e.make<mlir::arith::DivFOp>(e.f32(tile::kLargestScore), partialUnit(e, shape, state.scale)));
}

/// What lies beyond the range of f32, in natural units, counts as its largest number or as masked.
static void clamp(Emit &e, const KernelShape &shape, const State &state, Values &scores) {
  Value most = largestScore(e, shape, state);
  Value least = e.negf(most), masked = e.negativeInfinity();
  for (Value &s : scores) {
    s = e.select(e.cmpf(CmpFPredicate::OGT, s, most), most, s);
    s = e.select(e.cmpf(CmpFPredicate::OLT, s, least), masked, s);
  }
}

/// Weights that are made of their scores alone; those of masked keys are 0.
static void weigh(Emit &e, const KernelShape &shape, const State &state, Values &scores) {
  Value one = e.f32(1), zero = e.f32(0);
  for (Value &s : scores) {
    if (!shape.sigmoid) {
      s = e.select(e.cmpf(CmpFPredicate::OEQ, s, e.negativeInfinity()), zero, s);
      continue;
    }
    Value away = e.exp2(e.negf(e.mulf(s, state.scale)));
    s = e.make<mlir::arith::DivFOp>(one, e.addf(one, away));
  }
}

void emitSoftmax(Emit &e, const KernelShape &shape, State &state, Values &scores, bool exact) {
  if (exact)
    clamp(e, shape, state, scores);
  if (!shape.softmax)
    return weigh(e, shape, state, scores);
  Values maxima;
  Value grow = e.make<mlir::arith::ConstantOp>(e.b.getBoolAttr(false));
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value high = e.negativeInfinity();
    forRow(shape, scores.size(), row, [&](int64_t i) { high = e.maxf(high, scores[i]); });
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
    Value reference = finiteReference(e, state.maximum[row]), shift = e.negf(e.mulf(reference, state.scale));
    forRow(shape, scores.size(), row, [&](int64_t i) {
      // Exactly, a large reference cancels before it is scaled.
      Value exponent = exact ? e.mulf(e.subf(scores[i], reference), state.scale) : e.fma(scores[i], state.scale, shift);
      scores[i] = e.exp2(exponent);
      state.sum[row] = e.addf(state.sum[row], scores[i]);
    });
  }
}

// One lane of a quad adds it. Raised as by a score that is larger than all so far, in quarters of an exponent, where
// the largest f32 has room.
void emitSink(Emit &e, const KernelShape &shape, State &state, ValueRange logits) {
  Value unit = e.f32(1);
  if (!shape.natural) {
    for (Value &maximum : state.maximum)
      maximum = e.mulf(maximum, partialUnit(e, shape, state.scale));
    state.scale = e.f32(4);
    unit = e.f32(0.25f * kLog2E);
  }
  Value isFirst = e.equal(e.bits(e.lane(), 3), e.i32(0)), most = largestScore(e, shape, state);
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value logit = e.mulf(logits[row], unit);
    logit = e.select(e.cmpf(CmpFPredicate::OGT, logit, most), most, logit);
    Value reference = finiteReference(e, e.maxf(state.maximum[row], logit));
    Value kept = e.exp2(e.mulf(e.subf(state.maximum[row], reference), state.scale));
    Value own = e.exp2(e.mulf(e.subf(logit, reference), state.scale));
    state.maximum[row] = e.maxf(state.maximum[row], logit);
    state.sum[row] = e.addf(e.mulf(state.sum[row], kept), e.select(isFirst, own, e.f32(0)));
    forRow(shape, state.output.size(), row, [&](int64_t i) { state.output[i] = e.mulf(state.output[i], kept); });
  }
}

// The largest score of a row has a weight of 1 or more, up to the rounding of the scaled reference.
static Value lostWeights(Emit &e, const KernelShape &shape, const State &state) {
  Value lost;
  for (int64_t row = 0; row < shape.rows(); ++row) {
    Value seen = e.cmpf(CmpFPredicate::OGT, state.maximum[row], e.negativeInfinity());
    Value low = e.both(seen, e.cmpf(CmpFPredicate::OLT, e.quadSum(state.sum[row]), e.f32(0.5f)));
    lost = lost ? e.either(lost, low) : low;
  }
  return lost;
}

Value emitCheck(Emit &e, const KernelShape &shape, const State &state) {
  Value zero = e.f32(0), test = zero;
  for (Value v : llvm::concat<const Value>(state.output, state.sum))
    test = e.fma(v, zero, test); // NaN from an infinity or a NaN
  return e.anyOfBlock(e.either(e.cmpf(CmpFPredicate::UNO, test, test), lostWeights(e, shape, state)));
}

} // namespace attn::cuda
