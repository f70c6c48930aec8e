//===- ConvertAttnTileToCPU.cpp - Tile ops to micro-kernel calls ----------===//
#include "MicroKernels.h"
#include "TaskForm.h"
#include "TileInstructions.h"
#include "attn/Codegen/CPU/Passes.h"
#include "attn/Schedule/TargetModel.h"
#include "attn/Support/Names.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTILETOCPU
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;
using namespace attn::cpu;

namespace {

/// Are scores of a task more than products with keys?
bool hasOtherScores(func::FuncOp task) {
  return task
      .walk([](Operation *op) {
        return isa<tile::RelativeOp, tile::ReadOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Does a task multiply queries with distances?
bool hasRelative(func::FuncOp task) {
  return task.walk([](tile::RelativeOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Are query, key and value of a task f16 or bf16?
bool isNarrow(func::FuncOp task) { return !cast<MemRefType>(task.getArgumentTypes()[0]).getElementType().isF32(); }

class TaskConverter {
public:
  TaskConverter(func::FuncOp task, ModuleOp module, RegisterBlock block)
      : task(task), module(module), block(block), hasStrip(hasRelative(task)), builder(module.getContext()) {}

  void run();

private:
  /// The memory behind a state and what every micro-kernel takes first: slot, head_dim, value_dim; and for all states
  /// of a task the weights of a tile, its keys and its values as f32, and products with distances. With tiles also the
  /// weights as pairs, the ring of packed blocks, its tags and the last block of keys, and the packed queries of the
  /// slot.
  struct Place {
    Values arguments;
    Value weights, keys, values, strip, pairs, ring, tags, tail, queries;
  };
  /// Rows of f32 and the first one.
  struct Rows {
    Value matrix, first;
  };
  Rows inF32(Value state, Value matrix, Value row, Value count, bool isKey);
  Place &place(Value state);
  MicroKernels &kernels(Value state);
  Value call(func::FuncOp fn, ValueRange arguments);
  Values withPlace(Value state, std::initializer_list<Value> more);
  bool hasTiles() const { return block.packedKeys; }
  void startTiles();
  void packKeys(tile::SoftmaxOp op, Value row, Value count);
  void settle(Value state);
  scf::ForOp findRun(tile::SoftmaxOp op);
  void convertRun(scf::ForOp loop, tile::SoftmaxOp op);
  Value runTiles(tile::SoftmaxOp op, Value row, Value end);
  Value runFewQueries(tile::SoftmaxOp op, Value row, Value end, Value queries);
  void convert(Operation *op);
  void convertSoftmax(tile::SoftmaxOp op);
  void convertAccumulate(tile::AccumulateOp op);
  Value flat(Value memref, OpFoldResult offset, Value size);

  func::FuncOp task;
  ModuleOp module;
  RegisterBlock block;
  bool hasStrip;
  bool skipsZeros = false; // has some tile keys of weight 0 that take no part?
  OpBuilder builder;
  llvm::DenseMap<Operation *, Place> places;
  std::optional<MicroKernels> cached;
};

Value TaskConverter::flat(Value memref, OpFoldResult offset, Value size) {
  auto anywhere = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {1});
  auto type = MemRefType::get({ShapedType::kDynamic}, builder.getF32Type(), anywhere);
  OpFoldResult one = builder.getIndexAttr(1);
  Value view = memref::SubViewOp::create(builder, memref.getLoc(), memref, offset, OpFoldResult(size), one);
  return view.getType() == type ? view : memref::CastOp::create(builder, memref.getLoc(), type, view).getResult();
}

// At the start of the workspace lie the weights of a tile, then its keys and values where these are not f32, then
// products with distances where there are any; behind them the slots.
TaskConverter::Place &TaskConverter::place(Value state) {
  tile::SlotOp slot = findSlot(state);
  Place &place = places[slot];
  if (!place.arguments.empty())
    return place;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(slot);
  auto type = cast<tile::StateType>(slot.getState().getType());
  Emit e(builder, slot.getLoc(), block.lanes);
  Value dim = type.getDim() >= 0 ? e.index(type.getDim()) : slot.getDim();
  Value valueDim = type.getValueDim() >= 0 ? e.index(type.getValueDim()) : slot.getValueDim();
  Value start = e.index(0);
  auto take = [&](Value size) {
    Value view = flat(slot.getWorkspace(), start, size);
    start = e.add(start, size);
    return view;
  };
  Value weights = e.index(slot.getKeyTile() * type.getQueries());
  place.weights = take(weights);
  if (isNarrow(task)) {
    place.keys = take(e.mul(dim, slot.getKeyTile()));
    place.values = take(e.mul(valueDim, slot.getKeyTile()));
  }
  if (hasStrip)
    place.strip = take(e.index(stripFloats(slot.getKeyTile(), type.getQueries(), block.lanes)));
  Value rows = e.add(e.add(dim, valueDim), kSlotRows), packed = e.index(0);
  if (hasTiles()) {
    MicroKernels &kernel = kernels(slot.getState());
    int64_t blocks = block.packedKeys / kTileDepth;
    place.pairs = take(e.index(slot.getKeyTile() * type.getQueries() / 2));
    place.ring = take(e.mul(kernel.ringFloats(e, dim, valueDim), blocks));
    place.tags = take(e.index(blocks));
    place.tail = take(e.mul(kernel.tileWords(e, dim), kTileDepth));
    rows = e.add(e.add(dim, e.roundUp(valueDim, kTileRows)), kSlotRows);
    packed = kernel.queryFloats(e, dim);
  }
  Value size = e.mul(rows, type.getQueries()), pitch = e.add(size, packed);
  start = e.add(start, e.mul(slot.getIndex(), pitch));
  place.arguments = {take(size), dim, valueDim};
  if (hasTiles())
    place.queries = take(packed);
  return place;
}

// At the start of a task nothing is packed.
void TaskConverter::startTiles() {
  tile::SlotOp first;
  task.walk([&](tile::SlotOp slot) {
    first = slot;
    return WalkResult::interrupt();
  });
  Block &entry = task.getBody().front();
  builder.setInsertionPointToStart(&entry);
  Emit e(builder, task.getLoc(), block.lanes);
  Value dim = e.make<memref::DimOp>(task.getArgument(0), e.index(3));
  Value valueDim = e.make<memref::DimOp>(task.getArgument(2), e.index(3));
  auto any = tile::SlotOp::create(builder, first.getLoc(), first.getState().getType(), first.getWorkspace(), e.index(0),
                                  dim, valueDim, first.getKeyTile());
  Value tags = place(any.getState()).tags;
  builder.setInsertionPointAfter(any);
  for (int64_t tag = 0; tag < block.packedKeys / kTileDepth; tag += block.lanes)
    e.vstore(e.splat(0), tags, e.index(tag));
  if (!block.amx)
    return;
  TileInstructions(e).configure();
  builder.setInsertionPoint(entry.getTerminator());
  TileInstructions(e).release();
  task->setAttr(kAMXAttr, builder.getUnitAttr());
}

MicroKernels &TaskConverter::kernels(Value state) {
  if (!cached)
    cached.emplace(module, task.getName(), block, cast<tile::StateType>(state.getType()), findSlot(state).getKeyTile());
  return *cached;
}

Value TaskConverter::call(func::FuncOp fn, ValueRange arguments) {
  auto op = func::CallOp::create(builder, task.getLoc(), fn, arguments);
  return op.getNumResults() ? op.getResult(0) : Value();
}

Values TaskConverter::withPlace(Value state, std::initializer_list<Value> more) {
  Values all = place(state).arguments;
  all.append(more);
  return all;
}

// Rows are widened once for a query tile, which costs two in a hundred of its products.
TaskConverter::Rows TaskConverter::inF32(Value state, Value matrix, Value row, Value count, bool isKey) {
  auto type = cast<MemRefType>(matrix.getType());
  if (type.getElementType().isF32())
    return {matrix, row};
  Place &at = place(state);
  Emit e(builder, matrix.getLoc(), block.lanes);
  Value columns = at.arguments[isKey ? 1 : 2], memory = isKey ? at.keys : at.values;
  call(kernels(state).widen(type), {matrix, row, count, columns, memory});
  auto strides = StridedLayoutAttr::get(builder.getContext(), ShapedType::kDynamic, {ShapedType::kDynamic, 1});
  auto wide = MemRefType::get(type.getShape(), builder.getF32Type(), strides);
  OpFoldResult width = type.isDynamicDim(1) ? OpFoldResult(columns) : builder.getIndexAttr(type.getDimSize(1));
  auto description = memref::ExtractStridedMetadataOp::create(builder, matrix.getLoc(), memory);
  Value rows = memref::ReinterpretCastOp::create(
      builder, matrix.getLoc(), wide, description.getBaseBuffer(), OpFoldResult(description.getOffset()),
      ArrayRef<OpFoldResult>{count, width}, ArrayRef<OpFoldResult>{columns, builder.getIndexAttr(1)});
  return {rows, e.index(0)};
}

/// What a micro-kernel takes behind the rows of a tile: where it stands, what its regions capture, and what queries are
/// multiplied with besides keys.
static Values chainArguments(Emit &e, const ScoreChain &chain, Value strip) {
  auto [score, read, relative, modify, mask] = chain;
  Values args;
  auto coordinates = [&](auto region) {
    args.append({region.getBatch(), region.getHead(), region.getQuery(), region.getKey(), region.getNumQueries(),
                 region.getNumKeys()});
  };
  if (mask)
    coordinates(mask);
  else if (modify)
    coordinates(modify);
  else
    args.append(6, e.index(0));
  if (modify)
    llvm::append_range(args, modify.getCaptured());
  if (mask)
    llvm::append_range(args, mask.getCaptured());
  if (read)
    args.append({read.getQuery(), read.getScale()});
  if (relative) {
    args.append({strip, relative.getTable(), relative.getHead(), relative.getDistance(), relative.getScale()});
    if (relative.getBias())
      args.push_back(relative.getBias());
  }
  return args;
}

/// The product that weights are for; a softmax has one in its block, see TaskForm.
static tile::AccumulateOp findAccumulate(tile::SoftmaxOp softmax) {
  for (Operation *user : softmax.getWeights().getUsers())
    if (auto accumulate = dyn_cast<tile::AccumulateOp>(user))
      return accumulate;
  return nullptr;
}

void TaskConverter::packKeys(tile::SoftmaxOp op, Value row, Value count) {
  Place &at = place(op.getState());
  Value key = ScoreChain::of(op).score.getKey(), value = findAccumulate(op).getValue();
  auto fn = kernels(op.getState()).packKeys(cast<MemRefType>(key.getType()), cast<MemRefType>(value.getType()));
  call(fn, {at.ring, at.tags, at.tail, at.arguments[1], at.arguments[2], key, value, row, count});
}

void TaskConverter::settle(Value state) {
  if (hasTiles() && block.exactSums)
    call(kernels(state).settle(), withPlace(state, {place(state).queries}));
}

// The loop over the tiles of a full run, as the tile stage makes it: nothing in it but one tile after the other.
scf::ForOp TaskConverter::findRun(tile::SoftmaxOp op) {
  ScoreChain chain = ScoreChain::of(op);
  auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
  MicroKernels &kernel = kernels(op.getState());
  if (!loop || chain.rowByRow() || op.getExact() || !(kernel.hasPipeline() || kernel.takesFewQueries()))
    return nullptr;
  Value row = loop.getInductionVar();
  tile::AccumulateOp accumulate = findAccumulate(op);
  auto count = chain.score.getCount().getDefiningOp<arith::MinSIOp>();
  auto rest = count ? count.getLhs().getDefiningOp<arith::SubIOp>() : nullptr;
  bool whole = rest && rest.getLhs() == loop.getUpperBound() && rest.getRhs() == row &&
               getConstantIntValue(count.getRhs()) == findSlot(op.getState()).getKeyTile() &&
               getConstantIntValue(loop.getStep()) == findSlot(op.getState()).getKeyTile();
  bool alone = llvm::all_of(*loop.getBody(), [&](Operation &inner) {
    return &inner == op || &inner == accumulate || inner.hasTrait<OpTrait::IsTerminator>() || isPure(&inner) ||
           isa<tile::ScoreOp>(inner);
  });
  bool same = accumulate->getBlock() == loop.getBody() && accumulate.getRow() == row &&
              accumulate.getCount() == count && chain.score.getRow() == row;
  return whole && alone && same ? loop : nullptr;
}

/// The keys of a run from `row` on that are done by a function of its own: the row behind them.
Value TaskConverter::runTiles(tile::SoftmaxOp op, Value row, Value end) {
  Emit e(builder, op.getLoc(), block.lanes);
  Place &at = place(op.getState());
  Value key = ScoreChain::of(op).score.getKey();
  auto keyType = cast<MemRefType>(key.getType());
  Value stop = e.min(end, e.add(row, block.packedKeys));
  packKeys(op, row, e.sub(stop, row));
  return call(kernels(op.getState()).tileRun(keyType),
              withPlace(op.getState(), {at.weights, key, row, stop, at.pairs, at.queries, at.ring}));
}

Value TaskConverter::runFewQueries(tile::SoftmaxOp op, Value row, Value end, Value queries) {
  Place &at = place(op.getState());
  Value key = ScoreChain::of(op).score.getKey(), value = findAccumulate(op).getValue();
  MicroKernels &kernel = kernels(op.getState());
  auto run = [&](bool pairs) {
    if (hasTiles() && !pairs)
      call(kernel.unpackQueries(), withPlace(op.getState(), {at.queries}));
    auto fn = kernel.fewQueriesRun(cast<MemRefType>(key.getType()), cast<MemRefType>(value.getType()), pairs);
    Values args = withPlace(op.getState(), {at.weights, key, value, row, end, queries});
    if (pairs)
      args.push_back(at.queries);
    return call(fn, args);
  };
  if (!kernel.fewQueriesArePairs())
    return run(/*pairs=*/false);
  Emit e(builder, op.getLoc(), block.lanes);
  auto yield = [&](bool pairs) {
    return [&, pairs](OpBuilder &, Location loc) { scf::YieldOp::create(builder, loc, run(pairs)); };
  };
  Value isOne = e.make<arith::CmpIOp>(arith::CmpIPredicate::eq, queries, e.index(1));
  return scf::IfOp::create(builder, op.getLoc(), isOne, yield(false), yield(true)).getResult(0);
}

// As many keys as one function can take, then one tile by itself, and again: what is left is less than a unit, or has a
// reference that is far too low. More than a few queries take all tiles one by one.
void TaskConverter::convertRun(scf::ForOp loop, tile::SoftmaxOp op) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  Emit e(builder, loop.getLoc(), block.lanes);
  Value end = loop.getUpperBound(), next, last;
  MicroKernels &kernel = kernels(op.getState());
  int64_t keyTile = findSlot(op.getState()).getKeyTile();
  Value queries = task.getArguments().drop_back(4).take_back(tile::kNumTaskFields)[tile::kRows], isFew;
  if (!kernel.hasPipeline())
    isFew = e.make<arith::CmpIOp>(arith::CmpIPredicate::sle, queries, e.index(kernel.mostFewQueries()));
  auto before = [&](OpBuilder &, Location loc, ValueRange row) {
    scf::ConditionOp::create(builder, loc, e.less(row[0], end), row);
  };
  auto few = [&](Value row) {
    auto branch = scf::IfOp::create(
        builder, loop.getLoc(), isFew,
        [&](OpBuilder &, Location loc) { scf::YieldOp::create(builder, loc, runFewQueries(op, row, end, queries)); },
        [&](OpBuilder &, Location loc) { scf::YieldOp::create(builder, loc, row); });
    return branch.getResult(0);
  };
  auto after = [&](OpBuilder &, Location loc, ValueRange row) {
    next = isFew ? few(row[0]) : runTiles(op, row[0], end);
    last = e.min(end, e.add(next, keyTile));
    if (isFew)
      last = e.select(isFew, last, end);
    scf::YieldOp::create(builder, loc, last);
  };
  Type index = builder.getIndexType();
  auto runs = scf::WhileOp::create(builder, loop.getLoc(), index, loop.getLowerBound(), before, after);
  loop->moveBefore(runs.getAfterBody()->getTerminator());
  loop.getLowerBoundMutable().assign(next);
  loop.getUpperBoundMutable().assign(last);
}

// Too low a reference shows in the weights, and the tile is done once more.
void TaskConverter::convertSoftmax(tile::SoftmaxOp op) {
  Value state = op.getState();
  ScoreChain chain = ScoreChain::of(op);
  tile::ScoreOp score = chain.score;
  Emit e(builder, op.getLoc(), block.lanes);
  Values behind = chainArguments(e, chain, place(state).strip);
  auto withRows = [&](Value key, Value row) {
    Value count = score ? score.getCount() : chain.read.getCount();
    Values args = withPlace(state, {place(state).weights, key, row, count});
    llvm::append_range(args, behind);
    return args;
  };
  auto inFloats = [&](bool exact) {
    Rows rows = score ? inF32(state, score.getKey(), score.getRow(), score.getCount(), /*isKey=*/true)
                      : Rows{chain.read.getScores(), chain.read.getKey()};
    auto key = cast<MemRefType>(rows.matrix.getType());
    Values args = withRows(rows.matrix, rows.first);
    if (!kernels(state).isSoftmax())
      return (void)call(kernels(state).weigh(key, chain), args);
    func::FuncOp online = kernels(state).onlineSoftmax(key, chain);
    if (exact)
      call(online, args);
    else
      e.ifThen(call(kernels(state).softmax(key, chain), args), [&] { call(online, args); });
  };
  if (scf::ForOp loop = findRun(op))
    convertRun(loop, op);
  if (op.getExact() || !hasTiles()) {
    inFloats(op.getExact());
  } else {
    Place &at = place(state);
    auto key = cast<MemRefType>(score.getKey().getType());
    Values args = withRows(score.getKey(), score.getRow());
    args.append({at.pairs, at.queries, at.ring, at.tail});
    packKeys(op, score.getRow(), score.getCount());
    e.ifThen(call(kernels(state).tileSoftmax(key, chain), args), [&] {
      settle(state);
      call(kernels(state).unpackQueries(), withPlace(state, {at.queries}));
      inFloats(/*exact=*/true);
      call(kernels(state).packWeights(),
           {at.weights, at.pairs, score.getCount(), block.exactSums ? at.queries : at.arguments[0]});
    });
  }
  auto type = cast<tile::StateType>(state.getType());
  Value slot = place(state).arguments[0];
  for (int64_t q = 0; q < type.getQueries(); q += block.lanes) // the sum after this tile becomes the sum
    e.vstore(e.vload(slot, e.index(2 * type.getQueries() + q)), slot, e.index(type.getQueries() + q));
}

// What is done again exactly has no other use for the fast code that leaves out masked keys where there is no region,
// or tiles do what is not exact. Otherwise a kernel with masked tiles has one copy, for full tiles too: the guard costs
// less than the copy is worth.
void TaskConverter::convertAccumulate(tile::AccumulateOp op) {
  MicroKernels &kernel = kernels(op.getState());
  auto softmax = op.getWeights().getDefiningOp<tile::SoftmaxOp>();
  if (hasTiles() && !softmax.getExact()) {
    Place &at = place(op.getState());
    call(block.amx ? kernel.tileAccumulate() : kernel.pairAccumulate(),
         withPlace(op.getState(), {at.pairs, at.ring, op.getRow(), op.getCount()}));
    return;
  }
  Rows rows = inF32(op.getState(), op.getValue(), op.getRow(), op.getCount(), /*isKey=*/false);
  auto value = cast<MemRefType>(rows.matrix.getType());
  Values args = withPlace(op.getState(), {place(op.getState()).weights, rows.matrix, rows.first, op.getCount()});
  bool isMasked = !softmax.getScores().getDefiningOp<tile::ScoreOp>();
  if (!softmax.getExact() || (isMasked && !hasTiles())) {
    call(kernel.accumulate(value, skipsZeros), args);
    return;
  }
  args.append({Emit(builder, op.getLoc(), block.lanes).index(0), args[2]});
  call(kernel.accumulateCarefully(value), args);
}

void TaskConverter::convert(Operation *operation) {
  builder.setInsertionPoint(operation);
  if (auto op = dyn_cast<tile::BeginOp>(operation)) {
    auto fn = kernels(op.getState())
                  .begin(cast<MemRefType>(op.getQuery().getType()), cast<MemRefType>(op.getKey().getType()));
    call(fn, withPlace(op.getState(), {op.getQuery(), op.getRow(), op.getKey(), op.getOwn(), op.getScale()}));
    if (hasTiles()) {
      Place &at = place(op.getState());
      call(kernels(op.getState()).packQueries(cast<MemRefType>(op.getQuery().getType())),
           {at.queries, at.arguments[1], op.getQuery(), op.getRow(), op.getScale()});
    }
  } else if (auto op = dyn_cast<tile::ClearOp>(operation)) {
    call(kernels(op.getState()).clear(), place(op.getState()).arguments);
  } else if (auto op = dyn_cast<tile::RestartOp>(operation)) {
    call(kernels(op.getState()).restart(), place(op.getState()).arguments);
    if (hasTiles())
      call(kernels(op.getState()).unpackQueries(), withPlace(op.getState(), {place(op.getState()).queries}));
  } else if (auto op = dyn_cast<tile::SoftmaxOp>(operation)) {
    convertSoftmax(op);
  } else if (auto op = dyn_cast<tile::AccumulateOp>(operation)) {
    convertAccumulate(op);
  } else if (auto op = dyn_cast<tile::CheckOp>(operation)) {
    settle(op.getState());
    op.replaceAllUsesWith(call(kernels(op.getState()).check(), place(op.getState()).arguments));
  } else if (auto op = dyn_cast<tile::SinkOp>(operation)) {
    Emit e(builder, op.getLoc(), block.lanes);
    call(kernels(op.getState()).sink(), withPlace(op.getState(), {e.load(op.getLogits(), op.getHead())}));
  } else if (auto op = dyn_cast<tile::FinishOp>(operation)) {
    auto lse = op.getLse() ? cast<MemRefType>(op.getLse().getType()) : MemRefType();
    auto fn = kernels(op.getState()).finish(cast<MemRefType>(op.getOutput().getType()), lse);
    Values args = withPlace(op.getState(), {op.getOutput(), op.getRow()});
    if (lse)
      args.push_back(op.getLse());
    call(fn, args);
  } else if (auto op = dyn_cast<tile::FinishPartialOp>(operation)) {
    auto fn = kernels(op.getState()).finishPartial(cast<MemRefType>(op.getPartials().getType()));
    call(fn, withPlace(op.getState(), {op.getPartials(), op.getRow(), op.getRows()}));
  }
}

void TaskConverter::run() {
  SmallVector<Operation *> ops;
  task.walk([&](Operation *op) {
    if (isa<tile::AttnTileDialect>(op->getDialect()) && !isa<tile::YieldOp>(op))
      ops.push_back(op);
  });
  task.walk([&](tile::FinishOp op) { block.exactSums |= bool(op.getLse()); });
  task.walk([&](tile::AccumulateOp op) {
    bool isExact = op.getWeights().getDefiningOp<tile::SoftmaxOp>().getExact();
    skipsZeros |= op.getSkipZero() && !isExact;
  });
  if (hasTiles())
    startTiles();
  for (Operation *op : ops)
    convert(op);
  // All states of a chain are their slot; loops then carry them without use, and the tile ops are dead.
  auto replace = [](Value v) {
    if (isa<tile::StateType>(v.getType()) && !v.getDefiningOp<tile::SlotOp>())
      v.replaceAllUsesWith(findSlot(v).getState());
  };
  SmallVector<Value> states;
  task.walk([&](Operation *op) {
    llvm::append_range(states, op->getResults());
    for (Region &region : op->getRegions())
      for (Block &inner : region)
        llvm::append_range(states, inner.getArguments());
  });
  llvm::for_each(llvm::reverse(states), replace);
  for (Operation *op : llvm::reverse(ops))
    if (!isa<tile::SlotOp>(op)) {
      op->dropAllUses();
      op->erase();
    }
}

/// A workspace holds the weights of a tile, its keys and values as f32, products with distances, then one slot per
/// query tile of a task.
void setScratch(tile::KernelOp kernel, func::FuncOp task, int64_t packedKeys, int64_t lanes) {
  tile::KernelConfig numbers = kernel.getNumbers();
  int64_t queries = std::max(numbers.query_tile, numbers.tail_tile), slots = numbers.group_tiles * queries;
  int64_t floats = slots + (isNarrow(task) ? numbers.key_tile : 0), weights = numbers.key_tile * queries;
  SmallVector<int64_t> sizes = {weights + kSlotRows * slots, floats, floats};
  if (hasRelative(task))
    sizes[0] += stripFloats(numbers.key_tile, queries, lanes);
  if (packedKeys) {
    // Pairs; the ring, its tags and a copy of the last block; factors and packed queries. What depends on a dimension
    // is rounded up to whole tiles.
    int64_t perDim = packedKeys / 2 + kTileDepth / 2 + slots / 2, perValueDim = packedKeys / 2 + slots;
    sizes[0] += weights / 2 + packedKeys / kTileDepth + numbers.group_tiles * kTileRows + slots +
                perDim * (kTileDepth - 1) + perValueDim * (kTileRows - 1);
    sizes[1] += perDim;
    sizes[2] += packedKeys / 2;
  }
  kernel.setScratch(sizes);
}

/// Keys whose packed form a kernel keeps; 0: it has no use for tiles. Packed blocks, and rows of weights, hold 32 keys.
int64_t choosePackedKeys(tile::KernelOp kernel, func::FuncOp task, int64_t l2Bytes) {
  tile::KernelConfig numbers = kernel.getNumbers();
  auto width = [&](unsigned argument) {
    int64_t dim = cast<MemRefType>(task.getArgumentTypes()[argument]).getShape().back();
    return dim >= 0 ? dim : int64_t(128);
  };
  bool narrow = cast<MemRefType>(task.getArgumentTypes()[0]).getElementType().isBF16();
  bool whole = numbers.key_tile % kTileDepth == 0 && numbers.key_granule % kTileDepth == 0, softmax = false;
  task.walk([&](tile::SlotOp slot) { softmax = isSoftmax(slot.getState().getType().getUnit()); });
  return narrow && whole && softmax && !hasOtherScores(task)
             ? getPackedKeys(l2Bytes, width(0), width(2), numbers.key_tile)
             : 0;
}

/// An op of a task, which this pass is to convert.
bool isTileOp(Operation *op) {
  return isa_and_present<tile::AttnTileDialect>(op->getDialect()) && !isa<tile::LaunchOp, tile::StepOp>(op);
}

struct ConvertAttnTileToCPU : impl::ConvertAttnTileToCPUBase<ConvertAttnTileToCPU> {
  using Base::Base;

  SmallVector<func::FuncOp> findTasks() {
    SmallVector<func::FuncOp> tasks;
    for (auto fn : getOperation().getOps<func::FuncOp>()) {
      WalkResult found =
          fn.walk([](Operation *op) { return isTileOp(op) ? WalkResult::interrupt() : WalkResult::advance(); });
      if (found.wasInterrupted())
        tasks.push_back(fn);
    }
    return tasks;
  }

  void runOnOperation() override {
    RegisterBlock block{lanes, rows, avx512Exp ? ExpForm::AVX512 : ExpForm::Portable};
    block.amx = amx;
    SmallVector<func::FuncOp> tasks = findTasks();
    if (llvm::any_of(tasks, [](func::FuncOp task) { return failed(checkTaskForm(task)); }))
      return signalPassFailure();
    tile::SlotOp odd;
    getOperation().walk([&](tile::SlotOp slot) {
      if (cast<tile::StateType>(slot.getState().getType()).getQueries() % lanes)
        odd = slot;
    });
    if (odd) {
      odd.emitError() << "a query tile of " << cast<tile::StateType>(odd.getState().getType()).getQueries()
                      << " rows is not a whole number of vectors of " << lanes.getValue()
                      << "; change query_tile and tail_tile of its schedule";
      return signalPassFailure();
    }
    llvm::DenseMap<Operation *, int64_t> packedKeys;
    llvm::DenseSet<Operation *> tails;
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      auto find = [&](StringRef name) { return getOperation().lookupSymbol<func::FuncOp>(name); };
      int64_t keys = amx || bf16Pairs ? choosePackedKeys(kernel, find(kernel.getTask()), l2Bytes) : 0;
      packedKeys[find(kernel.getTask())] = packedKeys[find(kernel.getTail())] = keys;
      setScratch(kernel, find(kernel.getTask()), keys, lanes);
      if (kernel.getTail() != kernel.getTask())
        tails.insert(find(kernel.getTail()));
    }
    for (func::FuncOp task : tasks) {
      task.removeArgAttrsAttr(); // names are for the reader of the tile stage
      block.packedKeys = packedKeys.lookup(task);
      block.compact = tails.contains(task);
      TaskConverter(task, getOperation(), block).run();
    }

    // Loops no longer carry states: folding that away leaves the slots without uses.
    RewritePatternSet patterns(&getContext());
    scf::ForOp::getCanonicalizationPatterns(patterns, &getContext());
    scf::IfOp::getCanonicalizationPatterns(patterns, &getContext());
    FrozenRewritePatternSet frozen(std::move(patterns));
    for (func::FuncOp task : tasks) {
      if (failed(applyPatternsGreedily(task, frozen)))
        return signalPassFailure();
      task.walk([&](Operation *op) {
        if (!isTileOp(op))
          return;
        if (isa<tile::SlotOp>(op) && op->use_empty())
          return op->erase();
        op->emitError("a tile op stands where no rule expects it");
        signalPassFailure();
      });
    }
  }
};

} // namespace
} // namespace attn
