//===- TileAttention.cpp - attn ops to kernels of loops over tiles --------===//
#include "Task.h"
#include "attn/Pattern/Classify.h"
#include "attn/Tiling/Passes.h"

namespace attn {
#define GEN_PASS_DEF_TILEATTENTION
#include "attn/Tiling/Passes.h.inc"

using namespace mlir;

namespace {

tile::KernelConfig kernelConfig(const KernelSource &source) {
  AttentionOp op = source.op;
  ScheduleAttr s = source.schedule;
  MaskDependence depends = getMaskDependence(op);
  tile::KernelConfig config;
  config.align = int64_t(op.getAlign());
  config.searched = source.captures.searched;
  config.reindex = int64_t(s.getReindex());
  config.reindex_size = s.getReindexSize();
  config.has_mask = source.hasMask;
  config.depends_batch = source.hasMask && depends.batch;
  config.depends_head = source.hasMask && depends.head;
  config.pack = s.getPack();
  config.query_tile = s.getQueryTile() / s.getPack();
  config.tail_tile = s.getTailTile();
  config.tail_limit = s.getWarps() ? 0 : s.getQueryTile() - s.getTailTile() + 1;
  config.key_tile = s.getKeyTile();
  config.key_granule = s.getGranule();
  config.group_tiles = s.getWarps() ? 1 : s.getGroup(); // a block of GPU threads has one query tile
  config.split_keys = s.getSplit();
  config.split_tasks = s.getTasks();
  config.warps = s.getWarps();
  config.natural_partials = getScoreUnit(op) != tile::ScoreUnit::Log2;
  return config;
}

/// A GPU's plan is made on the host, before the function computes anything.
LogicalResult forgetComputed(AttentionOp op, Captures &captures) {
  captures.forgetRangesOfComputed();
  for (const Table &table : captures.tables)
    if (Value searched = captures.tensors[table.operand]; Captures::isComputed(searched))
      return (op.emitError(
                    "its mask searches a set that this function computes, which no code for a GPU does; pass the "
                    "set as an argument, or compute a table of the blocks it holds, for block_mask")
                  .attachNote(searched.getLoc())
              << "the set"),
             failure();
  return success();
}

struct TileAttention : impl::TileAttentionBase<TileAttention> {
  using Base::Base;

  LogicalResult tile(AttentionOp op, StringRef kernelName) {
    if (!op.getScheduleAttr())
      return op.emitError("has no schedule: run attn-select-schedule first, or write schedule(#attn.schedule<...>)");
    KernelSource source{op,    op.getScheduleAttr(), getScheduledReindexing(op), Captures::of(op),
                        false, kernelName.str()};
    if (!allowsReindexing(op, source.reindexing))
      return op.emitError("its schedule has reindex = ")
             << stringifyReindexKind(source.reindexing.kind) << ", reindex_size = " << source.reindexing.size
             << ", but the mask is not known to keep to one class of that; use reindex = dense, or leave it to "
                "attn-select-schedule";
    int64_t heads = op.getQueryType().getDimSize(1), keyHeads = op.getKeyType().getDimSize(1);
    if (heads >= 0 && keyHeads > 0 && heads / keyHeads % source.schedule.getPack() != 0)
      return op->emitError("its schedule packs ")
             << source.schedule.getPack() << " query heads, which is no divisor of the " << heads / keyHeads
             << " that share a key head; change pack";
    if (!op.isSoftmax() && source.schedule.getSplit())
      return op->emitError("its schedule splits keys, but normalizer(")
             << stringifyNormalizer(op.getNormalizer())
             << ") leaves no sums to merge the parts by; leave split out of it";
    if (source.schedule.getWarps() && failed(forgetComputed(op, source.captures)))
      return failure();
    source.hasMask = leavesMask(op, source.reindexing);

    OpBuilder b(op->getParentOfType<func::FuncOp>());
    std::string classifyName = source.name + ".classify", taskName = source.name + ".task";
    // A block of GPU threads stores no row beyond the last, so it needs no narrower code.
    bool oneWidth = source.schedule.getWarps() || source.schedule.getTailTile() == source.schedule.getQueryTile();
    std::string tailName = oneWidth ? taskName : source.name + ".tail";
    FlatSymbolRefAttr classify;
    if (source.hasMask) {
      if (failed(emitClassify(b, op, classifyName, source.captures)))
        return failure();
      classify = FlatSymbolRefAttr::get(b.getContext(), classifyName);
    }
    if (source.schedule.getWarps())
      buildBufferTask(b, source, taskName);
    else
      buildTask(b, source, taskName, source.schedule.getQueryTile());
    if (!oneWidth)
      buildTask(b, source, tailName, source.schedule.getTailTile());

    SmallVector<int64_t> tables;
    for (const Table &table : source.captures.tables)
      tables.append({int64_t(table.kind), table.operand, table.dim});
    tile::KernelOp::create(b, op.getLoc(), source.name, taskName, tailName, classify, b.getDenseI64ArrayAttr(tables),
                           kernelConfig(source).toAttr(b.getContext()), /*scratch=*/nullptr);
    b.setInsertionPoint(op);
    SmallVector<Value> inputs{getQueryOperand(op), op.getKeyRows(), op.getValue()};
    llvm::append_range(inputs, source.captures.tensors);
    SmallVector<int64_t> numbers;
    for (Value tensor : {op.getSink(), op.getTable(), op.getBias()})
      if (tensor)
        numbers.push_back(*source.captures.findTensor(tensor) + 3);
    DenseI64ArrayAttr perHead = numbers.empty() ? DenseI64ArrayAttr() : b.getDenseI64ArrayAttr(numbers);
    IntegerAttr scores;
    if (op.getScores())
      scores = b.getI64IntegerAttr(*source.captures.findTensor(op.getScores()) + 3);
    auto launch = tile::LaunchOp::create(b, op.getLoc(), op->getResultTypes(), source.name, inputs,
                                         op.getJoinedOutput(), op.getJoinedLse(), perHead, scores);
    op->replaceAllUsesWith(launch);
    op.erase();
    return success();
  }

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    llvm::DenseMap<Operation *, unsigned> count;
    for (AttentionOp op : ops) {
      auto fn = op->getParentOfType<func::FuncOp>();
      if (!fn)
        return op.emitError("stands outside a function"), signalPassFailure();
      std::string name = (fn.getName() + ".k" + Twine(count[fn]++)).str();
      if (failed(tile(op, name)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace attn
