//===- Inputs.cpp - Inputs of a function: extents, files, random data -------===//
#include "attn/Inputs/Inputs.h"
#include "Captured.h"
#include "attn/Pattern/Expand.h"
#include "attn/Reference/Npy.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"
#include "llvm/Support/FormatVariadic.h"
#include <unistd.h>

using namespace mlir;

namespace attn {
namespace {

using inputs::ExtentTable;
using Tensors = llvm::SmallVector<std::optional<HostTensor>>;

std::string join(ArrayRef<std::string> names) { return llvm::join(names, ", "); }

/// A file's tensor as the element type of the argument, where its meaning is plain: the same type; integers of the
/// same width; and for bf16, which NumPy lacks, f32 numbers that are rounded, or 16-bit integers that are its bits.
llvm::Expected<HostTensor> fitElementType(HostTensor tensor, Type wanted, StringRef name) {
  if (tensor.elementType == wanted)
    return tensor;
  if ((wanted.isIndex() && tensor.elementType.isInteger(64)) || (wanted.isBF16() && tensor.elementType.isInteger(16))) {
    tensor.elementType = wanted;
    return tensor;
  }
  if ((wanted.isBF16() && tensor.elementType.isF32()) || (wanted.isInteger(1) && tensor.elementType.isInteger(8)))
    return tensor.convert(wanted);
  std::string have = toString(tensor);
  return makeError("argument '", name, "' has elements of type ", wanted, ", its file holds ", have,
                   "; convert it with NumPy's astype");
}

llvm::Expected<HostTensor> readInput(StringRef path, BlockArgument argument, StringRef name) {
  llvm::Expected<HostTensor> tensor = readNpy(path, argument.getContext());
  if (!tensor)
    return tensor.takeError();
  auto type = cast<RankedTensorType>(argument.getType());
  if (failed(verifyCompatibleShape(type.getShape(), tensor->shape)))
    return makeError("argument '", name, "' is ", type, ", its file holds ", toString(*tensor));
  return fitElementType(std::move(*tensor), type.getElementType(), name);
}

llvm::Error checkArguments(func::FuncOp func, ArrayRef<std::string> names, const InputOptions &options) {
  for (auto [argument, name] : llvm::zip_equal(func.getArguments(), names)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || !HostTensor::isSupported(type.getElementType()))
      return makeError("argument '", name, "' is ", argument.getType(),
                       "; only ranked tensors of numbers can be given");
  }
  for (auto &[name, file] : options.files)
    if (!llvm::is_contained(names, name))
      return makeError("--input=", name, "=", file, ": there is no argument '", name, "'; the arguments are ",
                       join(names));
  return llvm::Error::success();
}

llvm::Error readFiles(func::FuncOp func, ArrayRef<std::string> names, const InputOptions &options, ExtentTable &table,
                      Tensors &tensors) {
  for (auto [index, name] : llvm::enumerate(names)) {
    auto file = options.files.find(name);
    if (file == options.files.end()) {
      if (!options.random)
        return makeError("argument '", name, "' has no value; give --input=", name,
                         "=FILE.npy, or --random to draw it");
      continue;
    }
    llvm::Expected<HostTensor> tensor = readInput(file->second, func.getArgument(index), name);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = table.set(func.getArgument(index), tensor->shape, file->second))
      return error;
    tensors[index] = std::move(*tensor);
  }
  return llvm::Error::success();
}

/// Are the arguments together smaller than the memory of this machine?
llvm::Error checkMemory(func::FuncOp func, const ExtentTable &table) {
  double bytes = 0, memory = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  std::string largest;
  double most = -1;
  for (auto [argument, name] : llvm::zip_equal(func.getArguments(), getArgumentNames(func))) {
    auto type = cast<RankedTensorType>(argument.getType());
    double own = type.getElementType().isIndex() ? 8 : type.getElementType().getIntOrFloatBitWidth() / 8.0;
    for (unsigned d = 0; d < unsigned(type.getRank()); ++d)
      own *=
          double(table.get(argument, d) >= 0 ? table.get(argument, d) : inputs::getCapturedExtent(argument, d, table));
    bytes += own;
    if (own > most)
      largest = name, most = own;
  }
  if (bytes < memory)
    return llvm::Error::success();
  auto gigabytes = [](double n) { return llvm::formatv("{0:f1} GB", n / 1e9).str(); };
  return makeError("the arguments take ", gigabytes(bytes), " ('", largest, "' ", gigabytes(most),
                   ") and this machine has ", gigabytes(memory), "; give smaller extents");
}

