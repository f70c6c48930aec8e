//===- ExpandRows.cpp - Attention over rows by number ----------------------===//
//
// Attention over lists of rows is attention over gathered rows whose regions ask the lists where these come from, and
// leave out entries that are no row. Nothing behind this knows of lists.
//
//===----------------------------------------------------------------------===//
#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "attn/Schedule/Passes.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"

namespace attn {
#define GEN_PASS_DEF_EXPANDROWS
#include "attn/Schedule/Passes.h.inc"
} // namespace attn

using namespace mlir;
using namespace attn;

static int64_t rankOf(Value tensor) { return cast<RankedTensorType>(tensor.getType()).getRank(); }

namespace {
/// Writes one region over again, in which positions are places in the lists.
class RegionWriter {
public:
  RegionWriter(AttentionOp op, Block *block) : op(op), b(op.getContext()), loc(op.getLoc()), block(block) {
    b.setInsertionPointToEnd(block);
    bhij.assign(block->args_end() - 4, block->args_end());
    row = read(op.getQueryIndices(), bhij[1], bhij[2]);
    keyRow = read(op.getKeyIndices(), keyGroup(), bhij[3]);
  }

  /// What `from` yields for these rows; nothing where it is null.
  SmallVector<Value> copy(Block *from);
  /// The value, where both rows are there; without a value only that.
  Value ifThere(Value keep);
  void yield(ValueRange values) { YieldOp::create(b, loc, TypeRange(), values); }

private:
  /// The group of the list of keys that a query head reads.
  Value keyGroup();
  /// An entry of a list as a position; without a list the place is one.
  Value read(Value list, Value group, Value place);
  Value extent(ExtentPlace place);
  Value count(Operation *op);
  void settleExtents(MaskOpInterface predicate);
  Value both(Value x, Value y) { return x && y ? arith::AndIOp::create(b, loc, x, y).getResult() : x ? x : y; }

  AttentionOp op;
  OpBuilder b;
  Location loc;
  Block *block;
  SmallVector<Value, 4> bhij;
  Value row, keyRow;
};
} // namespace

Value RegionWriter::extent(ExtentPlace place) {
  int64_t known = cast<RankedTensorType>(place.tensor.getType()).getDimSize(place.dim);
  if (!ShapedType::isDynamic(known))
    return arith::ConstantIndexOp::create(b, loc, known);
  return tensor::DimOp::create(b, loc, place.tensor, place.dim);
}

Value RegionWriter::keyGroup() {
  Value list = op.getKeyIndices();
  if (!list || rankOf(list) < 3)
    return {};
  auto sizeOf = [](ExtentPlace p) { return cast<RankedTensorType>(p.tensor.getType()).getDimSize(p.dim); };
  ExtentPlace heads = op.getQueryHeads(), groups = op.getKeyHeads();
  if (heads.tensor == groups.tensor || (sizeOf(heads) == sizeOf(groups) && !ShapedType::isDynamic(sizeOf(heads))))
    return bhij[1];
  // Where there is a row there are groups and heads; that divisors are above 0 is said for who plans.
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  auto divide = [&](Value x, Value by) -> Value {
    if (!by.getDefiningOp<arith::ConstantIndexOp>())
      by = arith::MaxSIOp::create(b, loc, by, one);
    return arith::DivSIOp::create(b, loc, x, by);
  };
  return divide(bhij[1], divide(extent(heads), extent(groups)));
}

Value RegionWriter::read(Value list, Value group, Value place) {
  if (!list)
    return place;
  SmallVector<Value> at{bhij[0], group, place};
  if (rankOf(list) < 3)
    at = rankOf(list) == 2 ? SmallVector<Value>{bhij[0], place} : SmallVector<Value>{place};
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), tensor::ExtractOp::create(b, loc, list, at));
}

/// Extents in a region are those of the tensors that lists number.
Value RegionWriter::count(Operation *inner) {
  if (isa<NumKeysOp>(inner))
    return extent({op.getKey(), 2});
  return isa<NumQueriesOp>(inner) ? extent({op.getQuery(), 2}) : Value();
}

