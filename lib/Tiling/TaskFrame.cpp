//===- TaskFrame.cpp - What every form of a task shares -------------------===//
#include "TaskFrame.h"
#include "attn/Support/Names.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace attn {
using namespace tile;

static constexpr double kLog2e = 1.44269504088896341;

Value TaskFrame::index(int64_t v) {
  Value &known = constants[v];
  if (!known) {
    OpBuilder start = OpBuilder::atBlockBegin(entry);
    known = arith::ConstantIndexOp::create(start, loc, v);
  }
  return known;
}

static MemRefType anyStrides(MLIRContext *context, ArrayRef<int64_t> shape, Type element, bool innerContiguous) {
  SmallVector<int64_t> strides(shape.size(), ShapedType::kDynamic);
  if (innerContiguous)
    strides.back() = 1;
  return MemRefType::get(shape, element, StridedLayoutAttr::get(context, ShapedType::kDynamic, strides));
}

// All extents but head_dim are dynamic in a task; booleans lie in bytes.
SmallVector<Type> TaskFrame::argumentTypes() {
  MLIRContext *context = b.getContext();
  int64_t any = ShapedType::kDynamic;
  SmallVector<Type> types;
  for (Value operand : {getQueryOperand(op), op.getKeyRows(), Value(op.getValue()), Value(op.getOutput())}) {
    auto tensor = cast<RankedTensorType>(operand.getType());
    types.push_back(anyStrides(context, {any, any, any, tensor.getShape().back()}, tensor.getElementType(), true));
  }
  if (op.getLse())
    types.push_back(anyStrides(context, {any, any, any}, b.getF32Type(), false));
  auto captured = [&](Value tensor, Type element) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(tensor.getType()).getRank(), any);
    bool isContiguous = tensor == op.getTable() || tensor == op.getBias() || tensor == op.getScores();
    types.push_back(anyStrides(context, shape, element.isInteger(1) ? b.getI8Type() : element, isContiguous));
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

