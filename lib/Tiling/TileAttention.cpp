//===- TileAttention.cpp - attn ops to kernels of loops over tiles --------===//
#include "Task.h"
#include "attn/Pattern/Classify.h"
#include "attn/Tiling/Passes.h"

namespace attn {
#define GEN_PASS_DEF_TILEATTENTION
#include "attn/Tiling/Passes.h.inc"

using namespace mlir;

namespace {

/// Splitting the keys of few tasks pays up to about this many tasks; a constant, so that results do not depend on the
/// number of threads.
constexpr int64_t kSplitTasks = 32;

DictionaryAttr kernelConfig(OpBuilder &b, const KernelSource &source) {
  AttentionOp op = source.op;
  ScheduleAttr s = source.schedule;
  MaskDependence depends = getMaskDependence(op);
  int64_t tile = std::max(s.getQueryTile(), s.getTailTile()), slots = s.getGroup() * tile;
  std::pair<StringRef, int64_t> fields[] = {
      {"align", int64_t(op.getAlign())},
      {"reindex", int64_t(s.getReindex())},
      {"reindex_size", s.getReindexSize()},
      {"has_mask", source.hasMask},
      {"depends_batch", source.hasMask && depends.batch},
      {"depends_head", source.hasMask && depends.head},
      {"query_tile", s.getQueryTile()},
      {"tail_tile", s.getTailTile()},
      {"tail_limit", s.getQueryTile() - s.getTailTile() + 1},
      {"key_tile", s.getKeyTile()},
      {"key_granule", s.getGranule()},
      {"group_tiles", s.getGroup()},
      {"split_keys", s.getSplit()},
      {"split_tasks", kSplitTasks},
      {"natural_partials", op.getScoreBlock() != nullptr},
      {"scratch_base", s.getKeyTile() * tile + 3 * slots},
      {"scratch_per_dim", slots},
      {"scratch_per_value_dim", slots},
  };
  SmallVector<NamedAttribute> attributes;
  for (auto [name, value] : fields)
    attributes.push_back(b.getNamedAttr(name, b.getI64IntegerAttr(value)));
  return b.getDictionaryAttr(attributes);
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
    source.hasMask = leavesMask(op, source.reindexing);

    OpBuilder b(op->getParentOfType<func::FuncOp>());
    std::string classifyName = source.name + ".classify", taskName = source.name + ".task";
    std::string tailName = source.name + ".tail";
    FlatSymbolRefAttr classify;
    if (source.hasMask) {
      if (failed(emitClassify(b, op, classifyName, source.captures)))
        return failure();
      classify = FlatSymbolRefAttr::get(b.getContext(), classifyName);
    }
    buildTask(b, source, taskName, source.schedule.getQueryTile());
    buildTask(b, source, tailName, source.schedule.getTailTile());

    SmallVector<int64_t> tables;
    for (const Table &table : source.captures.tables)
      tables.append({int64_t(table.kind), table.operand, table.dim});
    tile::KernelOp::create(b, op.getLoc(), source.name, taskName, tailName, classify, b.getDenseI64ArrayAttr(tables),
                           kernelConfig(b, source));
    b.setInsertionPoint(op);
    SmallVector<Value> inputs{op.getQuery(), op.getKey(), op.getValue()};
    llvm::append_range(inputs, source.captures.tensors);
    auto launch = tile::LaunchOp::create(b, op.getLoc(), op->getResultTypes(), source.name, inputs);
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
