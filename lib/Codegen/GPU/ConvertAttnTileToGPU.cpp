//===- ConvertAttnTileToGPU.cpp - Tasks of tile ops to kernels ------------===//
#include "Descriptor.h"
#include "Kernel.h"
#include "attn/Codegen/GPU/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTATTNTILETOGPU
#include "attn/Codegen/GPU/Passes.h.inc"

using namespace mlir;
using namespace attn::cuda;

namespace {

constexpr const char *kDeviceModule = "attn_device";

void addConversions(TypeConverter &types, const KernelShape &shape) {
  types.addConversion([](Type type) { return type; });
  types.addConversion([](MemRefType type, SmallVectorImpl<Type> &to) {
    llvm::append_range(to, Descriptor::types(type));
    return success();
  });
  types.addConversion([shape](tile::StateType type, SmallVectorImpl<Type> &to) {
    OpBuilder b(type.getContext());
    llvm::append_range(to, State::types(shape, b));
    return success();
  });
  types.addConversion([shape](tile::TileType type, SmallVectorImpl<Type> &to) {
    to.append(type.getKeys() * type.getQueries() * shape.parts() / shape.threads(),
              Float32Type::get(type.getContext()));
    return success();
  });
  types.addConversion(
      [](tile::BufferType type) -> Type { return LLVM::LLVMPointerType::get(type.getContext(), kShared); });
}

struct ConvertAttnTileToGPU : impl::ConvertAttnTileToGPUBase<ConvertAttnTileToGPU> {
  using Base::Base;

  FailureOr<KernelShape> shapeOf(tile::KernelOp kernel, func::FuncOp task) {
    tile::StartOp start;
    task.walk([&](tile::StartOp op) { start = op; });
    if (!start)
      return kernel.emitError("its task starts no query tile in a buffer; tile it for a GPU");
    auto state = start.getState().getType();
    if (state.getDim() < 0 || state.getValueDim() < 0)
      return kernel.emitError("head_dim and value dimension have to be known for a GPU");
    KernelShape shape;
    shape.element = cast<MemRefType>(task.getArgumentTypes()[0]).getElementType();
    shape.form = tensorCores && !shape.element.isF32() ? Form::TensorCores : Form::Plain;
    shape.asyncCopies = asyncCopies;
    shape.queries = state.getQueries(), shape.dim = state.getDim(), shape.valueDim = state.getValueDim();
    shape.natural = state.getUnit() != tile::ScoreUnit::Log2;
    shape.softmax = state.getUnit() == tile::ScoreUnit::Log2 || state.getUnit() == tile::ScoreUnit::Natural;
    shape.sigmoid = state.getUnit() == tile::ScoreUnit::Sigmoid;
    shape.warps = kernel.getNumbers().warps, shape.pack = std::max<int64_t>(kernel.getNumbers().pack, 1);
    if (shape.warps < 1 || shape.queries % kFragmentRows ||
        shape.rowBlocks() * kFragmentRows * shape.rowWarps() != shape.queries ||
        shape.parts() * shape.rowWarps() != shape.warps)
      return kernel.emitError("a query tile of ")
             << shape.queries << " rows cannot be shared out in groups of 16 to " << shape.warps
             << " warps; change query_tile or warps of its schedule";
    return shape;
  }

  /// Of the one kernel; null where nothing launches it.
  tile::LaunchOp findLaunch(tile::KernelOp kernel) {
    tile::LaunchOp found;
    getOperation().walk([&](tile::LaunchOp launch) {
      if (launch.getKernel() == kernel.getSymName())
        found = launch;
    });
    return found;
  }

  LogicalResult convert(tile::KernelOp kernel, gpu::GPUModuleOp device) {
    auto task = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(kernel, kernel.getTaskAttr());
    FailureOr<KernelShape> shape = shapeOf(kernel, task);
    if (failed(shape))
      return failure();
    int64_t bytes = placeBuffers(task, *shape);
    tile::KernelConfig numbers = kernel.getNumbers();
    numbers.shared_bytes = bytes;
    kernel.setConfigAttr(numbers.toAttr(&getContext()));
    LLVM::LLVMFuncOp function = makeKernel(task, device, *shape);
    tile::LaunchOp launch = findLaunch(kernel);
    bool hasLse = launch && launch.getOutputs().size() > 1, joins = launch && launch.getJoinedOutput();
    if (numbers.split_keys || joins)
      makeMergeKernel(task, device, *shape, hasLse, joins);
    task.eraseBody(); // what remains says which tensors a launch takes

    TypeConverter types;
    addConversions(types, *shape);
    RewritePatternSet patterns(&getContext());
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addIllegalDialect<tile::AttnTileDialect, memref::MemRefDialect>();
    populateTilePatterns(patterns, types, *shape);
    scf::populateSCFStructuralTypeConversionsAndLegality(types, patterns, target);
    return applyPartialConversion(function, target, std::move(patterns));
  }

  void runOnOperation() override {
    OpBuilder b = OpBuilder::atBlockEnd(getOperation().getBody());
    auto kernels = llvm::to_vector(getOperation().getOps<tile::KernelOp>());
    llvm::SetVector<Operation *> code;
    getOperation().walk(
        [&](tile::StepOp step) { code.insert(SymbolTable::lookupNearestSymbolFrom(step, step.getCodeAttr())); });
    if (kernels.empty() && code.empty())
      return;
    auto device = gpu::GPUModuleOp::create(b, getOperation().getLoc(), kDeviceModule);
    b.setInsertionPointToStart(device.getBody());
    auto shared = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
    LLVM::GlobalOp::create(b, device.getLoc(), shared, /*isConstant=*/false, LLVM::Linkage::External, kSharedName,
                           Attribute(), /*alignment=*/128, kShared);
    for (tile::KernelOp kernel : kernels)
      if (failed(convert(kernel, device)))
        return signalPassFailure();
    for (Operation *function : code)
      if (failed(makeStepKernel(cast<func::FuncOp>(function), device)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace attn
