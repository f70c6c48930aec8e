//===- TileInstructions.h - AMX tiles by number -----------------*- C++ -*-===//
//
// Tile registers are named by number, never left to LLVM's allocation: that would configure them anew in every
// function, and behind every call. A task configures all eight as 16 rows of 64 bytes and releases them at its end, and
// the micro-kernels between agree on the numbers below. Addresses are pointers and bytes.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_CPU_TILEINSTRUCTIONS_H
#define ATTN_LIB_CODEGEN_CPU_TILEINSTRUCTIONS_H

#include "Emit.h"

namespace attn::cpu {

/// Rows of a tile, f32 of a row, and bf16 of a row: keys or columns, queries, and the depth of a product.
constexpr int64_t kTileRows = 16, kTileDepth = 32, kTileBytes = 1024, kTileFloats = 256;

class TileInstructions {
public:
  explicit TileInstructions(Emit &e) : e(e) {}

  /// Element 0 of a memref of any layout.
  Value address(Value memref);
  Value at(Value pointer, Value bytes);
  Value at(Value pointer, int64_t bytes);
  Value i64(Value index);
  Value i64(int64_t v);
  /// Bytes from a row of a matrix to the next one.
  Value rowBytes(Value matrix);

  void zero(int64_t tile) { call("tilezero", {number(tile)}); }
  void load(int64_t tile, Value pointer, Value stride) { call("tileloadd64", {number(tile), pointer, stride}); }
  /// Of what does not stay in the first-level cache.
  void stream(int64_t tile, Value pointer, Value stride) { call("tileloaddt164", {number(tile), pointer, stride}); }
  void store(int64_t tile, Value pointer, Value stride) { call("tilestored64", {number(tile), pointer, stride}); }
  /// sum += a b, of pairs of bf16
  void multiply(int64_t sum, int64_t a, int64_t b) { call("tdpbf16ps", {number(sum), number(a), number(b)}); }
  void configure();
  void release() { call("tilerelease", {}); }

private:
  void call(llvm::StringRef name, ValueRange operands);
  Value number(int64_t tile);

  Emit &e;
};

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_TILEINSTRUCTIONS_H
