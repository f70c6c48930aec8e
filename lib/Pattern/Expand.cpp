//===- Expand.cpp - Masks spelt out in basic ops --------------------------===//

#include "attn/Pattern/Expand.h"
#include "MaskAnalysis.h"
#include "attn/Pattern/Mask.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace attn;

/// Replaces `op` by its meaning, and predicates in that meaning by theirs.
static void expandOp(OpBuilder &builder, Operation *op, llvm::function_ref<bool(MaskOpInterface)> keep) {
  auto predicate = dyn_cast<MaskOpInterface>(op);
  if (!predicate || (keep && keep(predicate)))
    return;
  Operation *before = op->getPrevNode();
  builder.setInsertionPoint(op);
  Value meaning = predicate.expand(builder);
  if (!meaning)
    return;
  Operation *next = before ? before->getNextNode() : &op->getBlock()->front();
  op->getResult(0).replaceAllUsesWith(meaning);
  while (next != op) {
    Operation *current = next;
    next = next->getNextNode();
    expandOp(builder, current, keep);
  }
  op->erase();
}

/// The extent of a static dimension.
static std::optional<int64_t> getStaticExtent(tensor::DimOp dim) {
  std::optional<int64_t> index = dim.getConstantIndex();
  auto type = dyn_cast<RankedTensorType>(dim.getSource().getType());
  if (index && type && *index >= 0 && *index < type.getRank() && !type.isDynamicDim(*index))
    return type.getDimSize(*index);
  return std::nullopt;
}

bool attn::isKnownExtent(tensor::DimOp dim, AttentionOp attention) {
  Value source = dim.getSource();
  bool ofAttention = source == attention.getQuery() || source == attention.getKey() || source == attention.getValue();
  return getStaticExtent(dim) || (ofAttention && dim.getConstantIndex() == 2);
}

/// Builds a known extent.
static Value importExtent(OpBuilder &builder, tensor::DimOp dim, AttentionOp attention) {
  if (std::optional<int64_t> extent = getStaticExtent(dim))
    return arith::ConstantIndexOp::create(builder, dim.getLoc(), *extent);
  if (dim.getSource() == attention.getQuery())
    return NumQueriesOp::create(builder, dim.getLoc());
  return NumKeysOp::create(builder, dim.getLoc());
}

/// Where the type of an operand says how many rows there are, all readings can know it.
static void foldStaticExtents(Block &block, AttentionOp op) {
  for (Operation &inner : llvm::make_early_inc_range(block)) {
    if (!isa<NumQueriesOp, NumKeysOp>(inner))
      continue;
    int64_t rows = (isa<NumQueriesOp>(inner) ? op.getQueryType() : op.getKeyType()).getDimSize(2);
    if (ShapedType::isDynamic(rows))
      continue;
    OpBuilder builder(&inner);
    inner.getResult(0).replaceAllUsesWith(arith::ConstantIndexOp::create(builder, inner.getLoc(), rows));
    inner.erase();
  }
}

ExpandedMask::ExpandedMask(AttentionOp op, llvm::function_ref<bool(MaskOpInterface)> keep)
    : leastQuery(op.getAlign() == Align::TopLeft ? 0 : std::numeric_limits<int32_t>::min()) {
  OpBuilder builder(op.getContext());
  holder = ModuleOp::create(builder, op.getLoc());
  Block &block = getBlock();
  IRMapping mapping;
  for (int64_t position = 0; position < 4; ++position)
    block.addArgument(builder.getIndexType(), op.getLoc());
  builder.setInsertionPointToEnd(&block);
  Block *mask = op.getMaskBlock();
  if (!mask) {
    result = arith::ConstantIntOp::create(builder, op.getLoc(), 1, 1);
    members = {result};
    return;
  }
  mapping.map(mask->getArguments(), block.getArguments());
  for (Operation &inner : mask->without_terminator()) {
    builder.setInsertionPointToEnd(&block);
    if (auto dim = dyn_cast<tensor::DimOp>(inner))
      if (isKnownExtent(dim, op)) {
        mapping.map(dim.getResult(), importExtent(builder, dim, op));
        continue;
      }
    for (Value operand : inner.getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, importValue(builder, operand));
    builder.clone(inner, mapping);
  }
  // A marker keeps the results in sight while predicates are replaced.
  OperationState marker(op.getLoc(), YieldOp::getOperationName());
  for (Value yielded : op.getMaskMembers()) {
    if (!mapping.contains(yielded))
      mapping.map(yielded, importValue(builder, yielded));
    marker.addOperands(mapping.lookup(yielded));
  }
  Operation *yield = builder.create(marker);
  for (Operation *inner = &block.front(); inner != yield;) {
    Operation *current = inner;
    inner = inner->getNextNode();
    expandOp(builder, current, keep);
  }
  members.assign(yield->operand_begin(), yield->operand_end());
  yield->erase();
  builder.setInsertionPointToEnd(&block);
  combineMembers(builder);
  foldStaticExtents(block, op);
  removeDeadOps();
}

void ExpandedMask::combineMembers(OpBuilder &builder) {
  Location loc = holder->getLoc();
  auto either = [&](Value a, Value b) { return a ? arith::OrIOp::create(builder, loc, a, b).getResult() : b; };
  for (Value member : members)
    result = either(result, member);
  if (members.size() < 2)
    return;
  Value yes = arith::ConstantIntOp::create(builder, loc, 1, 1);
  for (Value member : members) {
    Value others, alone;
    for (Value other : members)
      if (other != member)
        others = either(others, other);
    // The same value twice never holds once.
    if (!others || llvm::count(members, member) > 1)
      continue;
    others = arith::XOrIOp::create(builder, loc, others, yes);
    alone = arith::AndIOp::create(builder, loc, member, others);
    once = either(once, alone);
  }
  if (!once)
    once = arith::ConstantIntOp::create(builder, loc, 0, 1);
}

