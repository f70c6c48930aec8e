//===- LinalgToAttn.cpp - Sums of linalg to attn.compute ------------------===//
#include "attn/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Verifier.h"

namespace attn {
#define GEN_PASS_DEF_CONVERTLINALGTOATTN
#include "attn/Conversion/Passes.h.inc"

using namespace mlir;

namespace {

bool isNumber(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

bool isTensorOfNumbers(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isNumber(tensor.getElementType());
}

/// Makes an attn.compute of one op.
class Converter {
public:
  explicit Converter(linalg::LinalgOp op) : op(op), b(op), from(op->getRegion(0).front()) {}

  LogicalResult convert();

private:
  InFlightDiagnostic error() {
    return emitError(op.getLoc()) << "'" << op->getName() << "' has no form as attn.compute: ";
  }
  LogicalResult checkTensors();
  LogicalResult orderLoops();
  LogicalResult readInputs();
  LogicalResult readInitial();
  LogicalResult fillBody(ComputeOp compute);
  FailureOr<Value> mapOperand(Operation *user, Value operand);
  LogicalResult cloneInto(Operation &inner);
  AffineMap renumber(AffineMap map) { return map.replaceDimsAndSymbols(loops, {}, loops.size(), 0); }

  linalg::LinalgOp op;
  OpBuilder b;
  Block &from;
  SmallVector<AffineExpr> loops; // by number in linalg: the same loop in attn.compute
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps; // of the inputs, then of the output
  SmallVector<int64_t> extents;
  APFloat initial = APFloat(0.0f);
  IRMapping mapping;
};

LogicalResult Converter::checkTensors() {
  if (op.getNumDpsInits() != 1 || op->getNumResults() != 1)
    return error() << "it has " << op.getNumDpsInits() << " outputs; write an op for each, on tensors";
  for (Value operand : op->getOperands())
    if (!isTensorOfNumbers(operand.getType()))
      return error() << "an operand has type " << operand.getType() << "; use tensors of f32, f16 or bf16";
  return success();
}

// The loops of the output come first, in its order, then those of the sum.
LogicalResult Converter::orderLoops() {
  AffineMap output = op.getMatchingIndexingMap(op.getDpsInitOperand(0));
  loops.resize(op.getNumLoops());
  unsigned next = 0;
  for (AffineExpr index : output.getResults()) {
    auto loop = dyn_cast<AffineDimExpr>(index);
    if (!loop || loops[loop.getPosition()])
      return error() << "it writes its result by the map " << AffineMapAttr::get(output)
                     << "; write it at one loop in each dimension";
    loops[loop.getPosition()] = b.getAffineDimExpr(next++);
  }
  for (AffineExpr &loop : loops)
    if (!loop)
      loop = b.getAffineDimExpr(next++);
  return success();
}

// An empty tensor that is not read, as the window of a pooling, only has extents to tell.
LogicalResult Converter::readInputs() {
  extents.assign(op.getNumLoops(), -1);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    BlockArgument read = op.getMatchingBlockArgument(input);
    if (input->get().getDefiningOp<tensor::EmptyOp>()) {
      if (!read.use_empty())
        return error() << "it reads an empty tensor; fill it, or compute it";
      auto shape = cast<RankedTensorType>(input->get().getType()).getShape();
      for (auto [index, extent] : llvm::zip(map.getResults(), shape))
        if (auto loop = dyn_cast<AffineDimExpr>(index))
          extents[cast<AffineDimExpr>(loops[loop.getPosition()]).getPosition()] = extent;
      continue;
    }
    inputs.push_back(input->get());
    maps.push_back(renumber(map));
  }
  maps.push_back(renumber(op.getMatchingIndexingMap(op.getDpsInitOperand(0))));
  return success();
}

LogicalResult Converter::readInitial() {
  if (from.getArguments().back().use_empty())
    return success();
  Value init = op.getDpsInitOperand(0)->get();
  auto fill = init.getDefiningOp<linalg::FillOp>();
  DenseElementsAttr constant;
  bool known = fill ? matchPattern(fill.getInputs().front(), m_ConstantFloat(&initial))
                    : matchPattern(init, m_Constant(&constant)) && constant.isSplat();
  if (!known)
    return error() << "what its sum starts from is no number that is known here; start from a linalg.fill of a "
                      "constant, and add other tensors in an op of their own";
  if (!fill)
    initial = constant.getSplatValue<APFloat>();
  bool lossy;
  initial.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lossy);
  return success();
}

/// A value of the body; a constant may stand outside.
FailureOr<Value> Converter::mapOperand(Operation *user, Value operand) {
  if (Value known = mapping.lookupOrNull(operand))
    return known;
  Operation *source = operand.getDefiningOp();
  if (!source || !matchPattern(source, m_Constant()))
    return error().attachNote(user->getLoc()) << "its body reads a value from outside that is no constant", failure();
  if (failed(cloneInto(*source)))
    return failure();
  return mapping.lookup(operand);
}

/// Numbers of any width become f32.
LogicalResult Converter::cloneInto(Operation &inner) {
  if (!isa<arith::ArithDialect, math::MathDialect>(inner.getDialect()) || inner.getNumRegions())
    return error().attachNote(inner.getLoc()) << "its body holds '" << inner.getName() << "'; use arith and math ops",
           failure();
  for (Value operand : inner.getOperands()) {
    FailureOr<Value> mapped = mapOperand(&inner, operand);
    if (failed(mapped))
      return failure();
    mapping.map(operand, *mapped);
  }
  if (isa<arith::ExtFOp, arith::TruncFOp>(inner)) {
    mapping.map(inner.getResult(0), mapping.lookup(inner.getOperand(0)));
    return success();
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(inner); constant && isa<FloatType>(constant.getType())) {
    APFloat number = cast<FloatAttr>(constant.getValue()).getValue();
    bool lossy;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lossy);
    Value wide = arith::ConstantOp::create(b, inner.getLoc(), b.getF32FloatAttr(number.convertToFloat()));
    mapping.map(constant.getResult(), wide);
    return success();
  }
  for (Value result : b.clone(inner, mapping)->getResults())
    if (isa<FloatType>(result.getType()))
      result.setType(b.getF32Type());
  return success();
}

