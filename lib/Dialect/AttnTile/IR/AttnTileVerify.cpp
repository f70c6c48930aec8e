//===- AttnTileVerify.cpp - The constraints of tiles, states and regions --===//
//
// Constraints are numbered in AttnTileDialect.td and AttnTileOps.td. Every message says what is wrong and ends with the
// number.
//
//===----------------------------------------------------------------------===//
#include "AttnTileStates.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

LogicalResult TileType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t keys, int64_t queries) {
  if (keys >= 1 && queries >= 1)
    return success();
  return emitError() << "a tile of " << keys << " keys by " << queries
                     << " queries holds nothing; give both at least 1 (T1)";
}

LogicalResult StateType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t queries, int64_t dim,
                                int64_t valueDim, ScoreUnit) {
  if (queries < 1)
    return emitError() << "a state of " << queries << " queries holds nothing; give it at least 1 (T2)";
  for (auto [name, extent] : {std::pair("dim", dim), {"valueDim", valueDim}})
    if (extent < (name == StringRef("dim") ? 0 : 1) && extent != -1)
      return emitError() << name << " is " << extent
                         << "; it must be at least 1, or -1 where it is known at run time (T2)";
  return success();
}

LogicalResult BufferType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t slots, int64_t rows,
                                 int64_t width, Type element) {
  if (slots < 1 || rows < 1 || width < 1)
    return emitError() << "a buffer of " << slots << " slots of " << rows << " by " << width
                       << " elements holds nothing; give each at least 1 (T18)";
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return emitError() << "a buffer cannot hold elements of type " << element << "; use f32, f16 or bf16 (T18)";
  return success();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// A matrix, or one for each head where there may be `heads`, that a state of width `width` (-1: known at run time) is
/// loaded from, stored to or multiplied with.
static LogicalResult verifyMatrix(Operation *op, StringRef name, Value matrix, int64_t width, bool heads = false) {
  auto type = dyn_cast<MemRefType>(matrix.getType());
  if (!type || (type.getRank() != 2 && !(heads && type.getRank() == 3 && !type.isDynamicDim(0))))
    return op->emitOpError() << name << " must be a matrix, memref<rows x columns>, not " << matrix.getType()
                             << "; take a subview of one batch and head (T9)";
  Type element = type.getElementType();
  if (!element.isF32() && !element.isF16() && !element.isBF16())
    return op->emitOpError() << name << " has elements of type " << element << "; use f32, f16 or bf16 (T9)";
  int64_t columns = type.getShape().back();
  if (ShapedType::isDynamic(columns) ? width == -1 : columns == width)
    return success();
  InFlightDiagnostic error = op->emitOpError() << name << " " << type << " has ";
  if (ShapedType::isDynamic(columns))
    error << "columns known at run time, but the state says " << width;
  else if (width == -1)
    error << columns << " columns, but the state says that they are known at run time (-1)";
  else
    error << columns << " columns, but the state says " << width;
  return error << "; make the extents agree (T10)";
}

/// A slot of a buffer of `rows` rows of `width` columns.
static LogicalResult verifySlot(Operation *op, StringRef name, BufferType type, int64_t rows, int64_t width) {
  if (type.getRows() == rows && type.getWidth() == width)
    return success();
  return op->emitOpError() << name << " is of type " << type << ", but a slot of " << rows << " by " << width
                           << " elements is needed here; make the buffer agree with tile and state (T19)";
}

/// Key or value rows of a tile: a matrix, or a slot of a buffer.
static LogicalResult verifyRows(Operation *op, StringRef name, Value rows, int64_t keys, int64_t width) {
  if (auto buffer = dyn_cast<BufferType>(rows.getType()))
    return verifySlot(op, name, buffer, keys, width);
  return verifyMatrix(op, name, rows, width);
}

/// A memref of floats.
static LogicalResult verifyFloats(Operation *op, StringRef name, Value memref, int64_t rank = 1) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  if (type && type.getRank() == rank && type.getElementType().isF32())
    return success();
  return op->emitOpError() << name << " must be a memref of rank " << rank << " of f32, not " << memref.getType()
                           << " (T11)";
}

