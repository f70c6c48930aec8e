//===- AttnTileStep.cpp - What a step must say ----------------------------===//
#include "attn/Dialect/AttnTile/IR/AttnTile.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

static int64_t numberOf(Operation *op, Value tensor) {
  auto operands = op->getOperands();
  auto it = llvm::find(operands, tensor);
  if (it != operands.end())
    return it - operands.begin();
  return operands.size() + cast<OpResult>(tensor).getResultNumber();
}

Value StepOp::getTensor(int64_t number) {
  int64_t inputs = getInputs().size();
  return number < inputs ? getInputs()[number] : getOutputs()[number - inputs];
}

//===----------------------------------------------------------------------===//
// Extents as attributes
//===----------------------------------------------------------------------===//

ArrayAttr StepOp::encodeExtents(CompiledOpInterface op) {
  Builder b(op.getContext());
  SmallVector<Attribute> ties;
  for (const ExtentTie &tie : op.getExtentTies()) {
    SmallVector<int64_t> places;
    for (ExtentPlace place : tie.places)
      places.append({numberOf(op, place.tensor), place.dim});
    SmallVector<Attribute> parts{b.getStringAttr(tie.name), b.getDenseI64ArrayAttr(places)};
    if (const auto &rule = tie.rule)
      parts.push_back(b.getDenseI64ArrayAttr(
          {numberOf(op, rule->source.tensor), rule->source.dim, rule->times, rule->plus, rule->by}));
    ties.push_back(b.getArrayAttr(parts));
  }
  return b.getArrayAttr(ties);
}

DenseI64ArrayAttr StepOp::encodeContiguous(CompiledOpInterface op) {
  SmallVector<int64_t> numbers;
  for (Value tensor : op.getContiguous())
    numbers.push_back(numberOf(op, tensor));
  return DenseI64ArrayAttr::get(op.getContext(), numbers);
}

DenseI64ArrayAttr StepOp::encodeMultiples(CompiledOpInterface op) {
  SmallVector<int64_t> numbers;
  for (ExtentMultiple multiple : op.getMultiples())
    for (ExtentPlace place : {multiple.place, multiple.of})
      numbers.append({numberOf(op, place.tensor), place.dim});
  return DenseI64ArrayAttr::get(op.getContext(), numbers);
}

SmallVector<ExtentTie> StepOp::getExtentTies() {
  SmallVector<ExtentTie> ties;
  for (auto parts : getExtents().getAsRange<ArrayAttr>()) {
    ExtentTie &tie = ties.emplace_back();
    tie.name = cast<StringAttr>(parts[0]).str();
    ArrayRef<int64_t> places = cast<DenseI64ArrayAttr>(parts[1]);
    for (; !places.empty(); places = places.drop_front(2))
      tie.places.push_back({getTensor(places[0]), unsigned(places[1])});
    if (parts.size() > 2) {
      ArrayRef<int64_t> rule = cast<DenseI64ArrayAttr>(parts[2]);
      tie.rule = ExtentRule{{getTensor(rule[0]), unsigned(rule[1])}, rule[2], rule[3], rule[4]};
    }
  }
  return ties;
}

SmallVector<Value> StepOp::getContiguous() {
  SmallVector<Value> tensors;
  for (int64_t number : getUnitStrideAttr().asArrayRef())
    tensors.push_back(getTensor(number));
  return tensors;
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

static bool isPlace(StepOp op, int64_t tensor, int64_t dim) {
  if (tensor < 0 || tensor >= int64_t(op.getInputs().size() + op.getOutputs().size()))
    return false;
  return dim >= 0 && dim < cast<RankedTensorType>(op.getTensor(tensor).getType()).getRank();
}

static bool isTie(StepOp op, Attribute attribute) {
  auto parts = dyn_cast<ArrayAttr>(attribute);
  if (!parts || parts.size() < 2 || parts.size() > 3 || !isa<StringAttr>(parts[0]))
    return false;
  auto places = dyn_cast<DenseI64ArrayAttr>(parts[1]);
  if (!places || places.size() < 2 || places.size() % 2)
    return false;
  for (int64_t i = 0; i < places.size(); i += 2)
    if (!isPlace(op, places[i], places[i + 1]))
      return false;
  if (parts.size() == 2)
    return true;
  auto rule = dyn_cast<DenseI64ArrayAttr>(parts[2]);
  return rule && rule.size() == 5 && isPlace(op, rule[0], rule[1]) && rule[4] >= 1;
}

LogicalResult StepOp::verify() {
  ArrayRef<int64_t> units = getUnits();
  bool good = units.size() % 3 == 0;
  for (size_t i = 0; good && i < units.size(); i += 3)
    good = isPlace(*this, units[i], units[i + 1]) && units[i + 2] >= 1;
  if (!good)
    return emitOpError("its units must be triples of a tensor, a dimension of it and a size from 1 up (T23)");
  ArrayRef<int64_t> multiples = getMultipleExtentsAttr().asArrayRef();
  good = multiples.size() % 4 == 0;
  for (size_t i = 0; good && i < multiples.size(); i += 2)
    good = isPlace(*this, multiples[i], multiples[i + 1]);
  if (!good)
    return emitOpError("its multiples must be quadruples: a tensor and a dimension of it, twice (T23)");
  for (Attribute tie : getExtents())
    if (!isTie(*this, tie))
      return emitOpError() << "its extents have " << tie
                           << "; write a name, pairs of tensor and dimension and, if there is a rule, its five numbers "
                              "(T23)";
  for (int64_t number : getUnitStrideAttr().asArrayRef())
    if (!isPlace(*this, number, 0))
      return emitOpError() << "its contiguous names tensor " << number << ", which it lacks (T23)";
  return success();
}

LogicalResult StepOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto code = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(*this, getCodeAttr());
  if (!code)
    return emitOpError() << getCodeAttr() << " is no function of this module; define it (T22)";
  SmallVector<Type> tensors(getInputs().getTypes());
  llvm::append_range(tensors, getOutputs().getTypes());
  ArrayRef<Type> types = code.getArgumentTypes();
  bool good = types.size() == tensors.size() + 1 && types.back().isIndex() && code.getResultTypes().empty();
  for (size_t i = 0; good && i < tensors.size(); ++i)
    good = isa<MemRefType>(types[i]) && agree(tensors[i], types[i]);
  if (good)
    return success();
  return emitOpError() << "its code " << getCodeAttr() << " has type " << code.getFunctionType()
                       << "; it must take the memrefs of inputs and outputs, then an index, and return nothing (T22)";
}
