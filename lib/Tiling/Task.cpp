//===- Task.cpp - The task function of a kernel ---------------------------===//
#include "Task.h"
#include "attn/Support/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn {
using namespace tile;

namespace {

constexpr double kLog2e = 1.44269504088896341;

/// Builds one task function; the members are the values that its parts share.
class TaskBuilder {
public:
  TaskBuilder(OpBuilder &b, const KernelSource &source, int64_t queryTile)
      : b(b), loc(source.op->getLoc()), source(source), op(source.op), queryTile(queryTile),
        unit(getScoreUnit(source.op)) {}

  func::FuncOp build(StringRef name);

private:
  using Body = llvm::function_ref<void(Value)>;

  SmallVector<Type> argumentTypes();
  void bindArguments(Block &entry);
  void nameArguments(func::FuncOp fn);
  void makeViews();
  Value view(Value tensor, Value head, Value token, Value count);
  Value lseView();
  Value scale();

  void beginTiles();
  void passKeys();
  void finishTiles();
  /// Applies the key rows of the task's runs within [from, to) to the state of query tile `tileIndex`.
  Value applyRuns(Value state, Value tileIndex, Value from, Value to, bool exact);
  Value applyKeys(Value state, Value tileIndex, Value from, Value to, bool partial, bool exact);
  Value applyTile(Value state, Value tileIndex, Value key, Value count, bool partial, bool exact);

  Value slot(Value index);
  Value rowOf(Value tileIndex) { return add(field[kRow], mul(tileIndex, queryTile)); }
  Value position(Value token, Value row) { return add(token, mul(row, source.reindexing.step())); }
  Value forTiles(Value from, Value to, int64_t step, Value carried, llvm::function_ref<Value(Value, Value)> body);

  Value index(int64_t v) { // constants stand at the start, each once
    Value &known = constants[v];
    if (!known) {
      OpBuilder start = OpBuilder::atBlockBegin(entry);
      known = arith::ConstantIndexOp::create(start, loc, v);
    }
    return known;
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(loc, x, y); }
  Value sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(loc, x, y); }
  Value mul(Value x, int64_t y) { return b.createOrFold<arith::MulIOp>(loc, x, index(y)); }
  Value min(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(loc, x, y); }
  Value max(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(loc, x, y); }
  Value load(Value memref, ValueRange at) { return memref::LoadOp::create(b, loc, memref, at); }
  Value toIndex(Value v) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), v); }

  OpBuilder &b;
  Location loc;
  const KernelSource &source;
  AttentionOp op;
  int64_t queryTile;
  ScoreUnit unit;

  Block *entry = nullptr;
  llvm::DenseMap<int64_t, Value> constants;
  Value query, key, value, output, lse;
  SmallVector<Value> tensors, members, field;
  Value offsets, runs, scratch, partials;
  Value dim, valueDim, tiles;
  Value queryView, keyView, valueView, outputView, lseRow;
};

MemRefType anyStrides(MLIRContext *context, ArrayRef<int64_t> shape, Type element, bool innerContiguous) {
  SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
  if (innerContiguous)
    strides.back() = 1;
  return MemRefType::get(shape, element, StridedLayoutAttr::get(context, ShapedType::kDynamic, strides));
}

// All extents but head_dim are dynamic in a task; booleans lie in bytes.
SmallVector<Type> TaskBuilder::argumentTypes() {
  MLIRContext *context = b.getContext();
  int64_t any = ShapedType::kDynamic;
  SmallVector<Type> types;
  for (Type type :
       {op.getQuery().getType(), op.getKey().getType(), op.getValue().getType(), op.getOutput().getType()}) {
    auto tensor = cast<RankedTensorType>(type);
    types.push_back(anyStrides(context, {any, any, any, tensor.getShape().back()}, tensor.getElementType(), true));
  }
  if (op.getLse())
    types.push_back(anyStrides(context, {any, any, any}, b.getF32Type(), false));
  auto captured = [&](Value tensor, Type element) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(tensor.getType()).getRank(), any);
    types.push_back(anyStrides(context, shape, element.isInteger(1) ? b.getI8Type() : element, false));
  };
  for (Value tensor : source.captures.tensors)
    captured(tensor, cast<RankedTensorType>(tensor.getType()).getElementType());
  for (const Table &table : source.captures.tables)
    if (table.kind == Table::Kind::Members)
      captured(source.captures.tensors[table.operand], b.getI8Type());
  types.append(kNumTaskFields, b.getIndexType());
  types.push_back(MemRefType::get({any}, b.getI64Type()));
  types.push_back(MemRefType::get({any, 3}, b.getI32Type()));
  types.append(2, MemRefType::get({any}, b.getF32Type()));
  return types;
}