HostTensor drawArgument(BlockArgument argument, const ExtentTable &table, uint64_t seed) {
  auto type = cast<RankedTensorType>(argument.getType());
  llvm::SmallVector<int64_t> shape;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    int64_t extent = table.get(argument, d);
    shape.push_back(extent >= 0 ? extent : inputs::getCapturedExtent(argument, d, table));
  }
  // A stream of its own for each argument: the others do not change it.
  std::seed_seq sequence{seed & 0xffffffff, seed >> 32, uint64_t(argument.getArgNumber())};
  std::mt19937_64 random(sequence);
  return inputs::draw(shape, type.getElementType(), inputs::getFilling(argument, table), random);
}

/// Reads the files into `tensors` and gives all extents numbers.
llvm::Expected<ExtentTable> settle(func::FuncOp func, const InputOptions &options, Tensors &tensors) {
  llvm::SmallVector<std::string> names = getArgumentNames(func);
  if (llvm::Error error = checkArguments(func, names, options))
    return std::move(error);
  llvm::Expected<ExtentTable> table = ExtentTable::create(func);
  if (!table)
    return table.takeError();
  tensors.resize(func.getNumArguments());
  if (llvm::Error error = readFiles(func, names, options, *table, tensors))
    return std::move(error);
  for (auto &[name, extent] : options.extents)
    if (llvm::Error error = table->set(name, extent, options.extentsOption))
      return std::move(error);
  if (llvm::Error error = table->setDefaults(options.tokens, options.extentsOption))
    return std::move(error);
  return table;
}

/// Of inputs that are there.
llvm::Expected<ExtentTable> settle(func::FuncOp func, ArrayRef<HostTensor> inputs) {
  llvm::Expected<ExtentTable> table = ExtentTable::create(func);
  if (!table)
    return table.takeError();
  llvm::SmallVector<std::string> names = getArgumentNames(func);
  for (auto [argument, tensor, name] : llvm::zip_equal(func.getArguments(), inputs, names))
    if (llvm::Error error = table->set(argument, tensor.shape, "'" + name + "'"))
      return std::move(error);
  if (llvm::Error error = table->applyRules())
    return std::move(error);
  return table;
}

/// The extents of `func` where the arguments are as those of `spec`, whose names extents are given by.
llvm::Expected<ExtentTable> settleLike(func::FuncOp func, func::FuncOp spec, const ExtentTable &known) {
  llvm::Expected<ExtentTable> table = ExtentTable::create(func);
  if (!table)
    return table.takeError();
  for (auto [argument, like] : llvm::zip_equal(func.getArguments(), spec.getArguments())) {
    llvm::SmallVector<int64_t> shape;
    for (int64_t d = 0; d < cast<RankedTensorType>(like.getType()).getRank(); ++d)
      shape.push_back(known.get(like, d) >= 0 ? known.get(like, d) : ShapedType::kDynamic);
    if (llvm::Error error = table->set(argument, shape, "the spec"))
      return std::move(error);
  }
  if (llvm::Error error = table->applyRules())
    return std::move(error);
  return table;
}

llvm::SmallVector<CountedStep> countSteps(func::FuncOp func, const ExtentTable &table) {
  llvm::SmallVector<CountedStep> steps;
  for (CompiledOpInterface op : func.getOps<CompiledOpInterface>())
    if (!isa<AttentionOp>(op))
      steps.push_back({op, op.getWork([&](ExtentPlace place) { return table.get(place.tensor, place.dim); })});
  return steps;
}

int64_t countBytes(Value tensor, const ExtentTable &table) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  for (int64_t d = 0; d < type.getRank(); ++d)
    bytes *= table.get(tensor, d);
  return bytes;
}

/// Of a tensor that is computed, or an operand of an op as well; empty where an extent is not known.
llvm::SmallVector<int64_t> shapeOf(Value tensor, const ExtentTable &table) {
  llvm::SmallVector<int64_t> shape;
  for (int64_t d = 0, rank = cast<RankedTensorType>(tensor.getType()).getRank(); d < rank; ++d)
    shape.push_back(table.get(tensor, d));
  return llvm::is_contained(shape, -1) ? llvm::SmallVector<int64_t>() : shape;
}

/// Integers as the mask reads them; of floats only the shape.
CapturedData capture(const HostTensor &tensor) {
  CapturedData data = {tensor.shape, {}};
  if (!tensor.isFloat())
    for (int64_t index = 0, e = tensor.getNumElements(); index < e; ++index)
      data.values.push_back(tensor.getInt(index));
  return data;
}

} // namespace

llvm::Error readFileOption(StringRef option, StringRef entry, std::map<std::string, std::string> &files) {
  auto [name, file] = entry.split('=');
  if (name.empty() || file.empty())
    return makeError(option, "=", entry, " should be ", option, "=NAME=FILE.npy");
  if (!files.emplace(name.str(), file.str()).second)
    return makeError(option, ": ", name, " is given twice");
  return llvm::Error::success();
}