static LogicalResult verifyQueries(Operation *op, TileType tile, StateType state) {
  if (tile.getQueries() == state.getQueries())
    return success();
  return op->emitOpError() << "tile and state differ in queries: " << tile.getQueries() << " and " << state.getQueries()
                           << "; use tiles of the state's width (T12)";
}

static LogicalResult verifyPositive(Operation *op, StringRef name, int64_t value) {
  if (value >= 1)
    return success();
  return op->emitOpError() << name << " is " << value << "; it must be at least 1 (T13)";
}

LogicalResult SlotOp::verify() {
  return failure(failed(verifyFloats(*this, "workspace", getWorkspace())) ||
                 failed(verifyPositive(*this, "key_tile", getKeyTile())) || failed(verifyStateUses(*this)));
}

LogicalResult BeginOp::verify() {
  int64_t dim = getState().getType().getDim();
  return failure(failed(verifyMatrix(*this, "query", getQuery(), dim)) ||
                 failed(verifyMatrix(*this, "key", getKey(), dim)) || failed(verifyStateUses(*this)));
}

LogicalResult ScoreOp::verify() {
  int64_t keys = getTile().getType().getKeys();
  return failure(failed(verifyRows(*this, "key", getKey(), keys, getState().getType().getDim())) ||
                 failed(verifyQueries(*this, getTile().getType(), getState().getType())) ||
                 failed(verifyStateUses(*this)));
}

LogicalResult ReadOp::verify() {
  auto type = cast<MemRefType>(getScores().getType());
  Type element = type.getElementType();
  bool shaped = type.getRank() == 2 || (type.getRank() == 3 && !type.isDynamicDim(0));
  if (!shaped || (!element.isF32() && !element.isF16() && !element.isBF16()))
    return emitOpError()
           << "scores must be a memref of rank 2, or 3 with a static number of heads, of f32, f16 or bf16, "
           << "not " << type << " (T26)";
  return failure(failed(verifyQueries(*this, getTile().getType(), getState().getType())) ||
                 failed(verifyStateUses(*this)));
}

LogicalResult RelativeOp::verify() {
  auto check = [&](StringRef name, Value memref, int64_t rank) -> LogicalResult {
    auto type = cast<MemRefType>(memref.getType());
    Type element = type.getElementType();
    if (type.getRank() == rank && (element.isF32() || element.isF16() || element.isBF16()))
      return success();
    return emitOpError() << name << " must be a memref of rank " << rank << " of f32, f16 or bf16, not " << type
                         << " (T25)";
  };
  return failure(failed(check("table", getTable(), 3)) || (getBias() && failed(check("bias", getBias(), 2))) ||
                 failed(verifyPositive(*this, "step", getStep())) || failed(verifyPositive(*this, "pack", getPack())) ||
                 failed(verifyQueries(*this, getTile().getType(), getState().getType())) ||
                 failed(verifyStateUses(*this)));
}

LogicalResult SoftmaxOp::verify() {
  return failure(failed(verifyQueries(*this, getScores().getType(), getState().getType())) ||
                 failed(verifyStateUses(*this)));
}

LogicalResult AccumulateOp::verify() {
  int64_t keys = getWeights().getType().getKeys();
  return failure(failed(verifyRows(*this, "value", getValue(), keys, getState().getType().getValueDim())) ||
                 failed(verifyQueries(*this, getWeights().getType(), getState().getType())) ||
                 failed(verifyStateUses(*this)));
}

LogicalResult FetchOp::verify() {
  BufferType buffer = getBuffer().getType();
  if (failed(verifyMatrix(*this, "source", getSource(), buffer.getWidth(), /*heads=*/true)))
    return failure();
  Type element = cast<MemRefType>(getSource().getType()).getElementType();
  if (element == buffer.getElement())
    return success();
  return emitOpError() << "source has elements of type " << element << ", the buffer of type " << buffer.getElement()
                       << "; use one type (T20)";
}

LogicalResult StartOp::verify() {
  StateType state = getState().getType();
  if (!getQuery() != (state.getDim() == 0))
    return emitOpError() << (getQuery() ? "has queries, but its state has dim 0"
                                        : "has no queries, but its state has some")
                         << "; make both agree (T19)";
  return failure(
      (getQuery() && failed(verifySlot(*this, "query", getQuery().getType(), state.getQueries(), state.getDim()))) ||
      failed(verifyStateUses(*this)));
}

