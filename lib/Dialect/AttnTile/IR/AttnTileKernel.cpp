//===- AttnTileKernel.cpp - What a kernel and its launch must say ---------===//
#include "attn/Dialect/AttnTile/IR/AttnTile.h"

#include "attn/Runtime/Abi.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// The numbers of a kernel
//===----------------------------------------------------------------------===//

static constexpr StringRef kNumberNames[] = {
#define ATTN_KERNEL_NUMBER(name) #name,
#include "attn/Runtime/Fields.def"
};

DictionaryAttr KernelConfig::toAttr(MLIRContext *context) const {
  Builder b(context);
  return b.getDictionaryAttr({
#define ATTN_KERNEL_NUMBER(name) b.getNamedAttr(#name, b.getI64IntegerAttr(name)),
#include "attn/Runtime/Fields.def"
  });
}

KernelConfig KernelOp::getNumbers() {
  KernelConfig numbers;
#define ATTN_KERNEL_NUMBER(name) numbers.name = getConfig().getAs<IntegerAttr>(#name).getInt();
#include "attn/Runtime/Fields.def"
  return numbers;
}

static LogicalResult verifyConfig(KernelOp kernel) {
  for (NamedAttribute entry : kernel.getConfig()) {
    if (!llvm::is_contained(kNumberNames, entry.getName()))
      return kernel.emitOpError() << "its config has '" << entry.getName().getValue()
                                  << "', which no kernel record knows; the numbers are listed in "
                                     "attn/Runtime/Fields.def (T5)";
    auto number = dyn_cast<IntegerAttr>(entry.getValue());
    if (!number || !number.getType().isInteger(64))
      return kernel.emitOpError() << "'" << entry.getName().getValue() << "' of its config is " << entry.getValue()
                                  << "; write it as an i64 (T5)";
  }
  for (StringRef name : kNumberNames)
    if (!kernel.getConfig().contains(name))
      return kernel.emitOpError() << "its config lacks '" << name << "'; the runtime cannot run it without (T5)";
  return success();
}

LogicalResult KernelOp::verify() {
  if (failed(verifyConfig(*this)))
    return failure();
  if (getClassify().has_value() != (getNumbers().has_mask != 0))
    return emitOpError() << "has_mask is " << getNumbers().has_mask << ", but there is " << (getClassify() ? "a" : "no")
                         << " classify function; a mask and its interval reading belong together (T4)";
  ArrayRef<int64_t> tables = getTables();
  bool whole = tables.size() % 3 == 0;
  for (size_t i = 0; whole && i < tables.size(); i += 3)
    whole = (tables[i] == ATTN_RANGE || tables[i] == ATTN_MEMBERS) && tables[i + 1] >= 0 && tables[i + 2] >= 0;
  if (!whole)
    return emitOpError()
           << "its tables must be triples of kind (0 range, 1 members), captured operand and dimension (T6)";
  std::optional<ArrayRef<int64_t>> scratch = getScratch();
  if (scratch && (scratch->size() != 3 || llvm::any_of(*scratch, [](int64_t floats) { return floats < 0; })))
    return emitOpError()
           << "its scratch must be three numbers from 0 up: base, per head_dim and per value dimension (T7)";
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

/// The memrefs of tensors that a task function starts with.
static TypeRange tensorArguments(FunctionOpInterface task) {
  ArrayRef<Type> types = task.getArgumentTypes();
  return TypeRange(types.take_while(llvm::IsaPred<MemRefType>));
}

static bool isTask(FunctionOpInterface fn) {
  ArrayRef<Type> types = fn.getArgumentTypes(), rest = types.drop_front(tensorArguments(fn).size());
  MLIRContext *context = fn.getContext();
  int64_t any = ShapedType::kDynamic;
  Type floats = MemRefType::get({any}, Float32Type::get(context));
  SmallVector<Type> wanted(kNumTaskFields, IndexType::get(context));
  wanted.append({MemRefType::get({any}, IntegerType::get(context, 64)),
                 MemRefType::get({any, 3}, IntegerType::get(context, 32)), floats, floats});
  return types.size() - rest.size() >= 4 && rest == ArrayRef(wanted) && fn.getResultTypes().empty();
}

static bool isClassify(FunctionOpInterface fn) {
  ArrayRef<Type> types = fn.getArgumentTypes(), results = fn.getResultTypes();
  return types.size() == 10 && llvm::all_of(types.take_front(2), llvm::IsaPred<LLVM::LLVMPointerType>) &&
         llvm::all_of(types.drop_front(2), [](Type type) { return type.isInteger(64); }) && results.size() == 1 &&
         results.front().isInteger(32);
}

static FailureOr<FunctionOpInterface> findFunction(KernelOp kernel, SymbolTableCollection &symbols, StringRef role,
                                                   FlatSymbolRefAttr name, StringRef constraint) {
  if (auto fn = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(kernel, name))
    return fn;
  return kernel.emitOpError() << "its " << role << " " << name << " is no function of this module; define it "
                              << constraint;
}

LogicalResult KernelOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<FunctionOpInterface> task = findFunction(*this, symbols, "task", getTaskAttr(), "(T3)"),
                                 tail = findFunction(*this, symbols, "tail", getTailAttr(), "(T3)");
  if (failed(task) || failed(tail))
    return failure();
  if (!isTask(*task))
    return emitOpError()
           << "its task " << getTaskAttr() << " has type " << task->getFunctionType()
           << "; a task takes the memrefs of query, key, value, output and more tensors, " << int(kNumTaskFields)
           << " indices (the fields of AttnTask), memref<?xi64>, memref<?x3xi32> and two memref<?xf32>, and "
              "returns nothing (T3)";
  if (task->getFunctionType() != tail->getFunctionType())
    return emitOpError() << "its tail " << getTailAttr() << " has type " << tail->getFunctionType()
                         << ", its task has type " << task->getFunctionType() << "; make them one type (T3)";
  if (!getClassify())
    return success();
  FailureOr<FunctionOpInterface> classify = findFunction(*this, symbols, "classify", getClassifyAttr(), "(T4)");
  if (failed(classify))
    return failure();
  if (!isClassify(*classify))
    return emitOpError() << "its classify " << getClassifyAttr() << " has type " << classify->getFunctionType()
                         << "; it must take two pointers and 8 i64 and return an i32, as AttnClassify does (T4)";
  return success();
}

