//===- StepsCompute.cpp - Loops over the elements of tensors ----------------===//
#include "Steps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace attn::reference {

static int64_t evaluate(AffineExpr expr, ArrayRef<int64_t> loops) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return loops[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = cast<AffineBinaryOpExpr>(expr);
  int64_t left = evaluate(binary.getLHS(), loops), right = evaluate(binary.getRHS(), loops);
  return binary.getKind() == AffineExprKind::Add ? left + right : left * right;
}

/// The extent of every loop: of the output's those of `output`, where it is known.
static SmallVector<int64_t> findExtents(ComputeOp op, ArrayRef<SmallVector<int64_t>> shapes) {
  SmallVector<int64_t> extents;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    int64_t extent = op.getKnownExtent(loop);
    for (auto [shape, map] : llvm::zip(shapes, op.getIndexMaps()))
      for (auto [dim, expr] : llvm::enumerate(map.getResults()))
        if (auto alone = dyn_cast<AffineDimExpr>(expr); alone && alone.getPosition() == loop)
          extent = shape[dim];
    extents.push_back(extent);
  }
  // What is left is as large as stays inside.
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    if (extents[loop] >= 0)
      continue;
    auto fits = [&](int64_t extent) {
      SmallVector<int64_t> last;
      for (unsigned other = 0; other < extents.size(); ++other)
        last.push_back(other == loop ? extent - 1 : std::max<int64_t>(extents[other], 1) - 1);
      for (auto [shape, map] : llvm::zip(shapes, op.getIndexMaps()))
        for (auto [dim, expr] : llvm::enumerate(map.getResults()))
          if (expr.isFunctionOfDim(loop) && evaluate(expr, last) >= shape[dim])
            return false;
      return true;
    };
    extents[loop] = 0;
    while (fits(extents[loop] + 1))
      ++extents[loop];
  }
  return extents;
}

/// The body as it acts on sizes: terms that are taken away are added.
static void takeSizes(ComputeOp copy) {
  copy.walk([](Operation *op) {
    OpBuilder b(op);
    if (auto difference = dyn_cast<arith::SubFOp>(op)) {
      difference.replaceAllUsesWith(
          arith::AddFOp::create(b, op->getLoc(), difference.getLhs(), difference.getRhs()).getResult());
      op->erase();
    } else if (auto negative = dyn_cast<arith::NegFOp>(op)) {
      negative.replaceAllUsesWith(negative.getOperand());
      op->erase();
    }
  });
}

template <typename T>
StepResults<T> evaluateCompute(ComputeOp op, const Operands<T> &operands) {
  SmallVector<Array<T>> inputs;
  SmallVector<Array<double>> sizes;
  SmallVector<SmallVector<int64_t>> shapes;
  for (Value input : op.getInputs()) {
    inputs.push_back(operands.numbers(input));
    sizes.push_back(operands.magnitudes(input));
    shapes.push_back(inputs.back().shape);
  }
  SmallVector<int64_t> extents = findExtents(op, shapes);
  unsigned outer = op.getNumOutputLoops(), total = inputs.size();
  Array<T> output(ArrayRef(extents).take_front(outer));
  std::vector<double> magnitudes(output.data.size());
  SmallVector<unsigned> varying;
  for (unsigned argument = 0; argument <= total; ++argument)
    varying.push_back(argument);
  FailureOr<Program> program = Program::compile(op.getBody().front(), Environment(), Extents(),
                                                std::is_same_v<T, double> ? Rounding::Exact : Rounding::Typed, varying);
  Operation *copy = op->clone();
  takeSizes(cast<ComputeOp>(copy));
  FailureOr<Program> onSizes =
      Program::compile(copy->getRegion(0).front(), Environment(), Extents(), Rounding::Exact, varying);
  copy->erase();
  if (failed(program) || failed(onSizes))
    return {};
  SmallVector<AffineMap> maps = op.getIndexMaps();
  program->runOnce();
  onSizes->runOnce();
  SmallVector<int64_t> loops(extents.size(), 0);
  auto place = [&](unsigned input) {
    int64_t flat = 0;
    for (auto [expr, extent] : llvm::zip(maps[input].getResults(), inputs[input].shape))
      flat = flat * extent + evaluate(expr, loops);
    return flat;
  };
  auto run = [&](Program &body, auto number, double start) {
    for (unsigned input = 0; input < total; ++input)
      body.setFloat(input, number(input, place(input)));
    body.setFloat(total, start);
    return body.runVarying().f;
  };
  for (size_t element = 0; element < output.data.size(); ++element) {
    for (size_t rest = element, loop = outer; loop-- > 0; rest /= extents[loop])
      loops[loop] = rest % extents[loop];
    double sum = op.getInitial().convertToFloat(), size = std::abs(sum);
    std::function<void(unsigned)> nest = [&](unsigned loop) {
      if (loop == loops.size()) {
        sum = run(*program, [&](unsigned input, int64_t at) { return double(inputs[input].data[at]); }, sum);
        size = std::abs(run(*onSizes, [&](unsigned input, int64_t at) { return sizes[input].data[at]; }, size));
        return;
      }
      for (loops[loop] = 0; loops[loop] < extents[loop]; ++loops[loop])
        nest(loop + 1);
    };
    nest(outer);
    output.data[element] = sum;
    magnitudes[element] = std::max(std::abs(sum), size);
  }
  return {StepResult<T>(std::move(output), std::move(magnitudes))};
}

template StepResults<double> evaluateCompute(ComputeOp, const Operands<double> &);
template StepResults<float> evaluateCompute(ComputeOp, const Operands<float> &);

} // namespace attn::reference
