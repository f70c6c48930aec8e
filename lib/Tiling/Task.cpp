//===- Task.cpp - Tasks whose states lie in slots of memory ---------------===//
#include "TaskFrame.h"

using namespace mlir;

namespace attn {
using namespace tile;

namespace {

/// Several query tiles of a task pass over one span of keys after the other, while it is in the cache.
class TaskBuilder : TaskFrame {
public:
  TaskBuilder(OpBuilder &b, const KernelSource &source, int64_t queryTile) : TaskFrame(b, source, queryTile) {}

  func::FuncOp build(StringRef name);

private:
  void beginTiles();
  void passKeys();
  void finishTiles();
  /// Applies the key rows of the task's runs within [from, to) to the state of query tile `tileIndex`.
  Value applyRuns(Value state, Value tileIndex, Value from, Value to, bool exact);
  Value applyKeys(Value state, Value tileIndex, Value from, Value to, bool partial, bool exact);
  Value applyTile(Value state, Value tileIndex, Value key, Value count, bool partial, bool exact);

  Value slot(Value at) {
    return SlotOp::create(b, loc, stateType(), scratch, at, dim, valueDim, source.schedule.getKeyTile());
  }
  Value rowOf(Value tileIndex) { return add(field[kRow], mul(tileIndex, queryTile)); }
  Value forTiles(Value from, Value to, int64_t step, Value carried, llvm::function_ref<Value(Value, Value)> body);

  Value tiles;
};

Value TaskBuilder::forTiles(Value from, Value to, int64_t step, Value carried,
                            llvm::function_ref<Value(Value, Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, index(step), carried ? ValueRange(carried) : ValueRange());
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), carried ? loop.getRegionIterArgs()[0] : Value());
  if (carried)
    scf::YieldOp::create(b, loc, next);
  return carried ? loop.getResult(0) : Value();
}

// Query row r stands at the position of key row r + own.
void TaskBuilder::beginTiles() {
  factor = scale();
  Value shift = sub(add(field[kQueryToken], field[kQueryOffset]), field[kKeyToken]);
  Value own = step() == 1 ? shift : b.createOrFold<arith::DivSIOp>(loc, shift, index(step()));
  forTiles(index(0), tiles, 1, {}, [&](Value t, Value) {
    Value state = slot(t);
    if (op.getScores())
      return ClearOp::create(b, loc, state.getType(), state), Value();
    BeginOp::create(b, loc, state.getType(), state, queryView, keyView, rowOf(t), own, factor);
    return Value();
  });
}

Value TaskBuilder::applyTile(Value state, Value tileIndex, Value keyRow, Value count, bool partial, bool exact) {
  Value scores = products(state, keyView, keyRow, rowOf(tileIndex), keyRow, count);
  scores = relative(scores, state, /*buffer=*/{}, rowOf(tileIndex), keyRow);
  // A tile that is full keeps every key once.
  scores = partial ? countKept(scores, rowOf(tileIndex), keyRow, /*modified=*/true)
                   : modify(scores, rowOf(tileIndex), keyRow);
  if (partial)
    scores = mask(scores, rowOf(tileIndex), keyRow);
  auto softmax = SoftmaxOp::create(b, loc, tileType(), state.getType(), scores, state, exact);
  return AccumulateOp::create(b, loc, state.getType(), softmax.getWeights(), valueView, keyRow, count,
                              softmax.getResult(), partial || exact || op.getScoreBlock() || !op.isSoftmax());
}

Value TaskBuilder::applyKeys(Value state, Value tileIndex, Value from, Value to, bool partial, bool exact) {
  return forTiles(from, to, source.schedule.getKeyTile(), state, [&](Value keyRow, Value state) {
    Value count = min(sub(to, keyRow), index(source.schedule.getKeyTile()));
    return applyTile(state, tileIndex, keyRow, count, partial, exact);
  });
}

