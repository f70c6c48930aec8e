//===- Extents.h - The extents that tensors of a function share -------------===//
#ifndef ATTN_LIB_INPUTS_EXTENTS_H
#define ATTN_LIB_INPUTS_EXTENTS_H

#include "attn/Dialect/Attn/IR/AttnSteps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Error.h"
#include <map>

namespace attn::inputs {

/// The dimensions of the tensors that attention and the steps around it take and give, in classes of equal extent. A
/// class has a name: B, H, Hkv, N, M, D, Dv... after its part in the first op that has it, with a number where several
/// ops differ (M2).
class ExtentTable {
public:
  /// Knows what the types of `func` fix; an error where they contradict each other.
  static llvm::Expected<ExtentTable> create(mlir::func::FuncOp func);

  /// Sets the extent of a class by its name, or by a dimension. `source` tells a person where the number comes from.
  llvm::Error set(llvm::StringRef name, int64_t extent, llvm::StringRef source);
  llvm::Error set(mlir::Value value, llvm::ArrayRef<int64_t> shape, llvm::StringRef source);

  /// Gives every class without an extent its default: B=1, H=8, Hkv=H, N=M or `tokens`, M=N, D=64, Dv=D. `option` is
  /// where a person gives extents.
  llvm::Error setDefaults(int64_t tokens, llvm::StringRef option);

  /// Sets the extents that follow from others.
  llvm::Error applyRules();

  /// Extent of a dimension of such a tensor; -1 where it is not known.
  int64_t get(mlir::Value value, unsigned dim) const;

  /// "B, H, N": the names that `set` takes.
  std::string getNames() const;

private:
  using Dim = std::pair<void *, unsigned>; // value, dimension
  struct Class {
    std::string name, base;
    int64_t extent = -1;
    std::string source;
  };

  static Dim dim(mlir::Value value, unsigned index) { return {value.getAsOpaquePointer(), index}; }
  void unite(const ExtentTie &tie);
  bool hasRule(Dim leader) const;
  llvm::Error checkMultiples() const;
  void nameDim(mlir::Value value, unsigned index, llvm::StringRef base);
  llvm::Error set(Class &target, int64_t extent, llvm::StringRef source);
  Class &classOf(Dim dim) { return classes[*dims.findLeader(dim)]; }

  llvm::EquivalenceClasses<Dim> dims;
  llvm::SmallVector<std::pair<Dim, ExtentRule>> rules;
  llvm::SmallVector<ExtentMultiple> multiples;
  llvm::SmallVector<ExtentLeast> least;
  std::map<Dim, Class> classes;                // by leader
  llvm::MapVector<llvm::StringRef, Dim> named; // name to leader, in order of naming
};

} // namespace attn::inputs

#endif // ATTN_LIB_INPUTS_EXTENTS_H
