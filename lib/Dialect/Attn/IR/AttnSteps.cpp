//===- AttnSteps.cpp - The steps around attention ---------------------------===//
#include "StepVerify.h"

using namespace mlir;

namespace attn {

static RankedTensorType typeOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()); }

std::string describeTensor(Operation *op, Value tensor) {
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    if (operand == tensor)
      return "operand " + std::to_string(i);
  return "result " + std::to_string(cast<OpResult>(tensor).getResultNumber());
}

LogicalResult verifyRank(Operation *op, Value tensor, int64_t rank, StringRef dims, StringRef constraint) {
  if (!tensor || typeOf(tensor).getRank() == rank)
    return success();
  return op->emitOpError() << describeTensor(op, tensor) << " is " << tensor.getType() << ", but must have rank "
                           << rank << ", " << dims << "; reshape it " << constraint;
}

LogicalResult verifySameElements(Operation *op, Value a, Value b) {
  if (!a || !b || typeOf(a).getElementType() == typeOf(b).getElementType())
    return success();
  return op->emitOpError() << describeTensor(op, b) << " has elements of type " << typeOf(b).getElementType()
                           << " where " << describeTensor(op, a) << " has " << typeOf(a).getElementType()
                           << "; convert one of them (E2)";
}

SmallVector<Value> rowsOfNumbers(Operation *op) {
  SmallVector<Value> found;
  auto add = [&](Value tensor) {
    if (typeOf(tensor).getRank() == 4 && isa<FloatType>(typeOf(tensor).getElementType()))
      found.push_back(tensor);
  };
  llvm::for_each(op->getOperands(), add);
  llvm::for_each(op->getResults(), add);
  return found;
}

static LogicalResult verifyTie(Operation *op, const ExtentTie &tie) {
  auto size = [](ExtentPlace place) { return typeOf(place.tensor).getDimSize(place.dim); };
  std::optional<ExtentPlace> known;
  for (ExtentPlace place : tie.places) {
    if (ShapedType::isDynamic(size(place)))
      continue;
    if (known && size(*known) != size(place))
      return op->emitOpError() << describeTensor(op, known->tensor) << " and " << describeTensor(op, place.tensor)
                               << " differ in " << tie.name << ": " << size(*known) << " (dimension " << known->dim
                               << " of " << known->tensor.getType() << ") and " << size(place) << " (dimension "
                               << place.dim << " of " << place.tensor.getType() << "); make them equal (E1)";
    known = place;
  }
  if (!tie.rule || !known || ShapedType::isDynamic(size(tie.rule->source)) ||
      tie.rule->apply(size(tie.rule->source)) == size(*known))
    return success();
  return op->emitOpError() << describeTensor(op, known->tensor) << " has " << size(*known) << " " << tie.name
                           << " (dimension " << known->dim << " of " << known->tensor.getType() << "), but "
                           << tie.rule->apply(size(tie.rule->source)) << " follow from "
                           << describeTensor(op, tie.rule->source.tensor) << "; change one of them (E1)";
}

static LogicalResult verifyMultiple(Operation *op, ExtentMultiple multiple) {
  int64_t extent = typeOf(multiple.place.tensor).getDimSize(multiple.place.dim);
  int64_t of = typeOf(multiple.of.tensor).getDimSize(multiple.of.dim);
  if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(of) || (of == 0 ? extent == 0 : extent % of == 0))
    return success();
  return op->emitOpError() << "dimension " << multiple.place.dim << " of " << describeTensor(op, multiple.place.tensor)
                           << " is " << extent << ", no multiple of the " << of << " of "
                           << describeTensor(op, multiple.of.tensor) << " (dimension " << multiple.of.dim
                           << "); change one of them (E1)";
}