void TaskFrame::bindArguments() {
  auto args = entry->getArguments();
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
void TaskFrame::nameArguments(func::FuncOp fn) {
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

// The rows of a class as a matrix: token, token + step, ...; with `heads` above 1 one for each.
Value TaskFrame::view(Value tensor, Value head, Value token, Value count, int64_t heads) {
  auto type = cast<MemRefType>(tensor.getType());
  int64_t width = type.getShape().back();
  OpFoldResult one = b.getIndexAttr(1), zero = b.getIndexAttr(0);
  OpFoldResult step = b.getIndexAttr(this->step());
  OpFoldResult columns = width >= 0 ? OpFoldResult(b.getIndexAttr(width))
                                    : OpFoldResult(b.createOrFold<memref::DimOp>(loc, tensor, index(3)));
  SmallVector<int64_t> shape{heads, ShapedType::kDynamic, width};
  auto result = anyStrides(b.getContext(), ArrayRef(shape).drop_front(heads == 1), type.getElementType(), true);
  return memref::SubViewOp::create(b, loc, result, tensor, ArrayRef<OpFoldResult>{field[kBatch], head, token, zero},
                                   ArrayRef<OpFoldResult>{one, b.getIndexAttr(heads), count, columns},
                                   ArrayRef<OpFoldResult>{one, one, step, one});
}

// Rows are queries of the class and columns its keys.
Value TaskFrame::viewScores(Value tensor) {
  auto type = cast<MemRefType>(tensor.getType());
  OpFoldResult one = b.getIndexAttr(1), step = b.getIndexAttr(this->step());
  SmallVector<int64_t> shape{pack(), ShapedType::kDynamic, ShapedType::kDynamic};
  SmallVector<int64_t> apart(shape.size() - (pack() == 1), ShapedType::kDynamic);
  apart.back() = this->step();
  auto layout = StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, apart);
  auto result = MemRefType::get(ArrayRef(shape).drop_front(pack() == 1), type.getElementType(), layout);
  SmallVector<OpFoldResult> offsets{field[kBatch], field[kHead], field[kQueryToken], field[kKeyToken]};
  SmallVector<OpFoldResult> sizes{one, b.getIndexAttr(pack()), field[kQueryCount], field[kKeyCount]};
  SmallVector<OpFoldResult> strides{one, one, step, step};
  size_t skipped = 4 - type.getRank();
  return memref::SubViewOp::create(b, loc, result, tensor, ArrayRef(offsets).drop_front(skipped),
                                   ArrayRef(sizes).drop_front(skipped), ArrayRef(strides).drop_front(skipped));
}

Value TaskFrame::lseView() {
  OpFoldResult one = b.getIndexAttr(1);
  OpFoldResult step = b.getIndexAttr(this->step());
  SmallVector<int64_t> shape{pack(), ShapedType::kDynamic};
  auto result = anyStrides(b.getContext(), ArrayRef(shape).drop_front(pack() == 1), b.getF32Type(), false);
  return memref::SubViewOp::create(
      b, loc, result, lse, ArrayRef<OpFoldResult>{field[kBatch], field[kHead], field[kQueryToken]},
      ArrayRef<OpFoldResult>{one, b.getIndexAttr(pack()), field[kQueryCount]}, ArrayRef<OpFoldResult>{one, one, step});
}

void TaskFrame::makeViews() {
  auto extent = [&](Value tensor) { return b.createOrFold<memref::DimOp>(loc, tensor, index(3)); };
  valueDim = extent(value);
  if (op.getScores()) {
    dim = index(0);
    scoresView = viewScores(captured(op.getScores()));
  } else {
    dim = extent(query);
    queryView = view(query, field[kHead], field[kQueryToken], field[kQueryCount], pack());
  }
  keyView = view(key, field[kKeyHead], field[kKeyToken], field[kKeyCount]);
  valueView = view(value, field[kKeyHead], field[kKeyToken], field[kKeyCount]);
  outputView = view(output, field[kHead], field[kQueryToken], field[kQueryCount], pack());
  if (lse)
    lseRow = lseView();
}

// Brings products to the unit of the states.
Value TaskFrame::scale() {
  double factor = unit == ScoreUnit::Log2 ? kLog2e : 1;
  auto constant = [&](double v) -> Value {
    return arith::ConstantFloatOp::create(b, loc, b.getF32Type(), llvm::APFloat(float(v)));
  };
  if (FloatAttr given = op.getScaleAttr())
    return constant(given.getValueAsDouble() * factor);
  if (op.getScores())
    return constant(factor);
  int64_t known = op.getHeadDim();
  if (known >= 0)
    return constant(factor / std::sqrt(double(known)));
  Value wide = arith::IndexCastOp::create(b, loc, b.getI32Type(), dim);
  Value root = math::SqrtOp::create(b, loc, arith::SIToFPOp::create(b, loc, b.getF32Type(), wide));
  return arith::DivFOp::create(b, loc, constant(factor), root);
}

StateType TaskFrame::stateType() {
  auto known = [](Value tensor) {
    int64_t d = cast<MemRefType>(tensor.getType()).getShape().back();
    return d >= 0 ? d : -1;
  };
  return StateType::get(b.getContext(), queryTile, op.getScores() ? 0 : known(query), known(value), unit);
}

/// The largest power of 2 that divides the positions of all rows that `rows` divides.
int64_t TaskFrame::powerOf2In(int64_t rows) {
  switch (source.reindexing.kind) {
  case ReindexKind::Dense:
    return int64_t(1) << llvm::countr_zero(uint64_t(rows));
  case ReindexKind::Block:
    return int64_t(1) << llvm::countr_zero(uint64_t(rows | source.reindexing.size));
  case ReindexKind::Residue:
    return 1;
  }
  llvm_unreachable("unknown reindexing");
}

// To a thread of a GPU positions are this and a small number: the bits tell that all are in one block of a table.
Value TaskFrame::positionAtMultiple(Value token, Value row, int64_t multiple) {
  Value exact = position(token, row);
  return multiple > 1 ? arith::AndIOp::create(b, loc, exact, index(-multiple)).getResult() : exact;
}

template <typename RegionOp>
RegionOp TaskFrame::region(Value scores, Value row, Value keyRow) {
  bool nonnegative = op.getAlign() == Align::TopLeft, threads = source.schedule.getWarps() > 0;
  int64_t queries = threads && nonnegative && queryTile % pack() == 0 ? powerOf2In(queryTile / pack()) : 1;
  Value first = positionAtMultiple(add(field[kQueryToken], field[kQueryOffset]), row, queries);
  Value firstKey = positionAtMultiple(field[kKeyToken], keyRow, threads ? powerOf2In(source.schedule.getGranule()) : 1);
  return RegionOp::create(b, loc, scores.getType(), scores, field[kBatch], field[kHead], first, firstKey, step(),
                          field[kNumQueries], field[kNumKeys], ValueRange(), nonnegative, pack());
}

Value TaskFrame::products(Value state, Value keys, Value slot, Value row, Value keyRow, Value count) {
  if (op.getScores())
    return ReadOp::create(b, loc, tileType(), state, scoresView, row, keyRow, count, factor);
  return ScoreOp::create(b, loc, tileType(), state, keys, slot, count);
}

Value TaskFrame::relative(Value scores, Value state, Value buffer, Value row, Value keyRow) {
  if (!op.getTable())
    return scores;
  Value first = position(add(field[kQueryToken], field[kQueryOffset]), row);
  Value distance = sub(first, position(field[kKeyToken], keyRow));
  Value bias = op.getBias() ? captured(op.getBias()) : Value();
  return RelativeOp::create(b, loc, scores.getType(), scores, state, buffer, captured(op.getTable()), bias,
                            field[kHead], distance, step(), factor, pack());
}

Value TaskFrame::modify(Value scores, Value row, Value keyRow) {
  return op.getScoreBlock() ? modifyBy(scores, row, keyRow, ModifyBy::Score) : scores;
}

Value TaskFrame::countKept(Value scores, Value row, Value keyRow, bool modified) {
  bool score = modified && op.getScoreBlock();
  if (!op.isCounted())
    return score ? modify(scores, row, keyRow) : scores;
  return modifyBy(scores, row, keyRow, score ? ModifyBy::Both : ModifyBy::Count);
}

Value TaskFrame::modifyBy(Value scores, Value row, Value keyRow, ModifyBy by) {
  auto modify = region<ModifyOp>(scores, row, keyRow);
  fillModify(modify, source, regionInputs(), by);
  return modify.getResult();
}

Value TaskFrame::mask(Value scores, Value row, Value keyRow) {
  auto mask = region<MaskOp>(scores, row, keyRow);
  fillMask(mask, source, regionInputs());
  return mask.getResult();
}

Value TaskFrame::isPartial() { return compare(arith::CmpIPredicate::ne, field[kPartial], index(0)); }

// Without a sum of weights there is nothing to merge by, and keys are not split.
void TaskFrame::storeTile(llvm::function_ref<void()> storePartial, llvm::function_ref<void()> store) {
  if (!op.isSoftmax())
    return store();
  auto which = scf::IfOp::create(b, loc, isPartial(), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&which.getThenRegion().front());
  storePartial();
  b.setInsertionPointToStart(&which.getElseRegion().front());
  store();
}

// One part of the keys adds it: the first.
Value TaskFrame::addSink(Value state) {
  if (!op.getSink())
    return state;
  Value isFirst = compare(arith::CmpIPredicate::sle, field[kPartial], index(1));
  auto branch = scf::IfOp::create(b, loc, state.getType(), isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&branch.getThenRegion().front());
  scf::YieldOp::create(
      b, loc, SinkOp::create(b, loc, state.getType(), state, captured(op.getSink()), field[kHead], pack()).getResult());
  b.setInsertionPointToStart(&branch.getElseRegion().front());
  scf::YieldOp::create(b, loc, state);
  return branch.getResult(0);
}

func::FuncOp TaskFrame::start(StringRef name) {
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType(argumentTypes(), {}));
  fn.setPrivate();
  entry = fn.addEntryBlock();
  b.setInsertionPointToStart(entry);
  bindArguments();
  qkv = {query, key, value};
  nameArguments(fn);
  makeViews();
  return fn;
}

} // namespace attn