LogicalResult SinkOp::verify() {
  auto type = dyn_cast<MemRefType>(getLogits().getType());
  if (!type || type.getRank() != 1 || !type.getElementType().isF32())
    return emitOpError() << "logits must be a memref of rank 1 of f32, not " << getLogits().getType() << " (T24)";
  ScoreUnit unit = getState().getType().getUnit();
  if (unit != ScoreUnit::Log2 && unit != ScoreUnit::Natural)
    return emitOpError() << "its state " << getState().getType() << " has no sum of weights to add to (T24)";
  return failure(failed(verifyPositive(*this, "pack", getPack())) || failed(verifyStateUses(*this)));
}

LogicalResult FinishOp::verify() {
  if (failed(verifyStateUses(*this)) ||
      failed(verifyMatrix(*this, "output", getOutput(), getState().getType().getValueDim(), /*heads=*/true)))
    return failure();
  int64_t rank = cast<MemRefType>(getOutput().getType()).getRank() - 1;
  return getLse() ? verifyFloats(*this, "lse", getLse(), rank) : success();
}

LogicalResult FinishPartialOp::verify() {
  return failure(failed(verifyFloats(*this, "partials", getPartials())) || failed(verifyStateUses(*this)));
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

static bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

static bool isAllowed(Operation &op) {
  if (isa<memref::LoadOp, memref::DimOp>(op))
    return true;
  StringRef dialect = op.getName().getDialectNamespace();
  return (dialect == "arith" || dialect == "math") && llvm::all_of(op.getOperandTypes(), isScalar) &&
         llvm::all_of(op.getResultTypes(), isScalar);
}

/// A region that takes (leading..., b, h, i, j, number of queries, number of keys, captured...) and yields `yields`.
template <typename OpT>
static LogicalResult verifyBody(OpT op, TypeRange leading, Type yields) {
  Block &body = op.getBody().front();
  SmallVector<Type> wanted(leading);
  wanted.append(6, IndexType::get(op.getContext()));
  llvm::append_range(wanted, op.getCaptured().getTypes());
  if (body.getArgumentTypes() != TypeRange(wanted)) {
    InFlightDiagnostic error = op.emitOpError() << "its region must take (";
    llvm::interleaveComma(wanted, error);
    error << "), not (";
    llvm::interleaveComma(body.getArgumentTypes(), error);
    return error << ") (T14)";
  }
  auto yield = dyn_cast<YieldOp>(body.back());
  if (!yield)
    return body.back().emitOpError() << "cannot end the region of " << op->getName()
                                     << "; end it with attn_tile.yield (T15)";
  if (yield.getValue().getType() != yields)
    return yield.emitOpError() << "must yield " << yields << " from the region of " << op->getName() << ", not "
                               << yield.getValue().getType() << " (T15)";
  for (Operation &inner : body.without_terminator())
    if (!isAllowed(inner))
      return inner.emitOpError() << "cannot stand in the region of " << op->getName()
                                 << "; allowed are: arith and math ops on scalars, memref.load and memref.dim (T16)";
  return success();
}

template <typename OpT>
static LogicalResult verifyRegionOp(OpT op) {
  return failure(failed(verifyPositive(op, "step", op.getStep())) || failed(verifyPositive(op, "pack", op.getPack())));
}

LogicalResult ModifyOp::verify() {
  auto score = getTile().getDefiningOp<ScoreOp>();
  if (score && score.getState().getType().getUnit() == ScoreUnit::Log2)
    return emitOpError()
           << "its scores are in the unit of " << score.getState().getType()
           << ", but a score region speaks of natural units; make the states of this task natural, and leave "
              "log2 e out of the scale (T17)";
  return verifyRegionOp(*this);
}

LogicalResult MaskOp::verify() { return verifyRegionOp(*this); }

LogicalResult ModifyOp::verifyRegions() {
  Type f32 = Float32Type::get(getContext());
  return verifyBody(*this, f32, f32);
}

LogicalResult MaskOp::verifyRegions() { return verifyBody(*this, {}, IntegerType::get(getContext(), 1)); }