void TaskBuilder::bindArguments(Block &entry) {
  auto args = entry.getArguments();
  auto take = [&] {
    Value v = args.front();
    args = args.drop_front();
    return v;
  };
  query = take(), key = take(), value = take(), output = take();
  if (op.getLse())
    lse = take();
  for (size_t i = 0; i < source.captures.tensors.size(); ++i)
    tensors.push_back(take());
  for (const Table &table : source.captures.tables)
    if (table.kind == Table::Kind::Members)
      members.push_back(take());
  for (int i = 0; i < kNumTaskFields; ++i)
    field.push_back(take());
  offsets = take(), runs = take(), scratch = take(), partials = take();
}

// For the reader of the tile stage.
void TaskBuilder::nameArguments(func::FuncOp fn) {
  static constexpr const char *fields[] = {
#define ATTN_TASK_FIELD(Name, name) #name,
#include "attn/Runtime/Fields.def"
  };
  auto name = [&](Value v, const Twine &text) {
    fn.setArgAttr(cast<BlockArgument>(v).getArgNumber(), kNameAttr, b.getStringAttr(text));
  };
  for (auto [v, text] : {std::pair(query, "query"), {key, "key"}, {value, "value"}, {output, "output"}})
    name(v, text);
  if (lse)
    name(lse, "lse");
  for (auto [i, v] : llvm::enumerate(tensors))
    name(v, "captured" + Twine(i));
  for (auto [i, v] : llvm::enumerate(members))
    name(v, "members" + Twine(i));
  for (auto [v, text] : llvm::zip(field, fields))
    name(v, text);
  for (auto [v, text] : {std::pair(offsets, "offsets"), {runs, "runs"}, {scratch, "scratch"}, {partials, "partials"}})
    name(v, text);
}

// The rows of a class as a matrix: token, token + step, ...
Value TaskBuilder::view(Value tensor, Value head, Value token, Value count) {
  auto type = cast<MemRefType>(tensor.getType());
  int64_t width = type.getShape().back();
  OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
  OpFoldResult step = b.getIndexAttr(source.reindexing.step());
  OpFoldResult columns = width >= 0 ? OpFoldResult(b.getIndexAttr(width))
                                    : OpFoldResult(b.createOrFold<memref::DimOp>(loc, tensor, index(3)));
  auto result = anyStrides(b.getContext(), {ShapedType::kDynamic, width}, type.getElementType(), true);
  return memref::SubViewOp::create(b, loc, result, tensor, ArrayRef<OpFoldResult>{field[kBatch], head, token, zero},
                                   ArrayRef<OpFoldResult>{one, one, count, columns},
                                   ArrayRef<OpFoldResult>{one, one, step, one});
}

Value TaskBuilder::lseView() {
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult step = b.getIndexAttr(source.reindexing.step());
  auto result = anyStrides(b.getContext(), {ShapedType::kDynamic}, b.getF32Type(), false);
  return memref::SubViewOp::create(
      b, loc, result, lse, ArrayRef<OpFoldResult>{field[kBatch], field[kHead], field[kQueryToken]},
      ArrayRef<OpFoldResult>{one, one, field[kQueryCount]}, ArrayRef<OpFoldResult>{one, one, step});
}

void TaskBuilder::makeViews() {
  auto extent = [&](Value tensor) { return b.createOrFold<memref::DimOp>(loc, tensor, index(3)); };
  dim = extent(query);
  valueDim = extent(value);
  queryView = view(query, field[kHead], field[kQueryToken], field[kQueryCount]);
  keyView = view(key, field[kKeyHead], field[kKeyToken], field[kKeyCount]);
  valueView = view(value, field[kKeyHead], field[kKeyToken], field[kKeyCount]);
  outputView = view(output, field[kHead], field[kQueryToken], field[kQueryCount]);
  if (lse)
    lseRow = lseView();
  tiles = b.createOrFold<arith::CeilDivSIOp>(loc, field[kRows], index(queryTile));
}