Block &ExpandedMask::getBlock() const { return *holder.get().getBody(); }

/// Tensors become arguments; what else may come from outside is a constant or an extent and moves in.
Value ExpandedMask::importValue(OpBuilder &builder, Value outside) {
  Operation *source = outside.getDefiningOp();
  if (!isa<ShapedType>(outside.getType()) && source && source->getNumOperands() == 0)
    return builder.clone(*source)->getResult(cast<OpResult>(outside).getResultNumber());
  tensors.push_back(outside);
  return getBlock().addArgument(outside.getType(), outside.getLoc());
}

void ExpandedMask::removeDeadOps() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(getBlock())))
    if (op.use_empty() && isMemoryEffectFree(&op) && llvm::none_of(op.getResults(), [&](Value v) {
          return v == result || v == once || llvm::is_contained(members, v);
        }))
      op.erase();
  SmallVector<Value> kept;
  for (int64_t k = tensors.size() - 1; k >= 0; --k) {
    BlockArgument argument = getBlock().getArgument(4 + k);
    if (!argument.use_empty())
      continue;
    getBlock().eraseArgument(4 + k);
    tensors.erase(tensors.begin() + k);
  }
}

/// The conjunction without the conjuncts that always hold; null where nothing is left.
static Value rebuild(OpBuilder &builder, Value conjunction, llvm::function_ref<bool(Value)> holds) {
  if (holds(conjunction))
    return {};
  auto both = conjunction.getDefiningOp<arith::AndIOp>();
  if (!both)
    return conjunction;
  Value lhs = rebuild(builder, both.getLhs(), holds), rhs = rebuild(builder, both.getRhs(), holds);
  if (lhs == both.getLhs() && rhs == both.getRhs())
    return conjunction;
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(builder, both.getLoc(), lhs, rhs);
}

void ExpandedMask::dropConjuncts(const Reindexing &reindexing) {
  if (reindexing.kind == ReindexKind::Dense)
    return;
  MaskAnalysis analysis(*this);
  OpBuilder builder = OpBuilder::atBlockEnd(&getBlock());
  Location loc = holder->getLoc();
  result = rebuild(builder, result, [&](Value conjunct) { return analysis.holdsInClasses(conjunct, reindexing); });
  if (!result)
    result = arith::ConstantIntOp::create(builder, loc, 1, 1);
  members = {result};
  removeDeadOps();
}

Value attn::expandMaskInto(OpBuilder &builder, Block &maskBlock, ValueRange bhij, const ExpandOptions &options) {
  ExpandedMask mask(cast<AttentionOp>(maskBlock.getParentOp()));
  if (options.reindexing)
    mask.dropConjuncts(*options.reindexing);
  IRMapping mapping;
  mapping.map(mask.getBlock().getArguments().take_front(4), bhij);
  for (auto [argument, tensor] : llvm::zip_equal(mask.getBlock().getArguments().drop_front(4), mask.getTensors()))
    mapping.map(argument, options.capture ? options.capture(tensor) : tensor);
  for (Operation &op : mask.getBlock()) {
    if (isa<NumQueriesOp>(op) && options.numQueries)
      mapping.map(op.getResult(0), options.numQueries);
    else if (isa<NumKeysOp>(op) && options.numKeys)
      mapping.map(op.getResult(0), options.numKeys);
    else
      builder.clone(op, mapping);
  }
  if (options.members)
    for (Value member : mask.getMembers())
      options.members->push_back(mapping.lookupOrDefault(member));
  return mapping.lookupOrDefault(mask.getResult());
}

Value attn::cloneScoreInto(OpBuilder &builder, Block &scoreBlock, Value score, ValueRange bhij,
                           const ExpandOptions &options) {
  auto attention = cast<AttentionOp>(scoreBlock.getParentOp());
  IRMapping mapping;
  mapping.map(scoreBlock.getArgument(0), score);
  mapping.map(scoreBlock.getArguments().drop_front(), bhij);
  auto import = [&](Value value) {
    if (mapping.contains(value) || scoreBlock.getParent()->isAncestor(value.getParentRegion()))
      return;
    Operation *source = value.getDefiningOp();
    if (!isa<ShapedType>(value.getType()) && source && source->getNumOperands() == 0)
      mapping.map(value, builder.clone(*source)->getResult(0));
    else if (options.capture)
      mapping.map(value, options.capture(value));
  };
  for (Operation &op : scoreBlock.without_terminator()) {
    auto dim = dyn_cast<tensor::DimOp>(op);
    bool known = dim && isKnownExtent(dim, attention);
    if (isa<NumQueriesOp>(op) && options.numQueries) {
      mapping.map(op.getResult(0), options.numQueries);
    } else if (isa<NumKeysOp>(op) && options.numKeys) {
      mapping.map(op.getResult(0), options.numKeys);
    } else if (known && getStaticExtent(dim)) {
      mapping.map(dim.getResult(), importExtent(builder, dim, attention));
    } else if (known && options.numQueries && options.numKeys) {
      mapping.map(dim.getResult(), dim.getSource() == attention.getQuery() ? options.numQueries : options.numKeys);
    } else {
      llvm::for_each(op.getOperands(), import);
      builder.clone(op, mapping);
    }
  }
  import(attention.getScoreResult());
  return mapping.lookupOrDefault(attention.getScoreResult());
}
