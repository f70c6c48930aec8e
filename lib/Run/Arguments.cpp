//===- Arguments.cpp - What a function is run on --------------------------===//
#include "Arguments.h"
#include "attn/Reference/Reference.h"
#include "attn/Support/Errors.h"

using namespace mlir;

namespace attn {

llvm::Expected<func::FuncOp> findFunction(ModuleOp module, StringRef name) {
  llvm::SmallVector<func::FuncOp> functions;
  std::string names;
  for (auto func : module.getOps<func::FuncOp>()) {
    if (func.isPrivate() || func.isExternal())
      continue;
    functions.push_back(func);
    names += (names.empty() ? "" : ", ") + func.getName().str();
  }
  for (func::FuncOp func : functions)
    if (func.getName() == name || (name.empty() && functions.size() == 1))
      return func;
  if (functions.empty())
    return makeError("the spec has no public function with a body");
  if (name.empty())
    return makeError("the spec has several functions; choose one with --function=NAME: ", names);
  return makeError("the spec has no function '", name, "'; it has ", names);
}

namespace run {

std::vector<const DLTensor *> getPointers(std::vector<PlacedTensor> &tensors) {
  std::vector<const DLTensor *> pointers;
  for (PlacedTensor &tensor : tensors)
    pointers.push_back(tensor.getDLTensor());
  return pointers;
}

/// With a batch stride of 0 every batch is the first one.
static void repeatFirstBatch(HostTensor &tensor) {
  if (tensor.getRank() != 4 || tensor.shape[0] == 0)
    return;
  size_t bytes = tensor.data.size() / tensor.shape[0];
  for (int64_t batch = 1; batch < tensor.shape[0]; ++batch)
    std::copy_n(tensor.data.begin(), bytes, tensor.data.begin() + batch * bytes);
}

llvm::Expected<Arguments> Arguments::make(func::FuncOp func, const RunOptions &options, const InputOptions &given) {
  llvm::Expected<llvm::SmallVector<HostTensor>> made = makeInputs(func, given);
  if (!made)
    return made.takeError();
  Arguments arguments;
  arguments.inputs = std::move(*made);
  if (options.layout == Layout::Broadcast)
    llvm::for_each(arguments.inputs, repeatFirstBatch);
  auto shapes = getResultShapes(func, arguments.inputs);
  if (!shapes)
    return shapes.takeError();
  arguments.resultShapes = std::move(*shapes);
  return std::move(arguments);
}

llvm::Error Arguments::place(func::FuncOp func, const RunOptions &options) {
  for (const HostTensor &input : inputs) {
    auto placed = PlacedTensor::create(input.shape, input.elementType, /*isInput=*/true, options.layout, options.guard);
    if (!placed)
      return placed.takeError();
    placed->write(input);
    placedInputs.push_back(std::move(*placed));
  }
  for (auto [shape, type] : llvm::zip_equal(resultShapes, func.getResultTypes())) {
    Type elementType = cast<RankedTensorType>(type).getElementType();
    auto placed = PlacedTensor::create(shape, elementType, /*isInput=*/false, options.layout, options.guard);
    if (!placed)
      return placed.takeError();
    placedResults.push_back(std::move(*placed));
  }
  return llvm::Error::success();
}

} // namespace run
} // namespace attn
