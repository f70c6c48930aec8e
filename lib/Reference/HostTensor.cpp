//===- HostTensor.cpp - A tensor in memory, row-major and contiguous --------===//
#include "attn/Reference/HostTensor.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace mlir;

namespace attn {
namespace {

template <typename T>
T load(const HostTensor &tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(HostTensor &tensor, int64_t index, T value) {
  std::memcpy(tensor.data.data() + index * sizeof(T), &value, sizeof(T));
}

// Both ways to read 16 bits are quick ones: test inputs are full of them.

float fromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Moved to the places of an f32, an f16 is too small by 2^112, be it normal or subnormal; infinity and NaN need the
/// larger exponent.
double fromF16Bits(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
  float value = magnitude < 0x0f800000 ? fromBits(magnitude) * 0x1p112f : fromBits(magnitude | 0x7f800000);
  return bits & 0x8000 ? -value : value;
}

/// bf16 is the upper half of f32.
double fromBF16Bits(uint16_t bits) { return fromBits(uint32_t(bits) << 16); }

uint16_t toHalfBits(double number, const llvm::fltSemantics &semantics) {
  llvm::APFloat value(number);
  bool losesInfo;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.bitcastToAPInt().getZExtValue();
}

template <typename T>
void readAll(const HostTensor &tensor, int64_t begin, int64_t count, T *to) {
  auto convert = [&](auto get) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = get(begin + i);
  };
  if (tensor.elementType.isF32())
    convert([&](int64_t i) { return load<float>(tensor, i); });
  else if (tensor.elementType.isF16())
    convert([&](int64_t i) { return fromF16Bits(load<uint16_t>(tensor, i)); });
  else if (tensor.elementType.isBF16())
    convert([&](int64_t i) { return fromBF16Bits(load<uint16_t>(tensor, i)); });
  else
    convert([&](int64_t i) { return tensor.getDouble(i); });
}

} // namespace

bool HostTensor::isSupported(Type type) {
  if (type.isIndex() || type.isF64() || type.isF32() || type.isF16() || type.isBF16())
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  return integer && llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth());
}

unsigned HostTensor::getElementBytes(Type type) {
  return type.isIndex() ? 8 : std::max(1u, type.getIntOrFloatBitWidth() / 8);
}

HostTensor HostTensor::create(llvm::ArrayRef<int64_t> shape, Type elementType) {
  HostTensor tensor{llvm::SmallVector<int64_t>(shape), elementType, {}};
  tensor.data.resize(tensor.getNumElements() * getElementBytes(elementType));
  return tensor;
}

int64_t HostTensor::getNumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

int64_t HostTensor::getInt(int64_t index) const {
  if (isFloat())
    return static_cast<int64_t>(getDouble(index));
  switch (getElementBytes(elementType)) {
  case 1:
    return elementType.isInteger(1) ? load<int8_t>(*this, index) != 0 : load<int8_t>(*this, index);
  case 2:
    return load<int16_t>(*this, index);
  case 4:
    return load<int32_t>(*this, index);
  default:
    return load<int64_t>(*this, index);
  }
}

double HostTensor::getDouble(int64_t index) const {
  if (elementType.isF32())
    return load<float>(*this, index);
  if (elementType.isF64())
    return load<double>(*this, index);
  if (elementType.isBF16())
    return fromBF16Bits(load<uint16_t>(*this, index));
  if (elementType.isF16())
    return fromF16Bits(load<uint16_t>(*this, index));
  return static_cast<double>(getInt(index));
}

void HostTensor::setInt(int64_t index, int64_t value) {
  if (isFloat())
    return setDouble(index, static_cast<double>(value));
  switch (getElementBytes(elementType)) {
  case 1:
    return store<int8_t>(*this, index, elementType.isInteger(1) ? value != 0 : value);
  case 2:
    return store<int16_t>(*this, index, value);
  case 4:
    return store<int32_t>(*this, index, value);
  default:
    return store<int64_t>(*this, index, value);
  }
}

void HostTensor::setDouble(int64_t index, double value) {
  if (elementType.isF32())
    store<float>(*this, index, value);
  else if (elementType.isF64())
    store<double>(*this, index, value);
  else if (elementType.isBF16())
    store<uint16_t>(*this, index, toHalfBits(value, llvm::APFloat::BFloat()));
  else if (elementType.isF16())
    store<uint16_t>(*this, index, toHalfBits(value, llvm::APFloat::IEEEhalf()));
  else
    setInt(index, static_cast<int64_t>(value));
}

void HostTensor::read(int64_t begin, int64_t count, double *to) const { readAll(*this, begin, count, to); }

void HostTensor::read(int64_t begin, int64_t count, float *to) const { readAll(*this, begin, count, to); }

HostTensor HostTensor::convert(Type type) const {
  HostTensor result = create(shape, type);
  for (int64_t i = 0, e = getNumElements(); i < e; ++i)
    if (isFloat() || result.isFloat())
      result.setDouble(i, getDouble(i));
    else
      result.setInt(i, getInt(i));
  return result;
}

std::string toString(const HostTensor &tensor) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t extent : tensor.shape)
    os << extent << 'x';
  os << tensor.elementType;
  return text;
}

double roundToType(double value, Type type) {
  if (type.isF32())
    return static_cast<float>(value);
  if (type.isF64())
    return value;
  uint16_t bits = toHalfBits(value, cast<FloatType>(type).getFloatSemantics());
  return type.isBF16() ? fromBF16Bits(bits) : fromF16Bits(bits);
}

} // namespace attn
