//===- ConvertAttnTileToCPU.cpp - Tile ops to micro-kernel calls ----------===//
#include "MicroKernels.h"
#include "TaskForm.h"
#include "attn/Codegen/CPU/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTILETOCPU
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;
using namespace attn::cpu;

namespace {

/// Are query, key and value of a task f16 or bf16?
bool isNarrow(func::FuncOp task) { return !cast<MemRefType>(task.getArgumentTypes()[0]).getElementType().isF32(); }

class TaskConverter {
public:
  TaskConverter(func::FuncOp task, ModuleOp module, RegisterBlock block)
      : task(task), module(module), block(block), builder(module.getContext()) {}

  void run();

private:
  /// The memory behind a state and what every micro-kernel takes first: slot, head_dim, value_dim; and for all states
  /// of a task the weights of a tile, its keys and its values as f32.
  struct Place {
    Values arguments;
    Value weights, keys, values;
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
  void convert(Operation *op);
  void convertSoftmax(tile::SoftmaxOp op);
  void convertAccumulate(tile::AccumulateOp op);
  Value flat(Value memref, OpFoldResult offset, Value size);

  func::FuncOp task;
  ModuleOp module;
  RegisterBlock block;
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

// At the start of the workspace lie the weights of a tile, then its keys and values where these are not f32; behind
// them the slots.
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
  Value weights = e.index(slot.getKeyTile() * type.getQueries());
  Value size = e.mul(e.add(e.add(dim, valueDim), kSlotRows), type.getQueries()), start = weights;
  place.weights = flat(slot.getWorkspace(), builder.getIndexAttr(0), weights);
  if (isNarrow(task)) {
    Value keys = e.mul(dim, slot.getKeyTile()), values = e.mul(valueDim, slot.getKeyTile());
    place.keys = flat(slot.getWorkspace(), start, keys);
    start = e.add(start, keys);
    place.values = flat(slot.getWorkspace(), start, values);
    start = e.add(start, values);
  }
  place.arguments = {flat(slot.getWorkspace(), e.add(start, e.mul(slot.getIndex(), size)), size), dim, valueDim};
  return place;
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

// Too low a reference shows in the weights, and the tile is done once more.
void TaskConverter::convertSoftmax(tile::SoftmaxOp op) {
  Value state = op.getState();
  auto [score, modify, mask] = ScoreChain::of(op);
  Rows rows = inF32(state, score.getKey(), score.getRow(), score.getCount(), /*isKey=*/true);
  auto key = cast<MemRefType>(rows.matrix.getType());
  func::FuncOp online = kernels(state).onlineSoftmax(key, modify, mask);

  Emit e(builder, op.getLoc(), block.lanes);
  Values args = withPlace(state, {place(state).weights, rows.matrix, rows.first, score.getCount()});
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

  if (op.getExact())
    call(online, args);
  else
    e.ifThen(call(kernels(state).softmax(key, modify, mask), args), [&] { call(online, args); });
  auto type = cast<tile::StateType>(state.getType());
  for (int64_t q = 0; q < type.getQueries(); q += block.lanes) // the sum after this tile becomes the sum
    e.vstore(e.vload(args[0], e.index(2 * type.getQueries() + q)), args[0], e.index(type.getQueries() + q));
}

// What is done again exactly without a region has no other use for the fast code that leaves out masked keys.
void TaskConverter::convertAccumulate(tile::AccumulateOp op) {
  MicroKernels &kernel = kernels(op.getState());
  Rows rows = inF32(op.getState(), op.getValue(), op.getRow(), op.getCount(), /*isKey=*/false);
  auto value = cast<MemRefType>(rows.matrix.getType());
  Values args = withPlace(op.getState(), {place(op.getState()).weights, rows.matrix, rows.first, op.getCount()});
  auto softmax = op.getWeights().getDefiningOp<tile::SoftmaxOp>();
  if (!softmax.getExact() || !softmax.getScores().getDefiningOp<tile::ScoreOp>()) {
    call(kernel.accumulate(value, op.getSkipZero()), args);
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
  } else if (auto op = dyn_cast<tile::RestartOp>(operation)) {
    call(kernels(op.getState()).restart(), place(op.getState()).arguments);
  } else if (auto op = dyn_cast<tile::SoftmaxOp>(operation)) {
    convertSoftmax(op);
  } else if (auto op = dyn_cast<tile::AccumulateOp>(operation)) {
    convertAccumulate(op);
  } else if (auto op = dyn_cast<tile::CheckOp>(operation)) {
    op.replaceAllUsesWith(call(kernels(op.getState()).check(), place(op.getState()).arguments));
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

/// A workspace holds the weights of a tile, its keys and values as f32, then one slot per query tile of a task.
void setScratch(tile::KernelOp kernel, func::FuncOp task) {
  tile::KernelConfig numbers = kernel.getNumbers();
  int64_t queries = std::max(numbers.query_tile, numbers.tail_tile), slots = numbers.group_tiles * queries;
  int64_t floats = slots + (isNarrow(task) ? numbers.key_tile : 0);
  kernel.setScratch(ArrayRef<int64_t>{numbers.key_tile * queries + kSlotRows * slots, floats, floats});
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
    for (func::FuncOp task : tasks) {
      task.removeArgAttrsAttr(); // names are for the reader of the tile stage
      TaskConverter(task, getOperation(), block).run();
    }
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      setScratch(kernel, getOperation().lookupSymbol<func::FuncOp>(kernel.getTask()));

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