//===----------------------------------------------------------------------===//
// Launch
//===----------------------------------------------------------------------===//

bool attn::tile::agree(Type tensor, Type memref) {
  auto from = cast<RankedTensorType>(tensor);
  auto to = cast<MemRefType>(memref);
  Type element = from.getElementType();
  if (element.isInteger(1))
    element = IntegerType::get(tensor.getContext(), 8);
  return element == to.getElementType() && succeeded(verifyCompatibleShape(from.getShape(), to.getShape()));
}

static attn::AttentionTensors tensorsOf(LaunchOp op) {
  OperandRange inputs = op.getInputs();
  ResultRange outputs = op.getOutputs();
  std::optional<uint64_t> scores = op.getScores();
  attn::AttentionTensors tensors{scores ? Value() : inputs[0],
                                 scores ? Value() : inputs[1],
                                 inputs[2],
                                 outputs[0],
                                 outputs.size() > 1 ? Value(outputs[1]) : Value(),
                                 op.getJoinedOutput(),
                                 op.getJoinedLse(),
                                 {},
                                 scores ? inputs[*scores] : Value()};
  for (int64_t input : op.getPerHead().value_or(ArrayRef<int64_t>()))
    tensors.perHead.push_back(inputs[input]);
  return tensors;
}

SmallVector<attn::ExtentTie> LaunchOp::getExtentTies() { return tensorsOf(*this).getExtentTies(); }

SmallVector<Value> LaunchOp::getContiguous() { return tensorsOf(*this).getContiguous(); }

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel = symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << getKernelAttr() << " is no attn_tile.kernel of this module; define it (T8)";
  auto task = symbols.lookupNearestSymbolFrom<FunctionOpInterface>(kernel, kernel.getTaskAttr());
  if (!task)
    return success(); // T3 says so
  size_t members = 0;
  for (size_t i = 0; i < kernel.getTables().size(); i += 3)
    members += kernel.getTables()[i] == ATTN_MEMBERS;
  SmallVector<Type> tensors(getInputs().take_front(3).getTypes());
  llvm::append_range(tensors, getOutputs().getTypes());
  llvm::append_range(tensors, getInputs().drop_front(std::min<size_t>(3, getInputs().size())).getTypes());
  TypeRange memrefs = tensorArguments(task);
  if (getInputs().size() < 3 || tensors.size() + members != memrefs.size())
    return emitOpError() << "has " << getInputs().size() << " inputs and " << getOutputs().size()
                         << " outputs, but the task of " << getKernelAttr() << " takes " << memrefs.size()
                         << " tensors, " << members
                         << " of them bitmaps; pass query, key, value and what is captured (T8)";
  for (int64_t input : getPerHead().value_or(ArrayRef<int64_t>()))
    if (input < 3 || input >= int64_t(getInputs().size()) ||
        cast<RankedTensorType>(getInputs()[input].getType()).getRank() < 1)
      return emitOpError() << "per_head names input " << input
                           << ", which is no captured tensor with a first dimension (T8)";
  if (std::optional<uint64_t> input = getScores(); input && (*input < 3 || *input >= getInputs().size()))
    return emitOpError() << "scores are input " << *input << ", which is no captured tensor (T8)";
  for (auto [tensor, memref] : llvm::zip(tensors, memrefs))
    if (!agree(tensor, memref))
      return emitOpError() << tensor << " cannot be " << memref << ", which the task of " << getKernelAttr()
                           << " takes in its place; pass query, key, value and what is captured, in this order (T8)";
  return success();
}
