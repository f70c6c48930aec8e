//===- GPUModel.h - What a GPU can do ---------------------------*- C++ -*-===//
//
// Everything about a GPU that decides tile sizes and code forms stands here.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SCHEDULE_GPUMODEL_H
#define ATTN_SCHEDULE_GPUMODEL_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace attn {

struct GPUModel {
  std::string chip;                            // as ptxas takes it: sm_80
  bool tensorCores = false;                    // mma.sync on f16 and bf16, ldmatrix, cp.async
  int64_t sharedBytes = 48 << 10;              // that one block can have
  int64_t multiprocessorBytes = 64 << 10;      // shared memory of a multiprocessor
  int64_t multiprocessors = 80;                // of a typical card of the chip: how many blocks are worth having
  int64_t products = 0;                        // multiply-adds of mma.sync that one takes in a cycle
  int64_t fmas = 64;                           // of f32
  double memoryBytes = 8;                      // of global memory that one gets in a cycle when all read
  std::string unused;                          // what it has for products of f16 and bf16 that there is no code for
  static constexpr int64_t kRegisters = 65536; // of a multiprocessor
  static constexpr int64_t kLatency = 800;     // cycles of a read of global memory while others read
                                               // (idle: 470, Luo et al., arXiv 2402.13499)

  /// Does a warp of so many queries of so many elements, whole fragments, hold them in registers for tensor cores? Else
  /// it reads them from shared memory for each key tile.
  static constexpr bool holdsQueries(int64_t queries, int64_t width) { return queries * width <= 16 * 128; }

  /// Bytes between rows of `width` elements (a multiple of 16) in shared memory: rows of whole groups of eight chunks
  /// of 16 bytes lie close, as their chunks are permuted by the row; others an odd number of chunks apart. Either way
  /// eight rows at one chunk fall into different banks.
  static int64_t sharedPitch(int64_t width, int64_t elementBytes) {
    int64_t chunks = width * elementBytes / 16;
    return 16 * (chunks % 8 ? chunks | 1 : chunks);
  }

  /// The model of `chip`. An unknown name is an error text that says what is known.
  static mlir::FailureOr<GPUModel> get(llvm::StringRef chip, std::string &error);
};

} // namespace attn

#endif // ATTN_SCHEDULE_GPUMODEL_H
