//===- TilePatterns.cpp - Tile ops and memrefs to warp code ---------------===//
#include "Descriptor.h"
#include "Elements.h"
#include "Kernel.h"
#include "Kernels.h"

using namespace mlir;

namespace attn::cuda {

int64_t slotBytes(tile::BufferType type, const KernelShape &shape) {
  return type.getRows() * SharedLayout(shape.padded(type.getWidth()), shape.sharedBytes()).pitch();
}

namespace {

template <typename OpT>
struct Pattern : OpConversionPattern<OpT> {
  using Adaptor = typename OpConversionPattern<OpT>::OneToNOpAdaptor;

  Pattern(TypeConverter &types, MLIRContext *context, const KernelShape &shape)
      : OpConversionPattern<OpT>(types, context), shape(shape) {}

  SharedLayout layoutOf(tile::BufferType type) const {
    return SharedLayout(shape.padded(type.getWidth()), shape.sharedBytes());
  }
  /// The slot that (buffer, index) names.
  Value slot(Emit &e, tile::BufferType type, Value buffer, Value index) const {
    return e.at(buffer, e.mul(e.toI32(index), slotBytes(type, shape)));
  }
  GlobalRows rows(Emit &e, Value memref, ValueRange parts) const {
    Descriptor d = Descriptor::read(e, cast<MemRefType>(memref.getType()), parts);
    if (d.extents.size() == 2)
      return {d.pointer, d.extents[0], d.extents[1], d.strides[0], 1, {}};
    return {d.pointer, d.extents[1], d.extents[2], d.strides[1], d.type.getDimSize(0), d.strides[0]};
  }
  /// The same of rows of one float.
  GlobalRows floats(Emit &e, Value memref, ValueRange parts) const {
    Descriptor d = Descriptor::read(e, cast<MemRefType>(memref.getType()), parts);
    if (d.extents.size() == 1)
      return {d.pointer, d.extents[0], {}, d.strides[0], 1, {}};
    return {d.pointer, d.extents[1], {}, d.strides[1], d.type.getDimSize(0), d.strides[0]};
  }

  const KernelShape &shape;
};

struct ConvertBuffer : Pattern<tile::BufferOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::BufferOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Value base = LLVM::AddressOfOp::create(rewriter, op.getLoc(), e.pointer(kShared), kSharedName);
    rewriter.replaceOp(op, e.at(base, op->getAttrOfType<IntegerAttr>("offset").getInt()));
    return success();
  }
};

struct ConvertFetch : Pattern<tile::FetchOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::FetchOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    tile::BufferType type = op.getBuffer().getType();
    emitFetch(e, shape, layoutOf(type), rows(e, op.getSource(), operands.getSource()), op.getRow(), op.getCount(),
              slot(e, type, operands.getBuffer()[0], op.getSlot()), type.getRows());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertCommit : Pattern<tile::CommitOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::CommitOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    if (shape.asyncCopies)
      Emit(rewriter, op.getLoc()).commitCopies();
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertAwait : Pattern<tile::AwaitOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::AwaitOp op, Adaptor, ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    if (shape.asyncCopies)
      e.awaitCopies(op.getPending());
    e.barrier();
    rewriter.eraseOp(op);
    return success();
  }
};

// Where the scale is known to be above 0 it goes into the exponent, and products are scores as they are. Other scores
// are quarters of an exponent: as exponents, large ones would leave f32.
struct ConvertStart : Pattern<tile::StartOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::StartOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    FloatAttr known;
    bool positive = matchPattern(op.getScale(), m_Constant(&known)) && known.getValueAsDouble() > 0;
    Value factor = op.getScale(), scale;
    if (shape.natural)
      scale = e.f32(1.44269504088896341f);
    else if (positive)
      scale = factor, factor = e.f32(1);
    else
      scale = e.f32(4), factor = e.mulf(factor, e.f32(0.25f));
    // Without queries the place of them is not read.
    Value query = op.getQuery() ? operands.getQuery()[0]
                                : LLVM::AddressOfOp::create(rewriter, op.getLoc(), e.pointer(kShared), kSharedName);
    State state = emitBegin(e, shape, query, factor, scale);
    rewriter.replaceOpWithMultiple(op, {state.registers()});
    return success();
  }
};

// Once more, exactly: the scale goes into the scores, so that the largest of them is the largest f32 in any unit.
struct ConvertRestart : Pattern<tile::RestartOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::RestartOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    State state(shape, operands.getState());
    llvm::fill(state.output, e.f32(0));
    llvm::fill(state.sum, e.f32(0));
    llvm::fill(state.maximum, e.negativeInfinity());
    if (!shape.natural) {
      state.factor = e.mulf(state.factor, e.mulf(state.scale, e.f32(0.25f)));
      state.scale = e.f32(4);
    }
    rewriter.replaceOpWithMultiple(op, {state.registers()});
    return success();
  }
};

