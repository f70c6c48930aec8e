//===- Placement.h - A tensor in memory as a caller might lay it out --------===//
#ifndef ATTN_LIB_RUN_PLACEMENT_H
#define ATTN_LIB_RUN_PLACEMENT_H

#include "attn/Reference/HostTensor.h"
#include "attn/Run/Run.h"
#include "llvm/Support/Error.h"
#include <dlpack/dlpack.h>

namespace attn::run {

/// Memory, strides and DLPack description of one tensor. All bytes that are no element hold 0xff: NaN, or -1, so that
/// reading one spoils the result.
class PlacedTensor {
public:
  static llvm::Expected<PlacedTensor> create(llvm::ArrayRef<int64_t> shape, mlir::Type elementType, bool isInput,
                                             Layout layout, Guard guard);
  PlacedTensor(PlacedTensor &&other);
  PlacedTensor &operator=(PlacedTensor &&) = delete;
  ~PlacedTensor();

  void write(const HostTensor &tensor);
  HostTensor read() const;
  /// Are all bytes that are no element as they were?
  bool isSurroundingIntact() const;

  /// Are the elements, too?
  bool isUntouched() const;

  const DLTensor *getDLTensor();

private:
  PlacedTensor() = default;
  bool isPoisoned() const;
  void setStrides(bool isInput, Layout layout);
  llvm::Error allocate(Guard guard);
  /// Calls `visit(offset in the memory, flat row-major index, length)`, both in elements, for runs of contiguous
  /// elements.
  template <typename Visit>
  void visitRuns(Visit visit) const;

  llvm::SmallVector<int64_t> shape, strides;
  mlir::Type elementType;
  unsigned elementBytes = 0;
  std::pair<void *, size_t> mapping{nullptr, 0};
  char *data = nullptr;
  size_t bytes = 0;
  DLTensor tensor;
};

} // namespace attn::run

#endif // ATTN_LIB_RUN_PLACEMENT_H
