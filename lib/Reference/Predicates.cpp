//===- Predicates.cpp - Named predicates, each from its definition ----------===//
//
// Written from the definitions in docs/Spec.md and not from the ops' own `expand`, so that one checks the other.
// Operands come in the order of the op, captured tensors left out.
//
//===----------------------------------------------------------------------===//
#include "Program.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace attn::reference {
namespace {

using C = const Call &;
using Params = llvm::ArrayRef<int64_t>;

//===----------------------------------------------------------------------===//
// Meanings: operands 0 and 1 are i and j unless said otherwise
//===----------------------------------------------------------------------===//

Slot causal(C c) { return c.boolean(c.s(1) <= c.s(0)); }

/// Params: has left, left, has right, right.
Slot window(C c) {
  int64_t back = c.s(0) - c.s(1);
  return c.boolean((!c.param(0) || back <= c.param(1)) && (!c.param(2) || -back <= c.param(3)));
}

/// Params: left, right, dilation.
Slot dilatedWindow(C c) {
  int64_t back = c.s(0) - c.s(1), dilation = c.param(2);
  return c.boolean(floorModulo(back, dilation) == 0 && back / dilation <= c.param(0) && -back / dilation <= c.param(1));
}

/// Param: size. same_column is the same relation.
Slot stride(C c) { return c.boolean(floorModulo(c.s(0) - c.s(1), c.param(0)) == 0); }

/// Param: size. same_row is the same relation.
Slot sameBlock(C c) { return c.boolean(floorDivide(c.s(0), c.param(0)) == floorDivide(c.s(1), c.param(0))); }

/// Params: size, before.
Slot chunkLookback(C c) {
  int64_t back = floorDivide(c.s(0), c.param(0)) - floorDivide(c.s(1), c.param(0));
  return c.boolean(back >= 0 && back <= c.param(1));
}

/// Is `key` in the block of `query`, widened by `before` and `after`?
bool isInWidenedBlock(int64_t query, int64_t key, int64_t size, int64_t before, int64_t after) {
  int64_t begin = floorDivide(query, size) * size;
  return begin - key <= before && key - (begin + size) < after;
}

/// Params: size, before, after.
Slot localBlocks(C c) { return c.boolean(isInWidenedBlock(c.s(0), c.s(1), c.param(0), c.param(1), c.param(2))); }

/// Params: width, block rows, block columns, flange rows, flange columns.
Slot localBlocks2D(C c) {
  int64_t width = c.param(0);
  return c.boolean(
      isInWidenedBlock(floorDivide(c.s(0), width), floorDivide(c.s(1), width), c.param(1), c.param(3), c.param(3)) &&
      isInWidenedBlock(floorModulo(c.s(0), width), floorModulo(c.s(1), width), c.param(2), c.param(4), c.param(4)));
}

/// Operand 0 is j. Params: block, count.
Slot lastColumns(C c) { return c.boolean(floorModulo(c.s(0), c.param(0)) >= c.param(0) - c.param(1)); }

/// Is `key` one of the `size` nearest of `extent` keys around `query`, the window moved inward at the borders?
bool isNeighbor(int64_t query, int64_t key, int64_t size, int64_t extent) {
  int64_t start = query - size / 2;
  if (start > extent - size)
    start = extent - size;
  if (start < 0)
    start = 0;
  return key >= start && key < start + size;
}

/// Param: size.
Slot neighborhood(C c) { return c.boolean(isNeighbor(c.s(0), c.s(1), c.param(0), c.op.extents.keys)); }

/// Params: width, rows, columns.
Slot neighborhood2D(C c) {
  int64_t width = c.param(0), height = c.op.extents.keys / width;
  return c.boolean(isNeighbor(floorDivide(c.s(0), width), floorDivide(c.s(1), width), c.param(1), height) &&
                   isNeighbor(floorModulo(c.s(0), width), floorModulo(c.s(1), width), c.param(2), width));
}

/// Operand 0 is j. Param: length.
Slot prefix(C c) { return c.boolean(c.s(0) < c.param(0)); }

/// Operands: b, j.
Slot keyLength(C c) {
  const HostTensor &lengths = *c.op.tensor;
  llvm::SmallVector<int64_t, 1> at(lengths.getRank(), c.s(0));
  return c.boolean(c.s(1) < readNearest(lengths, at).i);
}

/// Operand 0 is h. Params: period, index.
Slot heads(C c) { return c.boolean(floorModulo(c.s(0), c.param(0)) == c.param(1)); }

/// Params: global tokens from 0 to count, then single ones.
Slot global(C c) {
  auto isGlobal = [&](int64_t p) {
    return (p >= 0 && p < c.param(0)) || llvm::is_contained(Params(c.op.params).drop_front(), p);
  };
  return c.boolean(isGlobal(c.s(0)) || isGlobal(c.s(1)));
}

/// Operands: b, i, j.
Slot sameDocument(C c) {
  const HostTensor &documents = *c.op.tensor;
  return c.boolean(readNearest(documents, {c.s(0), c.s(1)}).i == readNearest(documents, {c.s(0), c.s(2)}).i);
}

/// Operands: b, h, i, j. Param: size.
Slot blockMask(C c) {
  int64_t at[] = {c.s(0), c.s(1), floorDivide(c.s(2), c.param(0)), floorDivide(c.s(3), c.param(0))};
  return c.boolean(readNearest(*c.op.tensor, Params(at).take_back(c.op.tensor->getRank())).i != 0);
}

/// Operands: leading indices, then the value.
Slot contains(C c) {
  const HostTensor &set = *c.op.tensor;
  llvm::SmallVector<int64_t, 4> at;
  for (unsigned k = 0; k + 1 < c.op.operands.size(); ++k)
    at.push_back(c.s(k));
  int64_t value = c.s(at.size());
  bool found = false;
  at.push_back(0);
  for (int64_t &column = at.back(); value >= 0 && column < set.shape.back() && !found; ++column)
    found = readNearest(set, at).i == value;
  return c.boolean(found);
}

Slot numKeys(C c) { return Slot{c.op.extents.keys}; }
Slot numQueries(C c) { return Slot{c.op.extents.queries}; }

//===----------------------------------------------------------------------===//
// Ops to meanings
//===----------------------------------------------------------------------===//

LogicalResult use(Instruction &instruction, InstructionFunction run, Params params = {}) {
  instruction.run = run;
  instruction.params.assign(params.begin(), params.end());
  return success();
}

/// An integer parameter; attributes answer unsigned numbers.
int64_t number(uint64_t value) { return static_cast<int64_t>(value); }

LogicalResult useWindow(WindowOp op, Instruction &instruction) {
  std::optional<uint64_t> left = op.getLeft(), right = op.getRight();
  return use(instruction, window,
             {left.has_value(), number(left.value_or(0)), right.has_value(), number(right.value_or(0))});
}

LogicalResult useGlobal(GlobalOp op, Instruction &instruction) {
  llvm::SmallVector<int64_t> params{number(op.getCount().value_or(0))};
  if (std::optional<Params> tokens = op.getTokens())
    llvm::append_range(params, *tokens);
  return use(instruction, global, params);
}

LogicalResult useLocalBlocks2D(LocalBlocks2DOp op, Instruction &instruction) {
  Params block = op.getBlock(), flange = op.getFlange();
  return use(instruction, localBlocks2D, {number(op.getWidth()), block[0], block[1], flange[0], flange[1]});
}

} // namespace

