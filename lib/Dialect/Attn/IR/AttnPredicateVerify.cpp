//===- AttnPredicateVerify.cpp - The constraints of predicates --------------===//
//
// Constraints are numbered in AttnPredicates.td. Every message says what is wrong and ends with the number.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace attn;

/// Numbers are below 2^31, as extents are, so that index arithmetic on them cannot overflow.
static constexpr int64_t maxNumber = (int64_t(1) << 31) - 1;

static LogicalResult verifyRange(Operation *op, StringRef name, int64_t value, int64_t least, StringRef constraint) {
  if (value < least)
    return op->emitOpError() << name << " must be at least " << least << ", not " << value << ' ' << constraint;
  if (value > maxNumber)
    return op->emitOpError() << name << " must be below 2^31, not " << value << ' ' << constraint;
  return success();
}

/// A [rows, columns] pair.
static LogicalResult verifyPair(Operation *op, StringRef name, ArrayRef<int64_t> pair, int64_t least,
                                StringRef constraint) {
  if (pair.size() != 2)
    return op->emitOpError() << name << " must be [rows, columns], not " << pair.size() << " numbers " << constraint;
  return failure(failed(verifyRange(op, (name + " rows").str(), pair[0], least, constraint)) ||
                 failed(verifyRange(op, (name + " columns").str(), pair[1], least, constraint)));
}

/// A captured tensor of integers with a rank from `least` to `most`.
static LogicalResult verifyIntegers(Operation *op, StringRef name, RankedTensorType type, int64_t least, int64_t most,
                                    StringRef dims, StringRef constraint) {
  if (!type.getElementType().isIntOrIndex())
    return op->emitOpError() << name << " must have integer elements, but is " << type << ' ' << constraint;
  if (type.getRank() < least || type.getRank() > most)
    return op->emitOpError() << name << " must be " << dims << ", but " << type << " has rank " << type.getRank() << ' '
                             << constraint;
  return success();
}

//===----------------------------------------------------------------------===//
// By distance
//===----------------------------------------------------------------------===//

LogicalResult WindowOp::verify() {
  if (!getLeft() && !getRight())
    return emitOpError("needs left, right or both; without a bound it keeps everything (P1)");
  return failure(failed(verifyRange(*this, "left", getLeft().value_or(0), 0, "(P1)")) ||
                 failed(verifyRange(*this, "right", getRight().value_or(0), 0, "(P1)")));
}

LogicalResult DilatedWindowOp::verify() {
  return failure(failed(verifyRange(*this, "left", getLeft(), 0, "(P2)")) ||
                 failed(verifyRange(*this, "right", getRight(), 0, "(P2)")) ||
                 failed(verifyRange(*this, "dilation", getDilation(), 1, "(P3)")));
}

LogicalResult StrideOp::verify() { return verifyRange(*this, "size", getSize(), 1, "(P4)"); }

//===----------------------------------------------------------------------===//
// By block
//===----------------------------------------------------------------------===//

LogicalResult SameBlockOp::verify() { return verifyRange(*this, "size", getSize(), 1, "(P4)"); }

LogicalResult ChunkLookbackOp::verify() {
  return failure(failed(verifyRange(*this, "size", getSize(), 1, "(P4)")) ||
                 failed(verifyRange(*this, "before", getBefore(), 0, "(P5)")));
}

LogicalResult LocalBlocksOp::verify() {
  return failure(failed(verifyRange(*this, "size", getSize(), 1, "(P4)")) ||
                 failed(verifyRange(*this, "before", getBefore(), 0, "(P5)")) ||
                 failed(verifyRange(*this, "after", getAfter(), 0, "(P5)")));
}

LogicalResult LastColumnsOp::verify() {
  if (failed(verifyRange(*this, "block", getBlock(), 1, "(P6)")) ||
      failed(verifyRange(*this, "count", getCount(), 1, "(P6)")))
    return failure();
  if (getCount() > getBlock())
    return emitOpError() << "count " << getCount() << " must be at most block " << getBlock() << " (P6)";
  return success();
}

//===----------------------------------------------------------------------===//
// On a grid
//===----------------------------------------------------------------------===//

LogicalResult SameRowOp::verify() { return verifyRange(*this, "width", getWidth(), 1, "(P7)"); }

LogicalResult SameColumnOp::verify() { return verifyRange(*this, "width", getWidth(), 1, "(P7)"); }

LogicalResult LocalBlocks2DOp::verify() {
  return failure(failed(verifyRange(*this, "width", getWidth(), 1, "(P7)")) ||
                 failed(verifyPair(*this, "block", getBlock(), 1, "(P8)")) ||
                 failed(verifyPair(*this, "flange", getFlange(), 0, "(P8)")));
}

LogicalResult NeighborhoodOp::verify() { return verifyRange(*this, "size", getSize(), 1, "(P4)"); }

LogicalResult Neighborhood2DOp::verify() {
  return failure(failed(verifyRange(*this, "width", getWidth(), 1, "(P7)")) ||
                 failed(verifyPair(*this, "size", getSize(), 1, "(P9)")));
}

//===----------------------------------------------------------------------===//
// By token, head and table
//===----------------------------------------------------------------------===//

LogicalResult PrefixOp::verify() { return verifyRange(*this, "length", getLength(), 1, "(P10)"); }

LogicalResult HeadsOp::verify() {
  if (failed(verifyRange(*this, "period", getPeriod(), 1, "(P16)")) ||
      failed(verifyRange(*this, "index", getIndex(), 0, "(P16)")))
    return failure();
  if (getIndex() >= getPeriod())
    return emitOpError() << "index " << getIndex() << " must be less than period " << getPeriod() << " (P16)";
  return success();
}

LogicalResult KeyLengthOp::verify() {
  return verifyIntegers(*this, "lengths", getLengths().getType(), 0, 1, "[batch] or of rank 0", "(P11)");
}

LogicalResult GlobalOp::verify() {
  if (getCount().has_value() == getTokens().has_value())
    return emitOpError("needs either count or tokens, not both and not neither (P12)");
  if (getCount())
    return verifyRange(*this, "count", *getCount(), 1, "(P12)");
  ArrayRef<int64_t> tokens = getTokensAttr().asArrayRef();
  if (tokens.empty())
    return emitOpError("tokens is empty; name a token or leave the predicate out (P12)");
  for (int64_t token : tokens)
    if (failed(verifyRange(*this, "a token", token, 0, "(P12)")))
      return failure();
  return success();
}

LogicalResult SameDocumentOp::verify() {
  return verifyIntegers(*this, "documents", getDocuments().getType(), 2, 2, "[batch, tokens]", "(P13)");
}

LogicalResult BlockMaskOp::verify() {
  if (failed(verifyRange(*this, "size", getSize(), 1, "(P4)")))
    return failure();
  return verifyIntegers(*this, "table", getTable().getType(), 2, 4,
                        "[query blocks, key blocks], [heads, ...] or [batch, heads, ...]", "(P14)");
}

LogicalResult ContainsOp::verify() {
  int64_t rank = getIndices().size() + 1;
  std::string dims = "of rank " + std::to_string(rank) + ", one more than there are indices";
  return verifyIntegers(*this, "set", getSet().getType(), rank, rank, dims, "(P15)");
}
