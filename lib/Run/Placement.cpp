//===- Placement.cpp - A tensor in memory as a caller might lay it out ------===//
#include "Placement.h"
#include "attn/Support/Errors.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/Process.h"
#include <cstring>
#include <sys/mman.h>

using namespace mlir;

namespace attn::run {
namespace {

constexpr unsigned char kPoison = 0xff;
constexpr size_t kPoisonLimit = size_t(1) << 31; // larger memory is mostly gap and stays untouched
constexpr int64_t kRowPadding = 5;               // elements behind each row; odd, so that rows are aligned to nothing

DLDataType getDataType(Type type) {
  unsigned char bits = 8 * HostTensor::getElementBytes(type);
  if (type.isBF16())
    return {kDLBfloat, bits, 1};
  if (isa<FloatType>(type))
    return {kDLFloat, bits, 1};
  // The DLPack headers of distributions lack kDLBool = 6 of DLPack 0.7.
  return {uint8_t(type.isInteger(1) ? 6 : kDLInt), bits, 1};
}

} // namespace

llvm::Expected<PlacedTensor> PlacedTensor::create(ArrayRef<int64_t> shape, Type elementType, bool isInput,
                                                  Layout layout, Guard guard) {
  PlacedTensor placed;
  placed.shape.assign(shape.begin(), shape.end());
  placed.elementType = elementType;
  placed.elementBytes = HostTensor::getElementBytes(elementType);
  placed.setStrides(isInput, layout);
  if (llvm::Error error = placed.allocate(guard))
    return std::move(error);
  if (placed.isPoisoned())
    std::memset(placed.data, kPoison, placed.bytes);
  return placed;
}

PlacedTensor::PlacedTensor(PlacedTensor &&other)
    : shape(std::move(other.shape)), strides(std::move(other.strides)), elementType(other.elementType),
      elementBytes(other.elementBytes), mapping(other.mapping), data(other.data), bytes(other.bytes) {
  other.mapping = {};
}

PlacedTensor::~PlacedTensor() {
  if (mapping.first)
    ::munmap(mapping.first, mapping.second);
}

void PlacedTensor::setStrides(bool isInput, Layout layout) {
  llvm::SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(0, shape.size())); // from outermost to innermost
  if (shape.size() == 4 && layout == Layout::Bshd)
    std::swap(order[1], order[2]);
  if (shape.size() == 4 && layout == Layout::Transposed && isInput)
    std::swap(order[2], order[3]);
  strides.resize(shape.size());
  int64_t stride = 1;
  for (unsigned position = shape.size(); position-- > 0;) {
    strides[order[position]] = stride;
    stride *= shape[order[position]];
    if (layout == Layout::Padded && position > 0)
      stride +=
          position + 1 == shape.size() ? kRowPadding : stride; // a gap behind each row, and one of a whole part above
  }
  if (shape.size() == 4 && layout == Layout::Broadcast && isInput)
    strides[0] = 0;
  if (shape.size() == 4 && layout == Layout::Far)
    strides[0] = std::max(strides[0], (int64_t(1) << 31) + 3);
}

llvm::Error PlacedTensor::allocate(Guard guard) {
  int64_t elements = 1;
  for (auto [extent, stride] : llvm::zip_equal(shape, strides))
    elements = extent == 0 ? 0 : elements == 0 ? 0 : elements + (extent - 1) * stride;
  bytes = elements * elementBytes;
  const size_t page = llvm::sys::Process::getPageSizeEstimate();
  size_t body = llvm::alignTo(std::max<size_t>(bytes, 1), page);
  mapping = {nullptr, body + 2 * page};
  // Memory is only taken where it is touched: gaps may be as large as they like.
  mapping.first =
      ::mmap(nullptr, mapping.second, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping.first == MAP_FAILED) {
    mapping.first = nullptr;
    return makeError("no memory for a tensor of ", bytes, " bytes: ", llvm::sys::StrError());
  }
  char *begin = static_cast<char *>(mapping.first) + page;
  data = guard == Guard::After ? begin + body - bytes : begin;
  if (guard == Guard::None)
    return llvm::Error::success();
  for (char *edge : {begin - page, begin + body})
    if (::mprotect(edge, page, PROT_NONE) != 0)
      return makeError("--guard: a page cannot be protected: ", llvm::sys::StrError());
  return llvm::Error::success();
}

template <typename Visit>
void PlacedTensor::visitRuns(Visit visit) const {
  bool isContiguous = !shape.empty() && strides.back() == 1;
  int64_t length = shape.empty() ? 1 : isContiguous ? shape.back() : 1, total = 1;
  unsigned outer = isContiguous ? shape.size() - 1 : shape.size();
  for (int64_t extent : shape)
    total *= extent;
  llvm::SmallVector<int64_t> at(outer);
  for (int64_t index = 0; index < total; index += length) {
    int64_t offset = 0;
    for (unsigned d = 0; d < outer; ++d)
      offset += at[d] * strides[d];
    visit(offset, index, length);
    for (unsigned d = outer; d-- > 0;) {
      if (++at[d] < shape[d])
        break;
      at[d] = 0;
    }
  }
}

void PlacedTensor::write(const HostTensor &source) {
  const auto *from = reinterpret_cast<const char *>(source.data.data());
  visitRuns([&](int64_t offset, int64_t index, int64_t length) {
    std::memcpy(data + offset * elementBytes, from + index * elementBytes, length * elementBytes);
  });
}

HostTensor PlacedTensor::read() const {
  HostTensor result = HostTensor::create(shape, elementType);
  auto *to = reinterpret_cast<char *>(result.data.data());
  visitRuns([&](int64_t offset, int64_t index, int64_t length) {
    std::memcpy(to + index * elementBytes, data + offset * elementBytes, length * elementBytes);
  });
  return result;
}

bool PlacedTensor::isPoisoned() const { return bytes <= kPoisonLimit; }

bool PlacedTensor::isSurroundingIntact() const {
  if (!isPoisoned())
    return true;
  std::vector<unsigned char> rest(data, data + bytes);
  visitRuns([&](int64_t offset, int64_t, int64_t length) {
    std::memset(rest.data() + offset * elementBytes, kPoison, length * elementBytes);
  });
  return llvm::all_of(rest, [](unsigned char byte) { return byte == kPoison; });
}

bool PlacedTensor::isUntouched() const {
  return !isPoisoned() ||
         std::all_of(data, data + bytes, [](char byte) { return static_cast<unsigned char>(byte) == kPoison; });
}

const DLTensor *PlacedTensor::getDLTensor() {
  tensor = {};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = shape.size();
  tensor.dtype = getDataType(elementType);
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  return &tensor;
}

} // namespace attn::run
