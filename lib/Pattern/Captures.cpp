//===- Captures.cpp - What the regions of an attention read ---------------===//

#include "attn/Pattern/Captures.h"
#include "attn/Pattern/Expand.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attn;

/// Whether a value of an expanded mask is computed from the query or key position.
static bool isVarying(Value value, llvm::SmallPtrSetImpl<Operation *> &seen) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber() == 2 || argument.getArgNumber() == 3;
  Operation *op = value.getDefiningOp();
  return seen.insert(op).second &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isVarying(operand, seen); });
}

/// The dimension that intervals are asked for: the last one whose index varies.
static unsigned getVaryingDim(tensor::ExtractOp op) {
  for (unsigned dim = op.getIndices().size(); dim-- > 0;) {
    llvm::SmallPtrSet<Operation *, 8> seen;
    if (isVarying(op.getIndices()[dim], seen))
      return dim;
  }
  return std::max<size_t>(op.getIndices().size(), 1) - 1;
}

/// The table that an op of an expanded mask asks.
static std::optional<Table> makeTable(Operation *op, unsigned operand) {
  if (auto contains = dyn_cast<ContainsOp>(op))
    return Table{Table::Kind::Members, operand, static_cast<unsigned>(contains.getIndices().size())};
  auto extract = dyn_cast<tensor::ExtractOp>(op);
  if (extract && extract.getType().isIntOrIndex())
    return Table{Table::Kind::Range, operand, getVaryingDim(extract)};
  return std::nullopt;
}

/// Adds the tensors from outside that the score region uses, and those whose elements it reads.
static void addScoreTensors(AttentionOp op, SmallVector<Value> &tensors, SmallVector<Value> &read) {
  op.getScore().walk([&](Operation *inner) {
    for (Value operand : inner->getOperands()) {
      bool outside = isa<ShapedType>(operand.getType()) && !op.getScore().isAncestor(operand.getParentRegion());
      auto dim = dyn_cast<tensor::DimOp>(inner);
      if (outside && !(dim && isKnownExtent(dim, op)) && !llvm::is_contained(tensors, operand))
        tensors.push_back(operand);
      if (outside && !dim)
        read.push_back(operand);
    }
  });
}

Captures Captures::of(AttentionOp op) {
  Captures captures;
  SmallVector<Value> read;
  ExpandedMask mask(op);
  captures.tensors.assign(mask.getTensors().begin(), mask.getTensors().end());
  for (Operation &inner : mask.getBlock()) {
    auto source = inner.getNumOperands() ? dyn_cast<BlockArgument>(inner.getOperand(0)) : BlockArgument();
    if (!source || source.getArgNumber() < 4)
      continue;
    std::optional<Table> table = makeTable(&inner, source.getArgNumber() - 4);
    if (table && !llvm::is_contained(captures.tables, *table))
      captures.tables.push_back(*table);
    if (isa<tensor::ExtractOp>(inner))
      read.push_back(captures.tensors[source.getArgNumber() - 4]);
  }
  addScoreTensors(op, captures.tensors, read);
  for (Value tensor : {op.getSink(), op.getTable(), op.getBias(), op.getScores()})
    if (tensor && !captures.findTensor(tensor))
      captures.tensors.push_back(tensor);
  for (const Table &table : captures.tables)
    if (table.kind == Table::Kind::Members && !llvm::is_contained(read, captures.tensors[table.operand]))
      captures.searched |= int64_t(1) << (table.operand % 64); // more operands than bits are refused later
  return captures;
}

bool Captures::isComputed(Value tensor) { return tensor.getDefiningOp<CompiledOpInterface>(); }

void Captures::forgetRangesOfComputed() {
  llvm::erase_if(tables, [&](const Table &table) {
    return table.kind == Table::Kind::Range && isComputed(tensors[table.operand]);
  });
}

std::optional<unsigned> Captures::findTensor(Value tensor) const {
  auto it = llvm::find(tensors, tensor);
  return it == tensors.end() ? std::nullopt : std::optional<unsigned>(it - tensors.begin());
}

std::optional<unsigned> Captures::findTable(Operation *op, unsigned operand) const {
  std::optional<Table> table = makeTable(op, operand);
  auto it = table ? llvm::find(tables, *table) : tables.end();
  return it == tables.end() ? std::nullopt : std::optional<unsigned>(it - tables.begin());
}

std::optional<unsigned> Captures::getTable(Operation *op) const {
  std::optional<unsigned> operand = op->getNumOperands() ? findTensor(op->getOperand(0)) : std::nullopt;
  return operand ? findTable(op, *operand) : std::nullopt;
}
