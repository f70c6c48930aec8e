//===- Interface.cpp - The C arguments of a function ----------------------===//
#include "attn/Entry/Interface.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Support/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include <deque>

using namespace mlir;

namespace attn {
namespace {

using Extent = std::pair<unsigned, unsigned>; // tensor, dimension

class InterfaceBuilder {
public:
  explicit InterfaceBuilder(func::FuncOp func) : func(func) {}
  FailureOr<FunctionInterface> build();

private:
  LogicalResult addTensor(Value v, StringRef name, AttnTensorRole role);
  LogicalResult addArguments();
  LogicalResult addBody();
  LogicalResult addOutputs();
  void tie(const ExtentTie &tie);
  LogicalResult nameExtents();
  LogicalResult addRules();
  LogicalResult addRule(const ExtentTie &tie);
  LogicalResult checkIntermediates();
  Extent extentOf(ExtentPlace place) const { return {*result.find(place.tensor), place.dim}; }

  func::FuncOp func;
  FunctionInterface result;
  llvm::EquivalenceClasses<Extent> classes;
  llvm::DenseMap<Extent, StringRef> names;
  std::deque<ExtentTie> ties; // whose names are used
};

LogicalResult InterfaceBuilder::addTensor(Value v, StringRef name, AttnTensorRole role) {
  auto type = dyn_cast<RankedTensorType>(v.getType());
  if (!type)
    return func.emitError() << "'" << name << "' has type " << v.getType()
                            << ", but a compiled function takes and gives ranked tensors; use a tensor of rank 0 or 1";
  if (type.getRank() > ATTN_MAX_RANK)
    return func.emitError() << "'" << name << "' has rank " << type.getRank() << "; at most " << int(ATTN_MAX_RANK);
  TensorInfo info{v, name.str(), role, type, {}, false, {}};
  if (role == ATTN_CONSTANT)
    matchPattern(v, m_Constant(&info.constant));
  result.tensors.push_back(std::move(info));
  return success();
}

LogicalResult InterfaceBuilder::addArguments() {
  auto names = getArgumentNames(func);
  for (auto [v, name] : llvm::zip(func.getArguments(), names))
    if (failed(addTensor(v, name, ATTN_INPUT)))
      return failure();
  result.numInputs = func.getNumArguments();
  return success();
}

LogicalResult InterfaceBuilder::addOutputs() {
  auto names = getResultNames(func);
  Operation *end = func.getBody().front().getTerminator();
  for (auto [v, name] : llvm::zip(end->getOperands(), names)) {
    if (result.find(v))
      return end->emitError() << "'" << name << "' is an argument or another result; return each result of an op once";
    if (failed(addTensor(v, name, ATTN_OUTPUT)))
      return failure();
  }
  result.numArguments = result.tensors.size();
  return success();
}

// What is not returned is an intermediate; constants are what the ops read of them.
LogicalResult InterfaceBuilder::addBody() {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (auto compiled = dyn_cast<CompiledOpInterface>(op)) {
      for (Value v : op.getResults())
        if (!result.find(v) &&
            failed(addTensor(v, "intermediate" + std::to_string(result.tensors.size()), ATTN_TEMPORARY)))
          return failure();
      llvm::append_range(ties, compiled.getExtentTies());
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isa<TensorType>(constant.getType()) &&
          failed(addTensor(constant, "constant" + std::to_string(result.tensors.size()), ATTN_CONSTANT)))
        return failure();
      continue;
    }
    if (op.getNumRegions() || llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
      return op.emitError() << "'" << op.getName()
                            << "' cannot be compiled: a function holds ops of the attn dialect, constants and the "
                               "extents of tensors";
  }
  return success();
}

void InterfaceBuilder::tie(const ExtentTie &tie) {
  std::optional<Extent> first;
  for (ExtentPlace place : tie.places) {
    Extent extent = extentOf(place);
    names.try_emplace(extent, tie.name);
    if (first)
      classes.unionSets(*first, extent);
    else
      classes.insert(*(first = extent));
  }
}

LogicalResult InterfaceBuilder::nameExtents() {
  llvm::DenseMap<Extent, int64_t> known; // leader -> static extent, or -(symbol + 1)
  auto leader = [&](Extent e) { return classes.contains(e) ? classes.getLeaderValue(e) : e; };
  for (auto [t, tensor] : llvm::enumerate(result.tensors))
    for (auto [d, extent] : llvm::enumerate(tensor.type.getShape())) {
      if (extent < 0)
        continue;
      auto [it, isNew] = known.try_emplace(leader({t, d}), extent);
      if (!isNew && it->second != extent)
        return func.emitError() << "'" << tensor.name << "' has " << names.lookup({t, d}) << " " << extent
                                << ", but another tensor of the same extent has " << it->second;
    }
  for (auto [t, tensor] : llvm::enumerate(result.tensors))
    for (unsigned d = 0; d < tensor.type.getRank(); ++d) {
      auto [it, isNew] = known.try_emplace(leader({t, d}), -int64_t(result.symbols.size()) - 1);
      if (isNew) {
        StringRef name = names.lookup({t, d});
        result.symbols.push_back(
            {name.empty() ? "extent " + std::to_string(d) + " of '" + tensor.name + "'" : name.str()});
      }
      tensor.dims.push_back(it->second);
    }
  return success();
}

LogicalResult InterfaceBuilder::addRule(const ExtentTie &tie) {
  Extent place = extentOf(tie.places.front()), source = extentOf(tie.rule->source);
  int64_t target = result.tensors[place.first].dims[place.second];
  int64_t from = result.tensors[source.first].dims[source.second];
  AttnExtentRule rule = {from, tie.rule->times, tie.rule->plus, tie.rule->by};
  if (target < 0) {
    result.symbols[-target - 1].rule = rule;
    return success();
  }
  if (from >= 0 && tie.rule->apply(from) == target)
    return success();
  InFlightDiagnostic diagnostic = emitError(tie.places.front().tensor.getLoc())
                                  << "has " << tie.name << " = " << target << ", which follows from '"
                                  << result.tensors[source.first].name << "'";
  return from < 0 ? diagnostic << ", whose extent is dynamic; write ? for it"
                  : diagnostic << " to be " << tie.rule->apply(from);
}

LogicalResult InterfaceBuilder::addRules() {
  for (const ExtentTie &tie : ties)
    if (tie.rule && failed(addRule(tie)))
      return failure();
  return success();
}

// The runtime allocates intermediates, so their extents have to be known from the inputs.
LogicalResult InterfaceBuilder::checkIntermediates() {
  llvm::BitVector known(result.symbols.size());
  for (const TensorInfo &tensor : ArrayRef(result.tensors).take_front(result.numInputs))
    for (int64_t dim : tensor.dims)
      if (dim < 0)
        known.set(-dim - 1);
  for (const TensorInfo &tensor : result.tensors)
    for (auto [d, dim] : llvm::enumerate(tensor.dims))
      if (tensor.role == ATTN_TEMPORARY && dim < 0 && !known[-dim - 1] && result.symbols[-dim - 1].rule.by == 0)
        return emitError(tensor.value.getLoc())
               << "dimension " << d << " of its result follows from no input; write a number for it in the type";
  return success();
}

FailureOr<FunctionInterface> InterfaceBuilder::build() {
  result.name = func.getName().str();
  if (!func.getBody().hasOneBlock())
    return func.emitError("has no body or several blocks; a compiled function is one block of attention ops");
  if (failed(addArguments()) || failed(addOutputs()) || failed(addBody()))
    return failure();
  auto ops = func.getOps<CompiledOpInterface>();
  if (ops.empty())
    return func.emitError("holds no attn.attention, so there is nothing to compile");
  for (const ExtentTie &each : ties)
    tie(each);
  for (CompiledOpInterface op : ops)
    for (Value tensor : op.getContiguous())
      result.tensors[*result.find(tensor)].innerContiguous = true;
  if (failed(nameExtents()) || failed(addRules()) || failed(checkIntermediates()))
    return failure();
  return std::move(result);
}

} // namespace

FailureOr<FunctionInterface> FunctionInterface::of(func::FuncOp func) { return InterfaceBuilder(func).build(); }

std::optional<unsigned> FunctionInterface::find(Value value) const {
  for (auto [i, tensor] : llvm::enumerate(tensors))
    if (tensor.value == value)
      return i;
  return std::nullopt;
}

} // namespace attn