llvm::Error readExtentsOption(StringRef option, StringRef text, std::map<std::string, int64_t> &extents) {
  llvm::SmallVector<StringRef> entries;
  if (!text.empty())
    text.split(entries, ',');
  for (StringRef entry : entries) {
    auto [name, value] = entry.split('=');
    int64_t extent;
    if (value.getAsInteger(10, extent) || extent < 0 || extent > INT32_MAX)
      return makeError(option, ": '", entry, "' should be an extent such as N=4096, below 2^31");
    if (!extents.emplace(name.trim().str(), extent).second)
      return makeError(option, ": ", name.trim(), " is given twice");
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<HostTensor>> makeInputs(func::FuncOp func, const InputOptions &options) {
  Tensors tensors;
  llvm::Expected<ExtentTable> table = settle(func, options, tensors);
  if (!table)
    return table.takeError();
  llvm::SmallVector<HostTensor> inputs;
  if (llvm::Error error = checkMemory(func, *table))
    return error;
  for (auto [argument, tensor] : llvm::zip_equal(func.getArguments(), tensors))
    inputs.push_back(tensor ? std::move(*tensor) : drawArgument(argument, *table, options.seed));
  return inputs;
}

llvm::Expected<MaskInputs> makeMaskInputs(func::FuncOp func, func::FuncOp spec, const InputOptions &options) {
  Tensors tensors;
  llvm::Expected<ExtentTable> given = settle(spec, options, tensors);
  if (!given)
    return given.takeError();
  llvm::Expected<ExtentTable> table = settleLike(func, spec, *given);
  if (!table)
    return table.takeError();
  MaskInputs inputs;
  inputs.steps = countSteps(func, *table);
  auto getTensor = [&](BlockArgument argument) -> const HostTensor & {
    std::optional<HostTensor> &tensor = tensors[argument.getArgNumber()];
    if (!tensor) {
      tensor = drawArgument(argument, *table, options.seed);
      inputs.drawn.push_back(getArgumentNames(func)[argument.getArgNumber()]);
    }
    return *tensor;
  };
  func.walk([&](AttentionOp op) {
    MaskInputs::Attention attention = {
        op, {}, op.getScores() ? 0 : table->get(op.getQuery(), 3), table->get(op.getValue(), 3), {}};
    Value query = op.getQueryRows(), key = op.getKeyRows();
    attention.extents = {table->get(query, 0), table->get(query, 1), table->get(key, 1), table->get(query, 2),
                         table->get(key, 2)};
    for (Value tensor : {op.getSink(), op.getTable(), op.getBias(), op.getScores()})
      attention.operandBytes += tensor ? countBytes(tensor, *table) : 0;
    ExpandedMask mask(op);
    for (Value tensor : mask.getTensors()) {
      auto argument = dyn_cast<BlockArgument>(tensor);
      bool isFloat = isa<FloatType>(cast<RankedTensorType>(tensor.getType()).getElementType());
      bool isOperand = isFloat && table->get(tensor, 0) >= 0; // only its extents are asked
      attention.captured.push_back(argument && !isOperand ? capture(getTensor(argument))
                                                          : CapturedData{shapeOf(tensor, *table), {}});
    }
    inputs.attentions.push_back(std::move(attention));
  });
  return inputs;
}

llvm::Expected<llvm::SmallVector<CountedStep>> countSteps(func::FuncOp func, ArrayRef<HostTensor> inputs) {
  llvm::Expected<ExtentTable> table = settle(func, inputs);
  if (!table)
    return table.takeError();
  return countSteps(func, *table);
}

llvm::Expected<llvm::SmallVector<llvm::SmallVector<int64_t>>> getResultShapes(func::FuncOp func,
                                                                              ArrayRef<HostTensor> inputs) {
  llvm::Expected<ExtentTable> table = settle(func, inputs);
  if (!table)
    return table.takeError();
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (Value result : func.front().getTerminator()->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !HostTensor::isSupported(type.getElementType()))
      return makeError("a result of type ", result.getType(), " cannot be returned; return ranked tensors");
    shapes.emplace_back();
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t extent = table->get(result, d);
      if (extent < 0 && isa<BlockArgument>(result))
        extent = inputs[cast<BlockArgument>(result).getArgNumber()].shape[d];
      if (extent < 0 && type.isDynamicDim(d))
        return makeError("the extents of a result are not known; return results of ops of the attn dialect");
      shapes.back().push_back(extent < 0 ? type.getDimSize(d) : extent);
    }
  }
  return shapes;
}

} // namespace attn