// Brings products to the unit of the states.
Value TaskBuilder::scale() {
  double factor = unit == ScoreUnit::Log2 ? kLog2e : 1;
  auto constant = [&](double v) -> Value {
    return arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(float(v)));
  };
  if (FloatAttr given = op.getScaleAttr())
    return constant(given.getValueAsDouble() * factor);
  int64_t known = op.getQueryType().getShape().back();
  if (known >= 0)
    return constant(factor / std::sqrt(double(known)));
  Value wide = arith::IndexCastOp::create(b, loc, b.getI32Type(), dim);
  Value root = math::SqrtOp::create(b, loc, arith::SIToFPOp::create(b, loc, b.getF32Type(), wide));
  return arith::DivFOp::create(b, loc, constant(factor), root);
}

Value TaskBuilder::slot(Value at) {
  auto known = [](Value tensor) {
    int64_t d = cast<MemRefType>(tensor.getType()).getShape().back();
    return d >= 0 ? d : -1;
  };
  auto type = StateType::get(b.getContext(), queryTile, known(query), known(value), unit);
  return SlotOp::create(b, loc, type, scratch, at, dim, valueDim, source.schedule.getKeyTile());
}

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
  Value factor = scale();
  Value shift = sub(add(field[kQueryToken], field[kQueryOffset]), field[kKeyToken]);
  int64_t step = source.reindexing.step();
  Value own = step == 1 ? shift : b.createOrFold<arith::DivSIOp>(loc, shift, index(step));
  forTiles(index(0), tiles, 1, {}, [&](Value t, Value) {
    Value state = slot(t);
    BeginOp::create(b, loc, state.getType(), state, queryView, keyView, rowOf(t), own, factor);
    return Value();
  });
}

Value TaskBuilder::applyTile(Value state, Value tileIndex, Value keyRow, Value count, bool partial, bool exact) {
  auto type = TileType::get(b.getContext(), source.schedule.getKeyTile(), queryTile);
  Value scores = ScoreOp::create(b, loc, type, state, keyView, keyRow, count);
  Value first = position(add(field[kQueryToken], field[kQueryOffset]), rowOf(tileIndex));
  Value firstKey = position(field[kKeyToken], keyRow);
  int64_t step = source.reindexing.step();
  bool nonnegative = op.getAlign() == Align::TopLeft;
  RegionInputs inputs{tensors, members, {}};
  SmallVector<Value> qkv{query, key, value};
  inputs.qkv = qkv;
  if (op.getScoreBlock()) {
    auto modify = ModifyOp::create(b, loc, type, scores, field[kBatch], field[kHead], first, firstKey, step,
                                   field[kNumQueries], field[kNumKeys], ValueRange(), nonnegative);
    fillModify(modify, source, inputs);
    scores = modify.getResult();
  }
  if (partial) {
    auto mask = MaskOp::create(b, loc, type, scores, field[kBatch], field[kHead], first, firstKey, step,
                               field[kNumQueries], field[kNumKeys], ValueRange(), nonnegative);
    fillMask(mask, source, inputs);
    scores = mask.getResult();
  }
  auto softmax = SoftmaxOp::create(b, loc, type, state.getType(), scores, state, exact);
  return AccumulateOp::create(b, loc, state.getType(), softmax.getWeights(), valueView, keyRow, count,
                              softmax.getResult(), partial || exact || op.getScoreBlock());
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
    state = again.getResult(0);
    Value partial = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, field[kPartial], index(0));
    auto which = scf::IfOp::create(b, loc, partial, /*withElseRegion=*/true);
    b.setInsertionPointToStart(&which.getThenRegion().front());
    FinishPartialOp::create(b, loc, state, partials, mul(t, queryTile), field[kRows]);
    b.setInsertionPointToStart(&which.getElseRegion().front());
    FinishOp::create(b, loc, state, outputView, rowOf(t), lseRow);
    return Value();
  });
}

func::FuncOp TaskBuilder::build(StringRef name) {
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType(argumentTypes(), {}));
  fn.setPrivate();
  OpBuilder::InsertionGuard guard(b);
  entry = fn.addEntryBlock();
  b.setInsertionPointToStart(entry);
  bindArguments(*entry);
  nameArguments(fn);
  makeViews();
  beginTiles();
  passKeys();
  finishTiles();
  func::ReturnOp::create(b, loc);
  return fn;
}

} // namespace

ScoreUnit getScoreUnit(AttentionOp op) { return op.getScoreBlock() ? ScoreUnit::Natural : ScoreUnit::Log2; }

func::FuncOp buildTask(OpBuilder &builder, const KernelSource &source, StringRef name, int64_t queryTile) {
  return TaskBuilder(builder, source, queryTile).build(name);
}

} // namespace attn
