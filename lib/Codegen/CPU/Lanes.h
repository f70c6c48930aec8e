//===- Lanes.h - Mask and score regions in vector code ----------*- C++ -*-===//
//
// The pointwise reading of a region, with queries in vector lanes: one key row against `lanes` consecutive query rows.
// A value is kept as cheap as it is: the same for all lanes (uniform), an arithmetic progression over the lanes
// (affine: a scalar base and a constant step, so that `j <= i` becomes one vector comparison with a constant), or a
// vector. What does not depend on the key is computed once, before the loop over keys; what does not depend on the
// query, once per key row.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_CODEGEN_CPU_LANES_H
#define ATTN_LIB_CODEGEN_CPU_LANES_H

#include "Emit.h"
#include "llvm/ADT/DenseMap.h"

namespace attn::cpu {

struct Lanes {
  enum Kind { Uniform, Affine, Vector } kind = Uniform;
  Value value;            // the scalar, the base, or the vector
  int64_t step = 0;       // Affine only
  int64_t lo = 0, hi = 0; // static bounds of integers over all lanes (inclusive)
};

class LaneRegion {
public:
  /// Where the elements of a tile stand; all scalars of type index.
  struct Place {
    Value batch, head, query, key; // positions of the tile's first query row and first key row
    int64_t step;                  // positions between rows of either
    bool nonnegative;              // is no query position below 0?
    Value numQueries, numKeys;
    ValueRange captured;
  };

  /// `body` takes (score?, b, h, i, j, number of queries, number of keys, captured...).
  LaneRegion(Emit &e, mlir::Block &body, Place place, int64_t vectors);

  /// Ops that do not depend on the key. Call once, before the key loop.
  void prepare();
  /// Ops that depend on the key but not on the query. Call once per key row (`row` counts from the tile's first key).
  void startRow(Value row);
  /// The yielded value for vector `v` of the current key row.
  Value yielded(int64_t v, Value score = nullptr);

private:
  enum Dependence { OnQuery = 1, OnKey = 2 };
  using Environment = llvm::DenseMap<Value, Lanes>;

  int dependence(Value v) const { return dependences.lookup(v); }
  Lanes get(Value v, Environment *env) const;
  void evaluate(mlir::Operation &op, Environment &env, Environment *outer);
  Lanes compute(mlir::Operation &op, llvm::ArrayRef<Lanes> operands);
  Lanes arithmetic(mlir::Operation &op, llvm::ArrayRef<Lanes> operands);
  std::optional<Lanes> affine(mlir::Operation &op, llvm::ArrayRef<Lanes> operands);
  std::optional<Lanes> compareAffine(mlir::Operation &op, llvm::ArrayRef<Lanes> operands);
  Lanes read(mlir::Operation &op, llvm::ArrayRef<Lanes> operands);
  Lanes readUniform(Value memref, llvm::ArrayRef<Lanes> indices);
  Lanes gather(Value memref, llvm::ArrayRef<Lanes> indices);
  Value clamp(Value memref, int64_t dim, const Lanes &index);
  /// The vector of a value, element type index or integer as asked (index is computed in 32 bits where it fits).
  Value vectorOf(const Lanes &lanes, mlir::Type element);
  mlir::Type elementFor(mlir::Type type, std::initializer_list<const Lanes *> all) const;

  Emit &e;
  mlir::Block &body;
  Place place;
  int64_t vectors;
  bool hasScore;
  llvm::DenseMap<Value, int> dependences;
  Environment invariant, rowValues;
  llvm::SmallVector<Environment> queryValues;
};

} // namespace attn::cpu

#endif // ATTN_LIB_CODEGEN_CPU_LANES_H
