//===- TargetModel.h - What a CPU can do ------------------------*- C++ -*-===//
//
// Everything about a chip that decides tile sizes and code forms stands here.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SCHEDULE_TARGETMODEL_H
#define ATTN_SCHEDULE_TARGETMODEL_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace attn {

/// Rows by `vectors` vectors of accumulators that leave registers for the vectors of one step and a broadcast, where
/// three vectors by `rows` rows fill what is there. More than 8 would need more row pointers than there are registers.
inline int64_t getBlockRows(int64_t rows, int64_t vectors) {
  return std::clamp<int64_t>((rows * 3 + 3 - vectors) / vectors, 1, 8);
}

/// What a query tile takes, in time of one key passing one vector of queries of a wide tile (head_dim + value_dim FMAs
/// and an exponential). Fitted to 15 masks x 4 widths on Zen 4 with AVX-512, which it meets within 5 %, an axial column
/// within 6.6 %; all but `pair` holds for any head_dim, as products, transpositions and output grow with it alike.
struct TileCosts {
  /// A key by tiles of 1, 2, 3 and 4 vectors.
  std::array<double, 4> pair = {1.25, 1, 1, 1};
  double masked = 0.05; // more where the mask is evaluated
  double tile = 15.5;   // to begin and finish a tile, for each vector
  double run = 5.5;     // to begin a run of keys
};

/// Keys whose values are kept packed as AMX takes them, at least those of a tile: with the keys they take half of the
/// second-level cache.
inline int64_t getPackedKeys(int64_t l2Bytes, int64_t dim, int64_t valueDim, int64_t keyTile) {
  constexpr int64_t kMultiple = 512;
  int64_t keys = std::max(l2Bytes / 2 / (2 * (dim + valueDim)), keyTile + kMultiple - 1);
  return keys / kMultiple * kMultiple;
}

struct TargetModel {
  std::string name;                  // as it was asked for
  std::string triple, cpu, features; // as LLVM takes them
  std::string form;                  // "AVX-512", "AVX2 and FMA", "portable, 4 lanes"
  int64_t lanes = 4;                 // f32 of a vector
  int64_t rows = 4;                  // key rows of a register block of three vectors
  bool avx512Exp = false;            // vreduceps and vscalefps
  bool amx = false;                  // products of bf16 tiles
  bool bf16Pairs = false;            // vdpbf16ps: products of pairs of bf16
  bool fma = false;                  // instructions that regions may use: fused multiply-adds,
  bool rounding = false;             // rounding to whole numbers,
  bool f16Conversions = false;       // conversions between f16 and f32
  int64_t l1Bytes = 32 << 10;        // data caches of a core
  int64_t l2Bytes = 512 << 10;
  int64_t cores = 16; // to have work for; a constant of the model, since results must not depend on the machine
  TileCosts costs;

  /// The model of `cpu`: "native", or a name that LLVM knows for the architecture of `triple` (empty: the host's), and
  /// behind it what is added to its features or taken away ("sapphirerapids,-amx-tile"). The vector form follows the
  /// feature bits. An unknown name is an error text that says what is known.
  static mlir::FailureOr<TargetModel> get(llvm::StringRef cpu, llvm::StringRef triple, std::string &error);
};

/// The models of one or several CPUs, the names separated by commas, features behind the name that they change:
/// "x86-64-v3,x86-64-v4,+avx512bf16,sapphirerapids". Several are for x86-64.
mlir::FailureOr<std::vector<TargetModel>> getLevels(llvm::StringRef cpus, llvm::StringRef triple, std::string &error);

} // namespace attn

#endif // ATTN_SCHEDULE_TARGETMODEL_H
