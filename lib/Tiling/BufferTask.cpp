//===- BufferTask.cpp - Tasks of threads that share a buffer --------------===//
//
// One query tile per task, of one query head or of `pack` heads that share keys. Its keys and values are fetched into
// slots of a buffer a few tiles ahead, while earlier tiles are computed. Tiles are taken from the last to the first:
// under a causal mask the diagonal comes first, and large scores early spare later changes of the reference. Full and
// partial tiles share the code of the products; only the work of the mask is jumped over.
//
//===----------------------------------------------------------------------===//
#include "TaskFrame.h"
#include "attn/Runtime/Abi.h"

using namespace mlir;

namespace attn {
using namespace tile;

namespace {

class BufferTaskBuilder : TaskFrame {
public:
  BufferTaskBuilder(OpBuilder &b, const KernelSource &source)
      : TaskFrame(b, source, source.schedule.getQueryTile()), keyTile(source.schedule.getKeyTile()),
        stages(source.schedule.getStages()) {}

  func::FuncOp build(StringRef name);

private:
  /// A tile of keys: its first key row, its rows (0: no tile is left), and whether some of it is masked.
  struct Step {
    Value row, count, partial;
  };
  /// Where the walk over the runs stands: a tile of the run [begin, end).
  struct Cursor {
    Value run, row, begin, end, partial;
    SmallVector<Value> values() const { return {run, row, begin, end, partial}; }
    static Cursor of(ValueRange v) { return {v[0], v[1], v[2], v[3], v[4]}; }
  };

  Cursor lastTile(Value run, Value begin, Value end, Value partial);
  Cursor exhausted();
  Cursor enter(Value run);
  Cursor firstCursor();
  Cursor advance(const Cursor &cursor);
  Step stepOf(const Cursor &cursor);

  Value makeBuffer(int64_t slots, int64_t rows, Value tensor);
  Cursor fetchFirst(SmallVector<Step> &ahead);
  Value startTile(Cursor &cursor, SmallVector<Step> &ahead);
  void fetch(Value tensor, Value row, Value count, Value buffer, Value slot);
  void fetchStep(const Step &step, Value slot);
  void fetchAhead(ArrayRef<Step> steps, Value slot);
  Value passKeys(Value state, Cursor cursor, SmallVector<Step> ahead, bool exact);
  Value applyTile(Value state, const Step &step, Value slot, bool exact);
  Value applyMask(Value scores, const Step &step, bool exact);
  Value redo(Value state);
  void store(Value state);

