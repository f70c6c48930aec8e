//===- Interface.cpp - The C arguments of a function ----------------------===//
#include "attn/Tiling/Interface.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Support/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"

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
  void tieAttention(Operation *op);
  void tie(StringRef name, std::initializer_list<std::pair<Value, unsigned>> extents);
  LogicalResult nameExtents();

  func::FuncOp func;
  FunctionInterface result;
  llvm::EquivalenceClasses<Extent> classes;
  llvm::DenseMap<Extent, StringRef> names;
  SmallVector<Operation *> attentions;
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

// What is not returned is an intermediate; constants are what an attention reads of them.
LogicalResult InterfaceBuilder::addBody() {
  for (Operation &op : func.getBody().front().without_terminator()) {
    if (isa<AttentionOp, tile::LaunchOp>(op)) {
      attentions.push_back(&op);
      for (Value v : op.getResults())
        if (!result.find(v) &&
            failed(addTensor(v, "intermediate" + std::to_string(result.tensors.size()), ATTN_TEMPORARY)))
          return failure();
      continue;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (isa<TensorType>(constant.getType()) &&
          failed(addTensor(constant, "constant" + std::to_string(result.tensors.size()), ATTN_CONSTANT)))
        return failure();
      continue;
    }
    if (op.getNumRegions() || llvm::any_of(op.getResultTypes(), llvm::IsaPred<TensorType>))
      return op.emitError()
             << "'" << op.getName()
             << "' cannot be compiled: a function holds attn.attention, constants and the extents of tensors";
  }
  return success();
}

void InterfaceBuilder::tie(StringRef name, std::initializer_list<std::pair<Value, unsigned>> extents) {
  std::optional<Extent> first;
  for (auto [v, dim] : extents) {
    if (!v)
      continue;
    Extent extent{*result.find(v), dim};
    names.try_emplace(extent, name);
    if (first)
      classes.unionSets(*first, extent);
    else
      classes.insert(*(first = extent));
  }
}

/// The output and the log-sum-exp that `op` joins; null where it joins none.
static std::pair<Value, Value> getJoined(Operation *op) {
  if (auto attention = dyn_cast<AttentionOp>(op))
    return {attention.getJoinedOutput(), attention.getJoinedLse()};
  auto launch = cast<tile::LaunchOp>(op);
  return {launch.getJoinedOutput(), launch.getJoinedLse()};
}

void InterfaceBuilder::tieAttention(Operation *op) {
  Value q = op->getOperand(0), k = op->getOperand(1), v = op->getOperand(2), out = op->getResult(0);
  Value lse = op->getNumResults() > 1 ? op->getResult(1) : Value();
  tie("batch", {{q, 0}, {k, 0}, {v, 0}, {out, 0}, {lse, 0}});
  tie("query heads", {{q, 1}, {out, 1}, {lse, 1}});
  tie("key/value heads", {{k, 1}, {v, 1}});
  tie("queries", {{q, 2}, {out, 2}, {lse, 2}});
  tie("keys", {{k, 2}, {v, 2}});
  tie("head_dim", {{q, 3}, {k, 3}});
  tie("value head_dim", {{v, 3}, {out, 3}});
  auto [joined, joinedLse] = getJoined(op);
  tie("batch", {{q, 0}, {joined, 0}, {joinedLse, 0}});
  tie("query heads", {{q, 1}, {joined, 1}, {joinedLse, 1}});
  tie("queries", {{q, 2}, {joined, 2}, {joinedLse, 2}});
  tie("value head_dim", {{v, 3}, {joined, 3}});
  for (Value x : {q, k, v, out, joined})
    if (x)
      result.tensors[*result.find(x)].innerContiguous = true;
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
        result.symbols.push_back(name.empty() ? "extent " + std::to_string(d) + " of '" + tensor.name + "'"
                                              : name.str());
      }
      tensor.dims.push_back(it->second);
    }
  return success();
}

FailureOr<FunctionInterface> InterfaceBuilder::build() {
  result.name = func.getName().str();
  if (!func.getBody().hasOneBlock())
    return func.emitError("has no body or several blocks; a compiled function is one block of attention ops");
  if (failed(addArguments()) || failed(addOutputs()) || failed(addBody()))
    return failure();
  if (attentions.empty())
    return func.emitError("holds no attn.attention, so there is nothing to compile");
  for (Operation *op : attentions)
    tieAttention(op);
  if (failed(nameExtents()))
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