LogicalResult translatePredicate(Operation *op, Instruction &in) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](CausalOp) { return use(in, causal); })
      .Case([&](WindowOp op) { return useWindow(op, in); })
      .Case([&](DilatedWindowOp op) {
        return use(in, dilatedWindow, {number(op.getLeft()), number(op.getRight()), number(op.getDilation())});
      })
      .Case([&](StrideOp op) { return use(in, stride, number(op.getSize())); })
      .Case([&](SameColumnOp op) { return use(in, stride, number(op.getWidth())); })
      .Case([&](SameBlockOp op) { return use(in, sameBlock, number(op.getSize())); })
      .Case([&](SameRowOp op) { return use(in, sameBlock, number(op.getWidth())); })
      .Case([&](ChunkLookbackOp op) { return use(in, chunkLookback, {number(op.getSize()), number(op.getBefore())}); })
      .Case([&](LocalBlocksOp op) {
        return use(in, localBlocks, {number(op.getSize()), number(op.getBefore()), number(op.getAfter())});
      })
      .Case([&](LocalBlocks2DOp op) { return useLocalBlocks2D(op, in); })
      .Case([&](LastColumnsOp op) { return use(in, lastColumns, {number(op.getBlock()), number(op.getCount())}); })
      .Case([&](NeighborhoodOp op) { return use(in, neighborhood, number(op.getSize())); })
      .Case([&](Neighborhood2DOp op) {
        return use(in, neighborhood2D, {number(op.getWidth()), op.getSize()[0], op.getSize()[1]});
      })
      .Case([&](PrefixOp op) { return use(in, prefix, number(op.getLength())); })
      .Case([&](HeadsOp op) { return use(in, heads, {number(op.getPeriod()), number(op.getIndex())}); })
      .Case([&](KeyLengthOp) { return use(in, keyLength); })
      .Case([&](GlobalOp op) { return useGlobal(op, in); })
      .Case([&](SameDocumentOp) { return use(in, sameDocument); })
      .Case([&](BlockMaskOp op) { return use(in, blockMask, number(op.getSize())); })
      .Case([&](ContainsOp) { return use(in, contains); })
      .Case([&](NumKeysOp) { return use(in, numKeys); })
      .Case([&](NumQueriesOp) { return use(in, numQueries); })
      .Default([](Operation *) { return failure(); });
}

} // namespace attn::reference