struct ConvertScore : Pattern<tile::ScoreOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::ScoreOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Value key = slot(e, cast<tile::BufferType>(op.getKey().getType()), operands.getKey()[0], op.getRow());
    Values scores = emitScore(e, shape, State(shape, operands.getState()), key, op.getTile().getType().getKeys());
    rewriter.replaceOpWithMultiple(op, {scores});
    return success();
  }
};

struct ConvertRead : Pattern<tile::ReadOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::ReadOp op, Adaptor operands, ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Descriptor d = Descriptor::read(e, cast<MemRefType>(op.getScores().getType()), operands.getScores());
    int64_t rank = d.extents.size(), heads = rank == 3 ? d.type.getDimSize(0) : 1;
    auto nearest = [&](Value index, int64_t dim) { return e.min(index, e.add(d.extents[dim], -1)); };
    auto at = [&](Value row, Value key) {
      Value query = nearest(e.add(op.getQuery(), e.toIndex(e.divide(row, heads))), rank - 2);
      Value column = nearest(e.add(op.getKey(), e.toIndex(key)), rank - 1);
      Values place{query, column};
      if (rank == 3)
        place.insert(place.begin(), e.toIndex(e.modulo(row, heads)));
      return d.address(e, place);
    };
    Values scores = emitRead(e, shape, State(shape, operands.getState()), at, d.type.getElementType(),
                             op.getTile().getType().getKeys());
    rewriter.replaceOpWithMultiple(op, {scores});
    return success();
  }
};

struct ConvertRelative : Pattern<tile::RelativeOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::RelativeOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!op.getQuery())
      return op.emitError("has no buffer of queries; give it the one that its state starts from");
    Emit e(rewriter, op.getLoc());
    auto memref = [&](Value v, ValueRange parts) { return Descriptor::read(e, cast<MemRefType>(v.getType()), parts); };
    Descriptor table = memref(op.getTable(), operands.getTable()), bias;
    if (op.getBias())
      bias = memref(op.getBias(), operands.getBias());
    Value last = e.add(table.extents[1], -1);
    int64_t pack = op.getPack();
    auto head = [&](Value row) { return e.add(op.getHead(), e.toIndex(e.modulo(row, pack))); };
    auto tableRow = [&](Value row, Value key) {
      Value apart = e.toIndex(e.sub(e.divide(row, pack), key));
      Value distance = e.add(op.getDistance(), e.mul(apart, int64_t(op.getStep())));
      return table.address(e, {head(row), e.max(e.min(distance, last), e.index(0)), e.index(0)});
    };
    auto biasRow = [&](Value row) { return bias.address(e, {head(row), e.index(0)}); };
    DistanceRows from{operands.getQuery()[0], tableRow, nullptr, table.type.getElementType()};
    if (op.getBias())
      from.biasRow = biasRow;
    Values scores(operands.getTile());
    emitRelative(e, shape, State(shape, operands.getState()), from, scores);
    rewriter.replaceOpWithMultiple(op, {scores});
    return success();
  }
};

template <typename OpT, void (*emit)(Emit &, const KernelShape &, OpT, Values &)>
struct ConvertRegion : Pattern<OpT> {
  using Pattern<OpT>::Pattern;
  LogicalResult matchAndRewrite(OpT op, typename Pattern<OpT>::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Values scores(operands.getTile());
    emit(e, this->shape, op, scores);
    rewriter.replaceOpWithMultiple(op, {scores});
    return success();
  }
};

struct ConvertClip : Pattern<tile::ClipOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::ClipOp op, Adaptor operands, ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Values scores(operands.getTile());
    emitClip(e, shape, op.getCount(), scores);
    rewriter.replaceOpWithMultiple(op, {scores});
    return success();
  }
};

struct ConvertSoftmax : Pattern<tile::SoftmaxOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::SoftmaxOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    State state(shape, operands.getState());
    Values scores(operands.getScores());
    emitSoftmax(e, shape, state, scores, op.getExact());
    rewriter.replaceOpWithMultiple(op, {scores, state.registers()});
    return success();
  }
};

struct ConvertAccumulate : Pattern<tile::AccumulateOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::AccumulateOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    State state(shape, operands.getState());
    Value value = slot(e, cast<tile::BufferType>(op.getValue().getType()), operands.getValue()[0], op.getRow());
    emitAccumulate(e, shape, state, operands.getWeights(), value, op.getSkipZero());
    rewriter.replaceOpWithMultiple(op, {state.registers()});
    return success();
  }
};

