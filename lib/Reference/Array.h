//===- Array.h - A tensor as numbers to index ---------------------*- C++ -*-===//
#ifndef ATTN_LIB_REFERENCE_ARRAY_H
#define ATTN_LIB_REFERENCE_ARRAY_H

#include "attn/Reference/HostTensor.h"
#include <cassert>
#include <numeric>

namespace attn::reference {

/// Numbers of type T (double, float or int64_t), row-major.
template <typename T>
struct Array {
  llvm::SmallVector<int64_t> shape;
  std::vector<T> data;

  explicit Array(llvm::ArrayRef<int64_t> shape, T value = 0)
      : shape(shape), data(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<int64_t>()), value) {
  }

  static Array of(const HostTensor &tensor) {
    Array array(tensor.shape);
    if constexpr (std::is_same_v<T, int64_t>)
      for (size_t i = 0; i < array.data.size(); ++i)
        array.data[i] = tensor.getInt(i);
    else
      tensor.read(0, array.data.size(), array.data.data());
    return array;
  }

  HostTensor toTensor(mlir::Type elementType) const {
    HostTensor tensor = HostTensor::create(shape, elementType);
    for (size_t i = 0; i < data.size(); ++i)
      if constexpr (std::is_same_v<T, int64_t>)
        tensor.setInt(i, data[i]);
      else
        tensor.setDouble(i, data[i]);
    return tensor;
  }

  template <typename... Indices>
  T &operator()(Indices... indices) {
    return data[flatten({int64_t(indices)...})];
  }
  template <typename... Indices>
  T operator()(Indices... indices) const {
    return data[flatten({int64_t(indices)...})];
  }

private:
  int64_t flatten(std::initializer_list<int64_t> indices) const {
    assert(indices.size() == shape.size() && "one index for each dimension");
    int64_t flat = 0;
    for (auto [index, extent] : llvm::zip(indices, shape)) {
      assert(index >= 0 && index < extent && "an index inside");
      flat = flat * extent + index;
    }
    return flat;
  }
};

} // namespace attn::reference

#endif // ATTN_LIB_REFERENCE_ARRAY_H