  Value i32(int64_t v) { return arith::ConstantIntOp::create(b, loc, b.getI32Type(), v); }
  Value toI32(Value v) { return arith::IndexCastOp::create(b, loc, b.getI32Type(), v); }
  Value less(Value x, Value y) { return compare(arith::CmpIPredicate::slt, x, y); }
  SmallVector<Value> choose(TypeRange types, Value condition, llvm::function_ref<SmallVector<Value>()> then,
                            llvm::function_ref<SmallVector<Value>()> otherwise);
  SmallVector<Value> loop(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                          llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  SmallVector<Type> cursorTypes() {
    SmallVector<Type> types(4, b.getI32Type());
    types.push_back(b.getI1Type());
    return types;
  }
  void when(Value condition, llvm::function_ref<void()> then);

  int64_t keyTile, stages;
  Value queryBuffer, keyBuffer, valueBuffer;
  Value keyBegin, keyEnd, firstRun; // i32
};

// Bodies are filled where they stand, since regions look at what surrounds them.
SmallVector<Value> BufferTaskBuilder::choose(TypeRange types, Value condition,
                                             llvm::function_ref<SmallVector<Value>()> then,
                                             llvm::function_ref<SmallVector<Value>()> otherwise) {
  auto branch = scf::IfOp::create(b, loc, types, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, loc, otherwise());
  return llvm::to_vector_of<Value>(branch.getResults());
}

SmallVector<Value> BufferTaskBuilder::loop(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                                           llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  auto loop = scf::WhileOp::create(b, loc, init.getTypes(), init);
  SmallVector<Location> locs(init.size(), loc);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, init.getTypes(), locs);
  scf::ConditionOp::create(b, loc, condition(before->getArguments()), before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, init.getTypes(), locs);
  scf::YieldOp::create(b, loc, body(after->getArguments()));
  return llvm::to_vector_of<Value>(loop.getResults());
}

void BufferTaskBuilder::when(Value condition, llvm::function_ref<void()> then) {
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  then();
}

//===----------------------------------------------------------------------===//
// The walk over the runs, from the last to the first
//===----------------------------------------------------------------------===//

BufferTaskBuilder::Cursor BufferTaskBuilder::lastTile(Value run, Value begin, Value end, Value partial) {
  Value before = arith::DivUIOp::create(b, loc, sub(sub(end, begin), i32(1)), i32(keyTile));
  Value row = add(begin, arith::MulIOp::create(b, loc, before, i32(keyTile)));
  return {run, row, begin, end, partial};
}

BufferTaskBuilder::Cursor BufferTaskBuilder::exhausted() {
  Value zero = i32(0), no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
  return {i32(-1), zero, zero, zero, no};
}

// Runs ascend, so once one lies before the task's keys all that remain do.
BufferTaskBuilder::Cursor BufferTaskBuilder::enter(Value run) {
  Value at = toIndex(run), exists = compare(arith::CmpIPredicate::sge, run, firstRun);
  return Cursor::of(choose(
      cursorTypes(), exists,
      [&] {
        Value begin = max(load(runs, {at, index(0)}), keyBegin), end = min(load(runs, {at, index(1)}), keyEnd);
        Value partial = compare(arith::CmpIPredicate::ne, load(runs, {at, index(2)}), i32(ATTN_FULL));
        return choose(
            cursorTypes(), less(begin, end), [&] { return lastTile(run, begin, end, partial).values(); },
            [&] { return exhausted().values(); });
      },
      [&] { return exhausted().values(); }));
}

BufferTaskBuilder::Cursor BufferTaskBuilder::firstCursor() {
  keyBegin = toI32(field[kKeyBegin]), keyEnd = toI32(field[kKeyEnd]);
  if (!source.hasMask) {
    Value no = arith::ConstantOp::create(b, loc, b.getBoolAttr(false));
    return Cursor::of(choose(
        cursorTypes(), less(keyBegin, keyEnd), [&] { return lastTile(i32(0), keyBegin, keyEnd, no).values(); },
        [&] { return exhausted().values(); }));
  }
  auto offset = [&](int64_t i) { return arith::TruncIOp::create(b, loc, b.getI32Type(), load(offsets, {index(i)})); };
  firstRun = offset(0);
  Value last = sub(offset(1), i32(1));
  // Runs behind the keys of this part of the keys are not its own.
  Value run = loop(
      last,
      [&](ValueRange carried) {
        return choose(
            b.getI1Type(), compare(arith::CmpIPredicate::sge, carried[0], firstRun),
            [&]() -> SmallVector<Value> {
              Value begin = load(runs, {toIndex(carried[0]), index(0)});
              return {compare(arith::CmpIPredicate::sge, begin, keyEnd)};
            },
            [&]() -> SmallVector<Value> { return {arith::ConstantOp::create(b, loc, b.getBoolAttr(false))}; })[0];
      },
      [&](ValueRange carried) -> SmallVector<Value> { return {sub(carried[0], i32(1))}; })[0];
  return enter(run);
}

BufferTaskBuilder::Cursor BufferTaskBuilder::advance(const Cursor &cursor) {
  return Cursor::of(choose(
      cursorTypes(), less(cursor.begin, cursor.row),
      [&]() -> SmallVector<Value> {
        return {cursor.run, sub(cursor.row, i32(keyTile)), cursor.begin, cursor.end, cursor.partial};
      },
      [&] { return (source.hasMask ? enter(sub(cursor.run, i32(1))) : exhausted()).values(); }));
}

BufferTaskBuilder::Step BufferTaskBuilder::stepOf(const Cursor &cursor) {
  return {cursor.row, min(sub(cursor.end, cursor.row), i32(keyTile)), cursor.partial};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value BufferTaskBuilder::makeBuffer(int64_t slots, int64_t rows, Value tensor) {
  auto type = cast<MemRefType>(tensor.getType());
  return BufferOp::create(b, loc,
                          BufferType::get(b.getContext(), slots, rows, type.getShape().back(), type.getElementType()));
}

void BufferTaskBuilder::fetch(Value tensor, Value row, Value count, Value buffer, Value slot) {
  FetchOp::create(b, loc, tensor, row, count, buffer, slot);
}

void BufferTaskBuilder::fetchStep(const Step &step, Value slot) {
  when(less(i32(0), step.count), [&] {
    if (keyBuffer)
      fetch(keyView, toIndex(step.row), toIndex(step.count), keyBuffer, slot);
    fetch(valueView, toIndex(step.row), toIndex(step.count), valueBuffer, slot);
  });
  CommitOp::create(b, loc);
}

// Puts the first tiles under way; answers where the walk stands behind them. A single buffer waits for the loop.
BufferTaskBuilder::Cursor BufferTaskBuilder::fetchFirst(SmallVector<Step> &ahead) {
  Cursor cursor = firstCursor();
  for (int64_t stage = 0; stage < std::max<int64_t>(stages - 1, 1); ++stage) {
    ahead.push_back(stepOf(cursor));
    if (stages > 1)
      fetchStep(ahead.back(), index(stage));
    cursor = advance(cursor);
  }
  return cursor;
}

Value BufferTaskBuilder::startTile(Cursor &cursor, SmallVector<Step> &ahead) {
  if (!op.getScores()) {
    queryBuffer = makeBuffer(1, queryTile, query);
    keyBuffer = makeBuffer(stages, keyTile, key);
  }
  valueBuffer = makeBuffer(stages, keyTile, value);
  if (queryBuffer)
    fetch(queryView, field[kRow], field[kRows], queryBuffer, index(0));
  CommitOp::create(b, loc);
  cursor = fetchFirst(ahead);
  AwaitOp::create(b, loc, stages - 1);
  factor = scale();
  return StartOp::create(b, loc, stateType(), queryBuffer, factor);
}

Value BufferTaskBuilder::applyMask(Value scores, const Step &step, bool exact) {
  auto masked = [&] {
    Value kept = countKept(scores, field[kRow], toIndex(step.row), /*modified=*/false);
    if (source.hasMask)
      kept = mask(kept, field[kRow], toIndex(step.row));
    return ClipOp::create(b, loc, kept.getType(), kept, toIndex(step.count)).getResult();
  };
  if (exact)
    return masked();
  Value cut = arith::OrIOp::create(b, loc, step.partial, less(step.count, i32(keyTile)));
  return choose(
      scores.getType(), cut, [&]() -> SmallVector<Value> { return {masked()}; },
      [&]() -> SmallVector<Value> { return {scores}; })[0];
}

Value BufferTaskBuilder::applyTile(Value state, const Step &step, Value slot, bool exact) {
  Value count = toIndex(step.count);
  Value scores = products(state, keyBuffer, slot, field[kRow], toIndex(step.row), count);
  scores = relative(scores, state, queryBuffer, field[kRow], toIndex(step.row));
  scores = modify(scores, field[kRow], toIndex(step.row));
  scores = applyMask(scores, step, exact);
  auto softmax = SoftmaxOp::create(b, loc, tileType(), state.getType(), scores, state, exact);
  return AccumulateOp::create(b, loc, state.getType(), softmax.getWeights(), valueBuffer, slot, count,
                              softmax.getResult(), /*skipZero=*/exact);
}

// Fetches a later tile while that in `slot` is computed; a single buffer has to be free first, and be there then.
void BufferTaskBuilder::fetchAhead(ArrayRef<Step> steps, Value slot) {
  AwaitOp::create(b, loc, std::max<int64_t>(stages - 2, 0));
  if (stages == 1) {
    fetchStep(steps.front(), slot);
    AwaitOp::create(b, loc, 0);
    return;
  }
  Value before = sub(add(slot, index(stages)), index(1));
  fetchStep(steps.back(), arith::RemUIOp::create(b, loc, before, index(stages)));
}

// Carried: the state, the slot of the tile to compute, the tiles that are under way, the next one to fetch.
Value BufferTaskBuilder::passKeys(Value state, Cursor cursor, SmallVector<Step> ahead, bool exact) {
  SmallVector<Value> init{state, index(0)};
  for (const Step &step : ahead)
    init.append({step.row, step.count, step.partial});
  llvm::append_range(init, cursor.values());
  auto wrapped = [&](Value slot) {
    Value end = compare(arith::CmpIPredicate::eq, slot, index(stages));
    return arith::SelectOp::create(b, loc, end, index(0), slot).getResult();
  };
  return loop(
      init, [&](ValueRange carried) { return less(i32(0), carried[3]); },
      [&](ValueRange carried) {
        Value slot = carried[1];
        SmallVector<Step> steps;
        for (size_t i = 0; i < ahead.size(); ++i)
          steps.push_back({carried[2 + 3 * i], carried[3 + 3 * i], carried[4 + 3 * i]});
        Cursor next = Cursor::of(carried.take_back(5));
        steps.push_back(stepOf(next));
        fetchAhead(steps, slot);
        SmallVector<Value> results{applyTile(carried[0], steps.front(), slot, exact), wrapped(add(slot, index(1)))};
        for (const Step &step : ArrayRef(steps).drop_front())
          results.append({step.row, step.count, step.partial});
        llvm::append_range(results, advance(next).values());
        return results;
      })[0];
}

// An infinity or a NaN somewhere: once more, exactly. Slots are free once all are here.
Value BufferTaskBuilder::redo(Value state) {
  Value lost = CheckOp::create(b, loc, b.getI1Type(), state);
  return choose(
      state.getType(), lost,
      [&]() -> SmallVector<Value> {
        Value fresh = RestartOp::create(b, loc, state.getType(), state);
        SmallVector<Step> ahead;
        Cursor cursor = fetchFirst(ahead);
        return {passKeys(fresh, cursor, ahead, /*exact=*/true)};
      },
      [&]() -> SmallVector<Value> { return {state}; })[0];
}

void BufferTaskBuilder::store(Value state) {
  storeTile([&] { FinishPartialOp::create(b, loc, state, partials, index(0), mul(field[kRows], pack())); },
            [&] { FinishOp::create(b, loc, state, outputView, field[kRow], lseRow); });
}

func::FuncOp BufferTaskBuilder::build(StringRef name) {
  OpBuilder::InsertionGuard guard(b);
  func::FuncOp fn = start(name);
  Cursor cursor;
  SmallVector<Step> ahead;
  Value state = startTile(cursor, ahead);
  state = passKeys(state, cursor, ahead, /*exact=*/false);
  store(addSink(redo(state)));
  finish();
  return fn;
}

} // namespace

func::FuncOp buildBufferTask(OpBuilder &builder, const KernelSource &source, StringRef name) {
  return BufferTaskBuilder(builder, source).build(name);
}

} // namespace attn