LogicalResult Converter::fillBody(ComputeOp compute) {
  SmallVector<Type> types(inputs.size() + 1, b.getF32Type());
  SmallVector<Location> places(types.size(), op.getLoc());
  OpBuilder::InsertionGuard guard(b);
  Block *body = b.createBlock(&compute.getBody(), {}, types, places);
  unsigned next = 0;
  for (OpOperand *input : op.getDpsInputOperands())
    if (!input->get().getDefiningOp<tensor::EmptyOp>())
      mapping.map(op.getMatchingBlockArgument(input), body->getArgument(next++));
  mapping.map(from.getArguments().back(), body->getArguments().back());
  for (Operation &inner : from.without_terminator())
    if (failed(cloneInto(inner)))
      return failure();
  FailureOr<Value> total = mapOperand(from.getTerminator(), from.getTerminator()->getOperand(0));
  if (failed(total))
    return failure();
  ResultOp::create(b, op.getLoc(), *total);
  return success();
}

LogicalResult Converter::convert() {
  if (failed(checkTensors()) || failed(orderLoops()) || failed(readInputs()) || failed(readInitial()))
    return failure();
  bool tellsExtents = llvm::any_of(extents, [](int64_t extent) { return extent >= 0; });
  auto compute = ComputeOp::create(b, op.getLoc(), op->getResult(0).getType(), inputs, b.getAffineMapArrayAttr(maps),
                                   b.getF32FloatAttr(initial.convertToFloat()),
                                   tellsExtents ? b.getDenseI64ArrayAttr(extents) : DenseI64ArrayAttr());
  if (failed(fillBody(compute)) || failed(verify(compute)))
    return failure();
  op->getResult(0).replaceAllUsesWith(compute.getOutput());
  op->erase();
  return success();
}

struct ConvertLinalgToAttn : impl::ConvertLinalgToAttnBase<ConvertLinalgToAttn> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<linalg::LinalgOp> ops;
    SmallVector<Operation *> starts; // of sums
    getOperation().walk([&](Operation *op) {
      if (isa<linalg::FillOp, tensor::EmptyOp>(op))
        starts.push_back(op);
      else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
        ops.push_back(linalgOp);
    });
    for (linalg::LinalgOp op : ops)
      if (failed(Converter(op).convert()))
        return signalPassFailure();
    for (Operation *op : llvm::reverse(starts)) {
      if (op->use_empty()) {
        op->erase();
        continue;
      }
      emitError(op->getLoc()) << "'" << op->getName()
                              << "' has no form as attn.compute: it is read, not only what a sum starts from; compute "
                                 "such a tensor from others";
      return signalPassFailure();
    }
  }
};

} // namespace
} // namespace attn
