//===- HostTensor.h - A tensor in memory, row-major and contiguous ----------===//
#ifndef ATTN_REFERENCE_HOSTTENSOR_H
#define ATTN_REFERENCE_HOSTTENSOR_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/SmallVector.h"
#include <cstddef>
#include <vector>

namespace attn {

/// A dense tensor of floats (f64, f32, f16, bf16), integers (i1, one byte each, to i64) or index (64 bits).
struct HostTensor {
  llvm::SmallVector<int64_t> shape;
  mlir::Type elementType;
  std::vector<std::byte> data;

  /// A tensor of zeros.
  static HostTensor create(llvm::ArrayRef<int64_t> shape, mlir::Type elementType);

  /// Does HostTensor hold elements of this type?
  static bool isSupported(mlir::Type elementType);
  /// Bytes of one element.
  static unsigned getElementBytes(mlir::Type elementType);

  int64_t getNumElements() const;
  int64_t getRank() const { return shape.size(); }
  bool isFloat() const { return llvm::isa<mlir::FloatType>(elementType); }

  /// Element `index` in row-major order, converted. Integers are signed, i1 is 0 or 1.
  double getDouble(int64_t index) const;
  int64_t getInt(int64_t index) const;
  /// Stores `value` rounded to the element type.
  void setDouble(int64_t index, double value);
  void setInt(int64_t index, int64_t value);

  /// Elements [begin, begin + count) converted to `double` or `float`; quick.
  void read(int64_t begin, int64_t count, double *to) const;
  void read(int64_t begin, int64_t count, float *to) const;

  /// The same values in another element type.
  HostTensor convert(mlir::Type elementType) const;
};

/// "2x3xf32".
std::string toString(const HostTensor &tensor);

/// `value` rounded to the nearest number of `type` (f64, f32, f16 or bf16); ties to even.
double roundToType(double value, mlir::Type type);

} // namespace attn

#endif // ATTN_REFERENCE_HOSTTENSOR_H