struct ConvertCheck : Pattern<tile::CheckOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::CheckOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    rewriter.replaceOp(op, emitCheck(e, shape, State(shape, operands.getState())));
    return success();
  }
};

struct ConvertSink : Pattern<tile::SinkOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::SinkOp op, Adaptor operands, ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    State state(shape, operands.getState());
    Descriptor logits = Descriptor::read(e, cast<MemRefType>(op.getLogits().getType()), operands.getLogits());
    LanePlace place(e, shape);
    Values own;
    for (int64_t row = 0; row < shape.rows(); ++row) {
      Value head = e.modulo(place.row(e, row / 2, row % 2), op.getPack());
      own.push_back(e.load(e.b.getF32Type(), logits.address(e, {e.add(op.getHead(), e.toIndex(head))})));
    }
    emitSink(e, shape, state, own);
    rewriter.replaceOpWithMultiple(op, {state.registers()});
    return success();
  }
};

struct ConvertFinish : Pattern<tile::FinishOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::FinishOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    OutputRows to{rows(e, op.getOutput(), operands.getOutput()), {}};
    if (op.getLse())
      to.lse = floats(e, op.getLse(), operands.getLse());
    emitFinish(e, shape, State(shape, operands.getState()), to, op.getRow());
    rewriter.eraseOp(op);
    return success();
  }
};

struct ConvertFinishPartial : Pattern<tile::FinishPartialOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(tile::FinishPartialOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    emitFinishPartial(e, shape, State(shape, operands.getState()), operands.getPartials()[0], op.getRow(),
                      op.getRows());
    rewriter.eraseOp(op);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// Memrefs
//===----------------------------------------------------------------------===//

/// An element as it lies in memory.
Value loadElement(Emit &e, Type type, Value pointer) {
  if (type.isIndex())
    return e.toIndex(e.load(e.b.getI64Type(), pointer));
  if (!type.isInteger(1))
    return e.load(type, pointer);
  Value byte = e.load(e.b.getI8Type(), pointer);
  return e.make<arith::CmpIOp>(arith::CmpIPredicate::ne, byte, e.number(byte, 0));
}

struct ConvertLoad : Pattern<memref::LoadOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::LoadOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Descriptor d = Descriptor::read(e, op.getMemRefType(), operands.getMemref());
    rewriter.replaceOp(op, loadElement(e, op.getType(), d.address(e, op.getIndices())));
    return success();
  }
};

struct ConvertDim : Pattern<memref::DimOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::DimOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    std::optional<int64_t> dim = op.getConstantIndex();
    if (!dim)
      return op.emitError("asks for the extent of a dimension that is not a constant");
    Emit e(rewriter, op.getLoc());
    rewriter.replaceOp(
        op, Descriptor::read(e, cast<MemRefType>(op.getSource().getType()), operands.getSource()).extents[*dim]);
    return success();
  }
};

struct ConvertSubView : Pattern<memref::SubViewOp> {
  using Pattern::Pattern;
  LogicalResult matchAndRewrite(memref::SubViewOp op, Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Emit e(rewriter, op.getLoc());
    Descriptor from = Descriptor::read(e, op.getSourceType(), operands.getSource());
    auto valueOf = [&](OpFoldResult v) { return getValueOrCreateConstantIndexOp(rewriter, op.getLoc(), v); };
    Values offsets = llvm::map_to_vector(op.getMixedOffsets(), valueOf);
    Descriptor to{op.getType(), from.address(e, offsets), {}, {}};
    llvm::SmallBitVector dropped = op.getDroppedDims();
    for (int64_t d = 0, rank = from.extents.size(); d < rank; ++d) {
      if (dropped[d])
        continue;
      to.extents.push_back(valueOf(op.getMixedSizes()[d]));
      to.strides.push_back(e.make<arith::MulIOp>(from.strides[d], valueOf(op.getMixedStrides()[d])));
    }
    rewriter.replaceOpWithMultiple(op, {to.parts()});
    return success();
  }
};

} // namespace

void populateTilePatterns(RewritePatternSet &patterns, TypeConverter &types, const KernelShape &shape) {
  patterns.add<ConvertBuffer, ConvertFetch, ConvertCommit, ConvertAwait, ConvertStart, ConvertRestart, ConvertScore,
               ConvertRead, ConvertRelative, ConvertRegion<tile::ModifyOp, emitModify>,
               ConvertRegion<tile::MaskOp, emitMask>, ConvertClip, ConvertSoftmax, ConvertAccumulate, ConvertCheck,
               ConvertSink, ConvertFinish, ConvertFinishPartial, ConvertLoad, ConvertDim, ConvertSubView>(
      types, patterns.getContext(), shape);
}

} // namespace attn::cuda