LogicalResult verifyExtents(CompiledOpInterface op) {
  for (const ExtentTie &tie : op.getExtentTies())
    if (failed(verifyTie(op, tie)))
      return failure();
  for (ExtentMultiple multiple : op.getMultiples())
    if (failed(verifyMultiple(op, multiple)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// gather_rows
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> GatherRowsOp::getExtentTies() {
  unsigned rank = typeOf(getRows()).getRank();
  ExtentTie batch = makeTie("batch", {{getInput(), 0}, {getOutput(), 0}}), heads = makeTie("heads", {{getInput(), 1}});
  if (rank > 1)
    batch.places.insert(batch.places.begin() + 1, {getRows(), 0});
  if (rank < 3)
    heads.places.push_back({getOutput(), 1});
  SmallVector<ExtentTie> ties{std::move(batch), std::move(heads), makeTie("tokens", {{getInput(), 2}}),
                              makeTie("rows", {{getRows(), rank - 1}, {getOutput(), 2}})};
  if (rank == 3)
    ties.insert(ties.begin() + 2, makeTie("groups", {{getRows(), 1}, {getOutput(), 1}}));
  if (typeOf(getInput()).getRank() == 4)
    ties.push_back(makeTie("head_dim", {{getInput(), 3}, {getOutput(), 3}}));
  return ties;
}

SmallVector<Value> GatherRowsOp::getContiguous() { return rowsOfNumbers(*this); }

std::optional<ExtentPlace> GatherRowsOp::getIndexed(Value operand) {
  return operand == getRows() ? std::optional<ExtentPlace>({getInput(), 2}) : std::nullopt;
}

SmallVector<ExtentMultiple> GatherRowsOp::getMultiples() {
  if (typeOf(getRows()).getRank() < 3)
    return {};
  return {{{getRows(), 1}, {getInput(), 1}}};
}

LogicalResult GatherRowsOp::verify() {
  int64_t rank = typeOf(getInput()).getRank();
  if (rank != 3 && rank != 4)
    return emitOpError() << "operand 0 is " << getInput().getType()
                         << ", but must have rank 4, [batch, heads, tokens, head_dim], or 3, one number a row; reshape "
                            "it (E3)";
  if (int64_t rows = typeOf(getRows()).getRank(); rows < 1 || rows > 3)
    return emitOpError() << "operand 1 is " << getRows().getType()
                         << ", but must have rank 3, [batch, groups, rows], or be [batch, rows] or [rows]; reshape it "
                            "(E3)";
  if (failed(verifyRank(*this, getOutput(), rank, "that of operand 0", "(E3)")) ||
      failed(verifySameElements(*this, getInput(), getOutput())))
    return failure();
  return verifyExtents(*this);
}

//===----------------------------------------------------------------------===//
// merge
//===----------------------------------------------------------------------===//

SmallVector<ExtentTie> MergeOp::getExtentTies() {
  return {makeTie("batch", {{getOutputs(), 0}, {getLses(), 0}, {getOutput(), 0}, {getLse(), 0}}),
          makeTie("groups", {{getOutputs(), 1}, {getLses(), 1}}),
          makeTie("heads", {{getOutput(), 1}, {getLse(), 1}},
                  ExtentRule{{getOutputs(), 1}, 1, 0, std::max<int64_t>(getGroups(), 1)}),
          makeTie("queries", {{getOutputs(), 2}, {getLses(), 2}, {getOutput(), 2}, {getLse(), 2}}),
          makeTie("value head_dim", {{getOutputs(), 3}, {getOutput(), 3}})};
}

SmallVector<Value> MergeOp::getContiguous() { return rowsOfNumbers(*this); }

LogicalResult MergeOp::verify() {
  if (int64_t(getGroups()) < 1)
    return emitOpError() << "has groups(" << int64_t(getGroups()) << "); give the number of parts, at least 1 (E4)";
  if (failed(verifyRank(*this, getOutputs(), 4, "[batch, heads * groups, queries, value_dim]", "(E4)")) ||
      failed(verifyRank(*this, getLses(), 3, "[batch, heads * groups, queries]", "(E4)")) ||
      failed(verifyRank(*this, getOutput(), 4, "[batch, heads, queries, value_dim]", "(E4)")) ||
      failed(verifyRank(*this, getLse(), 3, "[batch, heads, queries]", "(E4)")) ||
      failed(verifySameElements(*this, getOutputs(), getOutput())))
    return failure();
  for (Value lse : {Value(getLses()), Value(getLse())})
    if (lse && !typeOf(lse).getElementType().isF32())
      return emitOpError() << describeTensor(*this, lse) << " is " << lse.getType()
                           << ", but a log-sum-exp is of f32; convert it (E4)";
  return verifyExtents(*this);
}

} // namespace attn

#include "attn/Dialect/Attn/IR/AttnStepEnums.cpp.inc"

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnSteps.cpp.inc"
