//===- TileSteps.cpp - Steps around attention to code over memrefs --------===//
#include "Steps/Steps.h"
#include "attn/Entry/Interface.h"
#include "attn/Tiling/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace attn {
#define GEN_PASS_DEF_TILESTEPS
#include "attn/Tiling/Passes.h.inc"

using namespace mlir;

namespace {

/// Fills the code of `op`; failure where there is none for it.
LogicalResult buildCode(StepBuilder &s, Operation *op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](ComputeOp op) { return buildCompute(s, op), success(); })
      .Case([&](GatherRowsOp op) { return buildGatherRows(s, op), success(); })
      .Case([&](MergeOp op) { return buildMerge(s, op), success(); })
      .Case([&](NormalizeRowsOp op) { return buildNormalizeRows(s, op), success(); })
      .Case([&](RowScoresOp op) { return buildRowScores(s, op), success(); })
      .Case([&](TopRowsOp op) { return buildTopRows(s, op), success(); })
      .Case([&](InvertRowsOp op) { return buildInvertRows(s, op), success(); })
      .Case([&](ScatterMeanOp op) { return buildScatterMean(s, op), success(); })
      .Case([&](ScatterRowsOp op) { return buildScatterRows(s, op), success(); })
      .Case([&](BlockMeansOp op) { return buildBlockMeans(s, op), success(); })
      .Case([&](TopBlocksOp op) { return buildTopBlocks(s, op), success(); })
      .Case([&](FeatureMapOp op) { return buildFeatureMap(s, op), success(); })
      .Case([&](RandomFeaturesOp op) { return buildRandomFeatures(s, op), success(); })
      .Case([&](RunningMaxOp op) { return buildRunningMax(s, op), success(); })
      .Case([&](LinearWeightsOp op) { return buildLinearWeights(s, op), success(); })
      .Case([&](LinearAttentionOp op) { return buildLinearAttention(s, op), success(); })
      .Case([&](LshBucketsOp op) { return buildLshBuckets(s, op), success(); })
      .Case([&](SortOp op) { return buildSort(s, op), success(); })
      .Case([&](LookBackOp op) { return buildLookBack(s, op), success(); })
      .Case([&](SinkhornOp op) { return buildSinkhorn(s, op), success(); })
      .Case([&](MixBlocksOp op) { return buildMixBlocks(s, op), success(); })
      .Default([](Operation *op) { return op->emitError("is a step that no code is known for"); });
}

/// See kLeastAttr.
DenseI64ArrayAttr encodeLeast(ComputeOp op) {
  SmallVector<int64_t> numbers;
  SmallVector<Value> tensors = op.getTensors();
  auto number = [&](Value tensor) { return int64_t(llvm::find(tensors, tensor) - tensors.begin()); };
  for (const ExtentLeast &least : op.getLeast())
    numbers.append({number(least.place.tensor), least.place.dim, number(least.source.tensor), least.source.dim,
                    least.times, least.plus});
  return DenseI64ArrayAttr::get(op.getContext(), numbers);
}

/// On a GPU a thread has one column: what a head's outputs are divided by is a step before.
void splitWeights(LinearAttentionOp op) {
  OpBuilder b(op);
  auto query = cast<RankedTensorType>(op.getQuery().getType());
  Type f32 = b.getF32Type(), type = RankedTensorType::get(query.getShape().drop_back(), f32);
  auto weights =
      LinearWeightsOp::create(b, op.getLoc(), TypeRange{type, op.getKeySums().getType()}, op.getQuery(), op.getKey(),
                              op.getDecay(), op.getKeyState(), op.getFeatureAttr(), op.getCausalAttr());
  auto divided = LinearAttentionOp::create(b, op.getLoc(), TypeRange{op.getOutput().getType(), op.getSums().getType()},
                                           op.getQuery(), op.getKey(), op.getValue(), weights.getWeights(),
                                           op.getDecay(), op.getState(), /*key_state=*/Value(), op.getFeatureAttr(),
                                           /*normalize=*/UnitAttr(), op.getCausalAttr(), op.getScaleAttr());
  op->replaceAllUsesWith(ValueRange{divided.getOutput(), divided.getSums(), weights.getSums()});
  op.erase();
}

struct TileSteps : impl::TileStepsBase<TileSteps> {
  using Base::Base;

  LogicalResult tile(CompiledOpInterface op, const std::string &name) {
    auto function = op->getParentOfType<func::FuncOp>();
    if (!function)
      return op->emitError("stands outside a function");
    OpBuilder b(function);
    StepBuilder step(b, op, name, lanes);
    if (failed(buildCode(step, op)))
      return failure();
    step.finish();
    b.setInsertionPoint(op);
    auto launch = tile::StepOp::create(b, op.getLoc(), op->getResultTypes(), name, op->getOperands(),
                                       b.getDenseI64ArrayAttr(step.getUnits()), tile::StepOp::encodeExtents(op),
                                       tile::StepOp::encodeContiguous(op), tile::StepOp::encodeMultiples(op));
    if (auto compute = dyn_cast<ComputeOp>(*op))
      launch->setAttr(tile::kLeastAttr, encodeLeast(compute));
    op->replaceAllUsesWith(launch);
    op.erase();
    return success();
  }

  void runOnOperation() override {
    if (lanes == 1)
      getOperation().walk([](LinearAttentionOp op) {
        if (op.getNormalize())
          splitWeights(op);
      });
    SmallVector<CompiledOpInterface> ops;
    getOperation().walk([&](CompiledOpInterface op) {
      if (!isa<AttentionOp, tile::LaunchOp, tile::StepOp>(op))
        ops.push_back(op);
    });
    llvm::DenseMap<Operation *, unsigned> count;
    for (CompiledOpInterface op : ops) {
      Operation *fn = op->getParentOp();
      std::string name = (SymbolTable::getSymbolName(fn).getValue() + ".s" + Twine(count[fn]++)).str();
      if (failed(tile(op, name)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace attn