// Full runs get code without any masking. Done again exactly, which is rare, all runs are masked: one copy less.
Value TaskBuilder::applyRuns(Value state, Value tileIndex, Value from, Value to, bool exact) {
  if (!source.hasMask)
    return applyKeys(state, tileIndex, from, to, /*partial=*/false, exact);
  Value begin = toIndex(load(offsets, tileIndex)), end = toIndex(load(offsets, add(tileIndex, index(1))));
  return forTiles(begin, end, 1, state, [&](Value run, Value state) -> Value {
    Value runBegin = max(toIndex(load(runs, {run, index(0)})), from);
    Value runEnd = min(toIndex(load(runs, {run, index(1)})), to);
    if (exact)
      return applyKeys(state, tileIndex, runBegin, runEnd, /*partial=*/true, exact);
    Value full = arith::ConstantIntOp::create(b, loc, b.getI32Type(), 2);
    Value isFull = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, load(runs, {run, index(2)}), full);
    auto branch = scf::IfOp::create(b, loc, state.getType(), isFull, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    for (bool partial : {false, true}) {
      b.setInsertionPointToStart(&(partial ? branch.getElseRegion() : branch.getThenRegion()).front());
      scf::YieldOp::create(b, loc, applyKeys(state, tileIndex, runBegin, runEnd, partial, exact));
    }
    return branch.getResult(0);
  });
}

// The query tiles of a task pass over one span of keys after the other, while it is in the cache.
void TaskBuilder::passKeys() {
  int64_t span = source.schedule.getSpan();
  forTiles(field[kKeyBegin], field[kKeyEnd], span, {}, [&](Value from, Value) {
    Value to = min(add(from, index(span)), field[kKeyEnd]);
    forTiles(index(0), tiles, 1, {}, [&](Value t, Value) {
      applyRuns(slot(t), t, from, to, /*exact=*/false);
      return Value();
    });
    return Value();
  });
}

void TaskBuilder::finishTiles() {
  forTiles(index(0), tiles, 1, {}, [&](Value t, Value) {
    Value state = slot(t);
    Value lost = CheckOp::create(b, loc, b.getI1Type(), state);
    auto again = scf::IfOp::create(b, loc, state.getType(), lost, /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&again.getThenRegion().front());
    Value fresh = RestartOp::create(b, loc, state.getType(), state);
    scf::YieldOp::create(b, loc, applyRuns(fresh, t, field[kKeyBegin], field[kKeyEnd], /*exact=*/true));
    b.setInsertionPointToStart(&again.getElseRegion().front());
    scf::YieldOp::create(b, loc, state);
    b.setInsertionPointAfter(again);
    state = addSink(again.getResult(0));
    storeTile([&] { FinishPartialOp::create(b, loc, state, partials, mul(t, queryTile), field[kRows]); },
              [&] { FinishOp::create(b, loc, state, outputView, rowOf(t), lseRow); });
    return Value();
  });
}

func::FuncOp TaskBuilder::build(StringRef name) {
  OpBuilder::InsertionGuard guard(b);
  func::FuncOp fn = start(name);
  tiles = b.createOrFold<arith::CeilDivSIOp>(loc, field[kRows], index(queryTile));
  beginTiles();
  passKeys();
  finishTiles();
  finish();
  return fn;
}

} // namespace

ScoreUnit getScoreUnit(AttentionOp op) {
  if (op.getNormalizer() == Normalizer::Sigmoid)
    return ScoreUnit::Sigmoid;
  if (op.getNormalizer() == Normalizer::None)
    return ScoreUnit::Weight;
  return op.getScoreBlock() || op.isCounted() ? ScoreUnit::Natural : ScoreUnit::Log2;
}

func::FuncOp buildTask(OpBuilder &builder, const KernelSource &source, StringRef name, int64_t queryTile) {
  return TaskBuilder(builder, source, queryTile).build(name);
}

} // namespace attn
