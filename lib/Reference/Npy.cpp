//===- Npy.cpp - Tensors as .npy files --------------------------------------===//
//
// The format: "\x93NUMPY", major, minor, the header's length (2 bytes, from version 2 on 4), a header that is a Python
// dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then the elements.
//
//===----------------------------------------------------------------------===//
#include "attn/Reference/Npy.h"
#include "attn/Support/Errors.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>

using namespace mlir;
using llvm::StringRef;

namespace attn {
namespace {

struct Header {
  std::string descr;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t> shape;
};

/// The text behind `'key':` in the dictionary, or nothing.
StringRef findValue(StringRef dictionary, StringRef key) {
  for (StringRef quote : {"'", "\""}) {
    std::string quoted = (quote + key + quote).str();
    size_t at = dictionary.find(quoted);
    if (at == StringRef::npos)
      continue;
    StringRef rest = dictionary.drop_front(at + quoted.size()).ltrim();
    if (rest.consume_front(":"))
      return rest.ltrim();
  }
  return {};
}

bool parseShape(StringRef text, llvm::SmallVectorImpl<int64_t> &shape) {
  if (!text.consume_front("("))
    return false;
  text = text.take_until([](char c) { return c == ')'; });
  llvm::SmallVector<StringRef> parts;
  text.split(parts, ',', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t extent;
    if (part.trim().empty())
      continue;
    if (part.trim().getAsInteger(10, extent) || extent < 0)
      return false;
    shape.push_back(extent);
  }
  return true;
}

bool parseHeader(StringRef text, Header &header) {
  StringRef descr = findValue(text, "descr");
  if (descr.size() < 2 || (descr.front() != '\'' && descr.front() != '"'))
    return false; // a structured type
  header.descr = descr.drop_front().take_until([&](char c) { return c == descr.front(); }).str();
  header.fortranOrder = findValue(text, "fortran_order").starts_with("True");
  return parseShape(findValue(text, "shape"), header.shape);
}

/// The element type of a NumPy type string such as "<f4" or "|b1"; null for those we do not read.
Type getElementType(StringRef descr, MLIRContext *context) {
  Builder b(context);
  if (descr.size() < 3 || descr.front() == '>')
    return {};
  unsigned bytes;
  if (descr.drop_front(2).getAsInteger(10, bytes))
    return {};
  switch (descr[1]) {
  case 'b':
    return b.getI1Type();
  case 'i':
  case 'u':
    return llvm::is_contained({1u, 2u, 4u, 8u}, bytes) ? b.getIntegerType(8 * bytes) : Type();
  case 'V': // as the bf16 of ml_dtypes is saved
    return bytes == 2 ? Type(b.getBF16Type()) : Type();
  case 'f':
    return bytes == 2   ? Type(b.getF16Type())
           : bytes == 4 ? Type(b.getF32Type())
           : bytes == 8 ? Type(b.getF64Type())
                        : Type();
  default:
    return {};
  }
}

std::string getDescr(Type type) {
  if (type.isInteger(1))
    return "|b1";
  unsigned bytes = HostTensor::getElementBytes(type);
  return (bytes == 1 ? "|" : "<") + std::string(isa<FloatType>(type) ? "f" : "i") + std::to_string(bytes);
}

/// Column-major elements in `source` to the row-major order of `tensor`.
void transposeFrom(StringRef source, HostTensor &tensor) {
  unsigned bytes = HostTensor::getElementBytes(tensor.elementType);
  llvm::SmallVector<int64_t> at(tensor.getRank());
  for (int64_t index = 0, e = tensor.getNumElements(); index < e; ++index) {
    int64_t offset = 0, stride = 1;
    for (int64_t d = 0; d < tensor.getRank(); ++d) {
      offset += at[d] * stride;
      stride *= tensor.shape[d];
    }
    std::memcpy(tensor.data.data() + index * bytes, source.data() + offset * bytes, bytes);
    for (int64_t d = tensor.getRank() - 1; d >= 0 && ++at[d] == tensor.shape[d]; --d)
      at[d] = 0;
  }
}

/// Bytes of elements that a tensor of this shape takes; false where that overflows.
bool countBytes(llvm::ArrayRef<int64_t> shape, Type type, int64_t &bytes) {
  bytes = HostTensor::getElementBytes(type);
  return llvm::none_of(shape, [&](int64_t extent) { return llvm::MulOverflow(bytes, extent, bytes); });
}

/// Splits a file into its header text and its elements.
bool splitFile(StringRef file, StringRef &header, StringRef &elements) {
  if (!file.consume_front("\x93NUMPY") || file.size() < 6)
    return false;
  unsigned major = static_cast<unsigned char>(file[0]), lengthBytes = major == 1 ? 2 : 4;
  size_t length =
      major == 1 ? llvm::support::endian::read16le(file.data() + 2) : llvm::support::endian::read32le(file.data() + 2);
  if (major < 1 || major > 3 || file.size() < 2 + lengthBytes + length)
    return false;
  header = file.substr(2 + lengthBytes, length);
  elements = file.drop_front(2 + lengthBytes + length);
  return true;
}

} // namespace

llvm::Expected<HostTensor> readNpy(StringRef path, MLIRContext *context) {
  llvm::sys::fs::file_status status; // a device such as /dev/zero has no end
  if (!llvm::sys::fs::status(path, status) && status.type() == llvm::sys::fs::file_type::character_file)
    return makeError(path, ": is a device, not a file; write a .npy file with numpy.save");
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return makeError(path, ": cannot be read: ", file.getError().message());
  StringRef text, elements;
  Header header;
  if (!splitFile((*file)->getBuffer(), text, elements))
    return makeError(path, ": is not a .npy file of format 1, 2 or 3; write it with numpy.save");
  if (!parseHeader(text, header))
    return makeError(path, ": has a header that is not understood: ", text.trim());
  Type type = getElementType(header.descr, context);
  if (!type)
    return makeError(
        path, ": holds elements of type '", header.descr,
        "'; little-endian bool, integers, f16, f32, f64, and bf16 as two raw bytes (V2) can be read: convert it with "
        "astype");
  int64_t bytes;
  if (!countBytes(header.shape, type, bytes) || static_cast<int64_t>(elements.size()) < bytes)
    return makeError(path, ": is cut short: it holds ", elements.size(),
                     " bytes of elements, fewer than its shape asks for");
  HostTensor tensor = HostTensor::create(header.shape, type);
  if (header.fortranOrder)
    transposeFrom(elements, tensor);
  else if (!tensor.data.empty())
    std::memcpy(tensor.data.data(), elements.data(), tensor.data.size());
  return tensor;
}

llvm::Error writeNpy(StringRef path, const HostTensor &tensor) {
  if (tensor.elementType.isBF16())
    return writeNpy(path, tensor.convert(Builder(tensor.elementType.getContext()).getF32Type()));
  std::string header = "{'descr': '" + getDescr(tensor.elementType) + "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : tensor.shape)
    header += std::to_string(extent) + ", ";
  header += "), }";
  // Elements begin at a multiple of 64 bytes; the header ends with a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::error_code error;
  llvm::raw_fd_ostream os(path, error);
  if (error)
    return makeError(path, ": cannot be written: ", error.message());
  os << "\x93NUMPY" << '\x01' << '\x00' << char(header.size() & 255) << char(header.size() >> 8) << header;
  os.write(reinterpret_cast<const char *>(tensor.data.data()), tensor.data.size());
  os.close();
  if (os.has_error()) {
    error = os.error();
    os.clear_error();
    return makeError(path, ": cannot be written: ", error.message());
  }
  return llvm::Error::success();
}

} // namespace attn