/// Predicates whose meaning has such extents are spelt out.
void RegionWriter::settleExtents(MaskOpInterface predicate) {
  Operation *before = predicate->getPrevNode();
  b.setInsertionPoint(predicate);
  Value meaning = predicate.expand(b);
  Block::iterator first = before ? std::next(before->getIterator()) : block->begin();
  SmallVector<Operation *> made;
  for (Operation &inner : llvm::make_range(first, predicate->getIterator()))
    made.push_back(&inner);
  bool asks = llvm::any_of(made, [](Operation *inner) { return isa<NumKeysOp, NumQueriesOp>(inner); });
  if (asks)
    predicate->getResult(0).replaceAllUsesWith(meaning);
  for (Operation *inner : llvm::reverse(made))
    if (!asks)
      inner->erase();
  for (Operation *inner : asks ? made : SmallVector<Operation *>())
    if (b.setInsertionPoint(inner); Value known = count(inner)) {
      inner->getResult(0).replaceAllUsesWith(known);
      inner->erase();
    }
  if (asks)
    predicate->erase();
  b.setInsertionPointToEnd(block);
}

SmallVector<Value> RegionWriter::copy(Block *from) {
  if (!from)
    return {};
  IRMapping mapping;
  mapping.map(from->getArguments(), block->getArguments());
  mapping.map(from->getArgument(from->getNumArguments() - 2), row);
  mapping.map(from->getArgument(from->getNumArguments() - 1), keyRow);
  SmallVector<MaskOpInterface> predicates;
  for (Operation &inner : from->without_terminator()) {
    if (Value known = count(&inner)) {
      mapping.map(inner.getResult(0), known);
      continue;
    }
    if (auto predicate = dyn_cast<MaskOpInterface>(b.clone(inner, mapping)))
      predicates.push_back(predicate);
  }
  YieldOp result = YieldOp::create(
      b, loc, TypeRange(),
      llvm::map_to_vector(from->getTerminator()->getOperands(), [&](Value v) { return mapping.lookupOrDefault(v); }));
  llvm::for_each(predicates, [&](MaskOpInterface predicate) { settleExtents(predicate); });
  SmallVector<Value> values(result.getValues());
  result.erase();
  b.setInsertionPointToEnd(block);
  return values;
}

Value RegionWriter::ifThere(Value keep) {
  for (auto [list, position, numbered] :
       {std::tuple(op.getQueryIndices(), row, op.getQuery()), {op.getKeyIndices(), keyRow, op.getKey()}}) {
    if (!list)
      continue;
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, position, extent({numbered, 2}));
    Value atLeast = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, position, zero);
    keep = both(keep, both(atLeast, below));
  }
  return keep;
}

/// The rows of a list, in its order.
static Value gather(OpBuilder &b, Location loc, Value tensor, Value list) {
  auto type = cast<RankedTensorType>(tensor.getType()), lists = cast<RankedTensorType>(list.getType());
  SmallVector<int64_t> shape(type.getShape());
  if (lists.getRank() == 3)
    shape[1] = lists.getDimSize(1);
  shape[2] = lists.getShape().back();
  return GatherRowsOp::create(b, loc, type.clone(shape), tensor, list);
}

static void expand(AttentionOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  IRMapping mapping;
  auto next = cast<AttentionOp>(op->cloneWithoutRegions(mapping));
  b.insert(next);
  if (Block *score = op.getScoreBlock()) {
    RegionWriter writer(op, next.addScoreBlock());
    writer.yield(writer.copy(score));
  }
  RegionWriter writer(op, next.addMaskBlock());
  SmallVector<Value> kept = writer.copy(op.getMaskBlock());
  if (kept.empty())
    kept.push_back({});
  for (Value &member : kept)
    member = writer.ifThere(member);
  writer.yield(kept);
  b.setInsertionPoint(next);
  if (Value list = op.getQueryIndices())
    next.getQueryMutable().assign(gather(b, loc, op.getQuery(), list));
  if (Value list = op.getKeyIndices()) {
    next.getKeyMutable().assign(gather(b, loc, op.getKey(), list));
    bool same = op.getKey() == op.getValue();
    next.getValueMutable().assign(same ? next.getKey() : gather(b, loc, op.getValue(), list));
  }
  next.getQueryIndicesMutable().clear();
  next.getKeyIndicesMutable().clear();
  op->replaceAllUsesWith(next);
  op.erase();
}

void attn::expandRows(Operation *root) {
  SmallVector<AttentionOp> ops;
  root->walk([&](AttentionOp op) {
    if (op.hasIndices())
      ops.push_back(op);
  });
  llvm::for_each(ops, expand);
}

namespace {
struct ExpandRows : attn::impl::ExpandRowsBase<ExpandRows> {
  void runOnOperation() override { expandRows(getOperation()); }
};
} // namespace
