//===- Fetch.cpp - Tiles from global to shared memory ---------------------===//
#include "Kernels.h"

namespace attn::cuda {

namespace {

/// One tile to copy; rows count from the tile.
struct Copy {
  Emit &e;
  const KernelShape &shape;
  const SharedLayout &layout;
  GlobalRows from; // pointer: at the tile's first row
  Value count;     // rows that exist, i32
  Value to;
  int64_t capacity;

  Value source(Value row, Value columnBytes) {
    return e.at(from.pointer, e.add(from.offset(e, row, shape.globalBytes()), e.toI64(columnBytes)));
  }

  /// Work items dealt to the threads in turn: body(item), where it is below `items`.
  void deal(int64_t items, llvm::function_ref<void(Value)> body) {
    int64_t threads = shape.threads();
    Value thread = e.thread();
    for (int64_t at = 0; at < items; at += threads) {
      Value item = e.add(thread, at);
      if (at + threads <= items)
        body(item);
      else
        e.ifThen(e.less(item, e.i32(items)), [&] { body(item); });
    }
  }

  /// A chunk that lies outside reads no byte and becomes zero, so its address only has to be a valid one.
  void chunks() {
    deal(capacity * layout.chunks(), [&](Value item) {
      Value row = e.divide(item, layout.chunks()), chunk = e.modulo(item, layout.chunks());
      Value inside = e.less(row, count);
      Value column = e.mul(chunk, layout.perChunk());
      Value bytes = e.i32(16);
      if (shape.sharedBytes() * layout.width != shape.globalBytes() * staticColumns()) {
        Value left = e.mul(e.sub(e.toI32(from.columns), column), shape.globalBytes());
        bytes = e.max(e.min(left, bytes), e.i32(0));
        column = e.select(e.less(e.i32(0), left), column, e.i32(0));
      }
      Value address = source(e.select(inside, row, e.i32(0)), e.mul(column, shape.globalBytes()));
      e.copyAsync(e.at(to, layout.chunkOffset(e, row, chunk)), address, e.select(inside, bytes, e.i32(0)));
    });
  }

  int64_t staticColumns() {
    llvm::APInt known;
    return mlir::matchPattern(from.columns, mlir::m_ConstantInt(&known)) ? known.getSExtValue() : -1;
  }

  Type sharedElement() { return shape.form == Form::Plain ? e.b.getF32Type() : shape.element; }

  void elements() {
    int64_t items = capacity * layout.width, threads = shape.threads();
    e.loop(items, threads, {}, [&](Value first, ValueRange) {
      Value item = e.add(first, e.thread());
      if (items % threads == 0)
        element(item);
      else
        e.ifThen(e.less(item, e.i32(items)), [&] { element(item); });
      return Values();
    });
  }

  void element(Value item) {
    Value row = e.divide(item, layout.width), column = e.modulo(item, layout.width);
    Value inside = e.both(e.less(row, count), e.less(column, e.toI32(from.columns)));
    Type type = sharedElement();
    Value v = e.ifElse(
        inside,
        [&]() -> Values {
          Value v = e.load(shape.element, source(row, e.mul(column, shape.globalBytes())));
          return {type == shape.element ? v : e.make<mlir::arith::ExtFOp>(type, v)};
        },
        [&]() -> Values { return {mlir::arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(type))}; })[0];
    e.store(v, e.at(to, layout.elementOffset(e, row, column)));
  }

  bool canCopyChunks() { return shape.asyncCopies && shape.globalBytes() == shape.sharedBytes(); }
};

} // namespace

void emitFetch(Emit &e, const KernelShape &shape, const SharedLayout &layout, GlobalRows from, Value row, Value count,
               Value to, int64_t capacity) {
  Copy copy{e, shape, layout, from, e.mul(e.toI32(count), from.heads), to, capacity};
  copy.from.pointer = e.at(from.pointer, e.mul(e.mul(e.toI64(row), e.toI64(from.stride)), shape.globalBytes()));
  if (!copy.canCopyChunks())
    return copy.elements();
  e.ifThen(from.startsAtChunks(e, shape.globalBytes()), [&] { copy.chunks(); }, [&] { copy.elements(); });
}

} // namespace attn::cuda
