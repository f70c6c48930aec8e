//===- Shape.h - How a block of threads holds a query tile ------*- C++ -*-===//
//
// A block of `warps` warps works on one query tile; a warp has `rowBlocks()` groups of 16 rows of it. Wide values
// are cut into `parts()` ranges of columns, one for each of as many warps, which compute the same scores. Scores and
// output lie in the accumulator layout of mma.sync m16n8: of the 16 x 8 elements of a fragment a lane has four,
//
//   element e: row lane / 4 + 8 (e / 2), column 2 (lane % 4) + e % 2,
//
// so the four lanes of a quad share two rows of each group, and what is known of a row (maximum, sum) is kept by each
// of the four. The form without tensor cores keeps the same layout, so that softmax, masks and stores are the same
// code.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_GPU_SHAPE_H
#define ATTN_LIB_CODEGEN_GPU_SHAPE_H

#include "Emit.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Schedule/GPUModel.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

namespace attn::cuda {

constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kFragmentElements = 4;

enum class Form {
  TensorCores, // mma.sync on 16-bit elements, f32 sums
  Plain,       // FMAs of f32
};

struct KernelShape {
  Form form = Form::TensorCores;
  Type element; // of query, key, value and output in global memory
  int64_t queries = 0, dim = 0, valueDim = 0, warps = 0;
  bool asyncCopies = true; // cp.async (sm_80)
  bool natural = false;    // unit of the scores: e, else powers of 2
  bool softmax = true;     // weights are measured against a reference and summed up
  bool sigmoid = false;    // else they are sigmoids, or the scores themselves
  int64_t pack = 1;        // query heads of a tile: row r is query r / pack of head r % pack

  int64_t threads() const { return warps * kWarp; }
  int64_t rowWarps() const { return std::min(warps, queries / kFragmentRows); }
  int64_t parts() const { return warps / rowWarps(); }
  int64_t rowBlocks() const { return queries / (kFragmentRows * rowWarps()); }
  /// A row of `width` elements in shared memory: whole pairs of fragments, of values in every part.
  int64_t padded(int64_t width) const { return llvm::alignTo(width, width == valueDim ? 16 * parts() : 16); }
  int64_t paddedDim() const { return padded(dim); }
  int64_t paddedValueDim() const { return padded(valueDim); }
  int64_t outputColumns() const { return paddedValueDim() / kFragmentColumns / parts(); } // fragments of a part
  int64_t rows() const { return 2 * rowBlocks(); }                                        // rows that a lane shares in
  int64_t outputs() const { return rowBlocks() * outputColumns() * kFragmentElements; }
  /// As A fragments.
  bool queriesInRegisters() const {
    return form == Form::TensorCores && GPUModel::holdsQueries(kFragmentRows * rowBlocks(), paddedDim());
  }
  int64_t queryWords() const { return queriesInRegisters() ? rowBlocks() * paddedDim() / 16 * 4 : 0; }
  /// Bytes of an element in global and in shared memory.
  int64_t globalBytes() const { return element.getIntOrFloatBitWidth() / 8; }
  int64_t sharedBytes() const { return form == Form::TensorCores ? 2 : 4; }
};

/// How rows lie in shared memory: in chunks of 16 bytes, placed so that eight rows at one chunk (a phase of ldmatrix)
/// fall into different banks.
struct SharedLayout {
  int64_t width = 0, elementBytes = 0; // padded elements of a row

  SharedLayout(int64_t width, int64_t elementBytes) : width(width), elementBytes(elementBytes) {}

  int64_t chunks() const { return width * elementBytes / 16; }
  int64_t perChunk() const { return 16 / elementBytes; }
  /// Whole groups of eight chunks are permuted by the row; otherwise rows lie an odd number of chunks apart.
  bool swizzled() const { return chunks() % 8 == 0; }
  int64_t pitch() const { return GPUModel::sharedPitch(width, elementBytes); }

  /// Byte offset of chunk `chunk ^ low` of `row`; `chunk` is even, `low` is 0 or 1.
  Value chunkOffset(Emit &e, Value row, int64_t chunk, Value low) const {
    Value place = swizzled() ? e.exclusiveOr(e.exclusiveOr(low, e.bits(row, 7)), chunk) : e.add(low, chunk);
    return e.add(e.mul(row, pitch()), e.mul(place, 16));
  }
  Value chunkOffset(Emit &e, Value row, Value chunk) const {
    Value place = swizzled() ? e.exclusiveOr(chunk, e.bits(row, 7)) : chunk;
    return e.add(e.mul(row, pitch()), e.mul(place, 16));
  }
  /// Byte offset of one element.
  Value elementOffset(Emit &e, Value row, Value column) const {
    return e.add(chunkOffset(e, row, e.divide(column, perChunk())), e.mul(e.modulo(column, perChunk()), elementBytes));
  }
};

/// The registers of an !attn_tile.state, in the order in which they are carried.
struct State {
  Values output;  // [row block][column block][element]
  Values maximum; // [row]: reference of the row, in units of the scores as they stand
  Values sum;     // [row]: this lane's part of the sum of weights
  Value factor;   // a product q k times this is a score
  Value scale;    // a score times this is the exponent of 2 in a weight; above 0
  Values query;   // A fragments [row block][step of 16 dims][4], or one pointer to shared memory

  State() = default;
  State(const KernelShape &shape, ValueRange registers) {
    auto take = [&](Values &to, int64_t count) {
      to.assign(registers.begin(), registers.begin() + count);
      registers = registers.drop_front(count);
    };
    take(output, shape.outputs());
    take(maximum, shape.rows());
    take(sum, shape.rows());
    factor = registers[0], scale = registers[1];
    query.assign(registers.begin() + 2, registers.end());
  }
  Values registers() const {
    Values all(output);
    all.append(maximum);
    all.append(sum);
    all.append({factor, scale});
    all.append(query);
    return all;
  }
  static llvm::SmallVector<Type> types(const KernelShape &shape, mlir::OpBuilder &b) {
    llvm::SmallVector<Type> types(shape.outputs() + 2 * shape.rows() + 2, b.getF32Type());
    if (shape.queriesInRegisters())
      types.append(shape.queryWords(), b.getI32Type());
    else
      types.push_back(mlir::LLVM::LLVMPointerType::get(b.getContext(), kShared));
    return types;
  }
};

/// Rows and columns of a lane's elements, relative to the tile.
struct LanePlace {
  Value quad, column; // lane / 4 and 2 (lane % 4), i32
  Value firstRow;     // of the warp
  Value part;         // of the columns of values

  LanePlace(Emit &e, const KernelShape &shape) {
    Value lane = e.lane();
    quad = e.divide(lane, 4);
    column = e.mul(e.bits(lane, 3), 2);
    bool shared = shape.parts() > 1;
    part = shared ? e.divide(e.warp(), shape.rowWarps()) : e.i32(0);
    Value rowWarp = shared ? e.modulo(e.warp(), shape.rowWarps()) : e.warp();
    firstRow = e.mul(rowWarp, kFragmentRows * shape.rowBlocks());
  }
  /// Column 0 of fragment 0 of the warp's part, in elements.
  Value firstColumn(Emit &e, const KernelShape &shape) const {
    return e.mul(part, shape.outputColumns() * kFragmentColumns);
  }
  /// Row `half` (0 or 1) of row block `block` of the tile.
  Value row(Emit &e, int64_t block, int64_t half) const {
    return e.add(e.add(firstRow, quad), block * kFragmentRows + half * 8);
  }
};

} // namespace attn::cuda

#endif // ATTN_LIB_CODEGEN_GPU_SHAPE_H
