//===- LowerEntryPoints.cpp - C functions and tables for the runtime ------===//
#include "attn/Codegen/CPU/Passes.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Runtime/Abi.h"
#include "attn/Support/Names.h"
#include "attn/Tiling/Interface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_LOWERENTRYPOINTS
#include "attn/Codegen/CPU/Passes.h.inc"

using namespace mlir;

namespace {

/// A struct of int64 fields as the table that it is.
template <typename T>
void append(SmallVectorImpl<int64_t> &table, const T &record) {
  static_assert(sizeof(T) % sizeof(int64_t) == 0);
  auto *words = reinterpret_cast<const int64_t *>(&record);
  table.append(words, words + sizeof(T) / sizeof(int64_t));
}

constexpr const char *kCall = "attn_call", *kCallOn = "attn_call_on", *kImageGetter = "attn_image.get";

/// Code without a body here is on the device.
bool isExternal(ModuleOp module, FlatSymbolRefAttr code) {
  auto fn = module.lookupSymbol<func::FuncOp>(code.getValue());
  return fn && fn.isExternal();
}

/// What says which tensors device code takes; it goes with the ops that ask.
llvm::SetVector<func::FuncOp> findDeviceCode(ModuleOp module) {
  llvm::SetVector<func::FuncOp> found;
  auto add = [&](FlatSymbolRefAttr code) {
    if (isExternal(module, code))
      found.insert(module.lookupSymbol<func::FuncOp>(code.getValue()));
  };
  module.walk([&](tile::KernelOp kernel) { add(kernel.getTaskAttr()); });
  module.walk([&](tile::StepOp step) { add(step.getCodeAttr()); });
  return found;
}

bool isForDevice(func::FuncOp func) {
  auto isKernelThere = [](tile::LaunchOp launch) {
    auto kernel = SymbolTable::lookupNearestSymbolFrom<tile::KernelOp>(launch, launch.getKernelAttr());
    return kernel && kernel.getNumbers().warps;
  };
  return llvm::any_of(func.getOps<tile::LaunchOp>(), isKernelThere) ||
         llvm::any_of(func.getOps<tile::StepOp>(), [](tile::StepOp step) {
           return isExternal(step->getParentOfType<ModuleOp>(), step.getCodeAttr());
         });
}

/// The constant AttnImage of the module's GPU code, and its getter. The texts are attributes of the module; an emulated
/// kernel has none.
void makeImage(OpBuilder &b, ModuleOp module) {
  Location loc = module.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto text = module->getAttrOfType<StringAttr>(kPTXAttr), cubin = module->getAttrOfType<StringAttr>(kCubinAttr);
  auto global = [&](StringRef name, StringRef content) {
    LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), content.size()), /*isConstant=*/true,
                           LLVM::Linkage::Internal, name, b.getStringAttr(content), /*alignment=*/16);
  };
  std::string ptx = (text ? text.getValue() : StringRef()).str();
  ptx.push_back('\0');
  global("attn_image.ptx", ptx);
  if (cubin)
    global("attn_image.cubin", cubin.getValue());
  auto layout = LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, i64});
  auto image = LLVM::GlobalOp::create(b, loc, layout, /*isConstant=*/true, LLVM::Linkage::Internal, "attn_image",
                                      Attribute(), /*alignment=*/8);
  auto getter = func::FuncOp::create(b, loc, kImageGetter, b.getFunctionType({}, ptr));
  OpBuilder::InsertionGuard guard(b);
  b.createBlock(&image.getInitializerRegion());
  Value fields[] = {LLVM::AddressOfOp::create(b, loc, ptr, "attn_image.ptx"),
                    cubin ? LLVM::AddressOfOp::create(b, loc, ptr, "attn_image.cubin").getResult()
                          : LLVM::ZeroOp::create(b, loc, ptr).getResult(),
                    LLVM::ConstantOp::create(b, loc, i64, b.getI64IntegerAttr(cubin ? cubin.size() : 0))};
  Value value = LLVM::PoisonOp::create(b, loc, layout);
  for (auto [i, field] : llvm::enumerate(fields))
    value = LLVM::InsertValueOp::create(b, loc, value, field, int64_t(i));
  LLVM::ReturnOp::create(b, loc, value);
  b.setInsertionPointToStart(getter.addEntryBlock());
  func::ReturnOp::create(b, loc, LLVM::AddressOfOp::create(b, loc, ptr, "attn_image").getResult());
}

/// The table, strings and code pointers of one function, and its C entry points.
class EntryBuilder {
public:
  EntryBuilder(OpBuilder &b, ModuleOp module, func::FuncOp func, FunctionInterface interface, bool threads, bool x86)
      : b(b), loc(func.getLoc()), module(module), func(func), interface(std::move(interface)), threads(threads),
        x86(x86), device(isForDevice(func)), ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

  LogicalResult build();

private:
  int64_t string(StringRef text);
  int64_t code(StringRef symbol);
  int64_t constantGetter(const TensorInfo &tensor);
  AttnTensor tensorRecord(const TensorInfo &tensor);
  FailureOr<AttnKernel> kernelRecord(tile::LaunchOp launch);
  LogicalResult setHostCode(tile::KernelOp kernel, AttnKernel &record);
  LogicalResult setDeviceCode(tile::KernelOp kernel, AttnKernel &record);
  FailureOr<AttnStep> codeStep(tile::StepOp step);
  static AttnStep kernelStep(int64_t kernel);
  FailureOr<SmallVector<int64_t>> kernelsAndSteps(AttnFunction &header);
  std::string taskEntry(StringRef task, unsigned numMemRefs);
  std::string stepEntry(func::FuncOp callee);
  Value loadMemRef(Value operands, int64_t i, MemRefType type);
  Value descriptor(Value data, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, MemRefType type);
  void entry(StringRef suffix, int mode, unsigned numTensors);
  Value address(StringRef global) { return LLVM::AddressOfOp::create(b, loc, ptr, global); }
  Value constant(int64_t v, Type type) { return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, v)); }
  Value field(Value base, int64_t i, Type type) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, type, base, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    return LLVM::LoadOp::create(b, loc, type, at);
  }

  OpBuilder &b;
  Location loc;
  ModuleOp module;
  func::FuncOp func;
  FunctionInterface interface;
  bool threads, x86, device;
  Type ptr;
  std::string strings;
  SmallVector<std::string> codes;
};

int64_t EntryBuilder::string(StringRef text) {
  int64_t offset = strings.size();
  strings += text;
  strings.push_back('\0');
  return offset;
}

int64_t EntryBuilder::code(StringRef symbol) {
  auto it = llvm::find(codes, symbol);
  if (it == codes.end())
    it = codes.insert(codes.end(), symbol.str());
  return it - codes.begin();
}

// Constants lie in memory as the tasks read them: booleans in bytes, index as 64 bits.
DenseElementsAttr storedForm(DenseElementsAttr constant) {
  Type element = constant.getElementType();
  auto as = [&](unsigned bits) {
    Type type = IntegerType::get(constant.getContext(), bits);
    return constant.mapValues(type, [&](const APInt &v) { return bits == 8 ? v.zext(8) : v.sextOrTrunc(bits); });
  };
  if (element.isInteger(1))
    return as(8);
  return element.isIndex() ? as(64) : constant;
}

int64_t EntryBuilder::constantGetter(const TensorInfo &tensor) {
  std::string global = interface.name + "." + tensor.name, getter = global + ".get";
  DenseElementsAttr data = storedForm(tensor.constant);
  auto flat = data.reshape(RankedTensorType::get({data.getNumElements()}, data.getElementType()));
  auto type = LLVM::LLVMArrayType::get(data.getElementType(), data.getNumElements());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, global, flat, /*alignment=*/64);
  auto fn = func::FuncOp::create(b, loc, getter, b.getFunctionType({}, ptr));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  func::ReturnOp::create(b, loc, address(global));
  return code(getter);
}

AttnTensor EntryBuilder::tensorRecord(const TensorInfo &tensor) {
  AttnTensor record = {};
  Type element = tensor.type.getElementType();
  record.name = string(tensor.name);
  record.role = tensor.role;
  // DLPack: 0 int, 1 unsigned, 2 float, 4 bfloat, 6 bool
  record.dtype_code = element.isBF16()              ? 4
                      : isa<FloatType>(element)     ? 2
                      : element.isInteger(1)        ? 6
                      : element.isUnsignedInteger() ? 1
                                                    : 0;
  record.bits = element.isInteger(1) ? 8 : element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  record.inner_contiguous = tensor.innerContiguous;
  record.rank = tensor.type.getRank();
  for (auto [d, dim] : llvm::enumerate(tensor.dims))
    record.dims[d] = dim;
  if (tensor.role == ATTN_CONSTANT)
    record.constant = constantGetter(tensor);
  return record;
}

Value EntryBuilder::descriptor(Value data, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, MemRefType type) {
  Type i64 = b.getI64Type(), extents = LLVM::LLVMArrayType::get(i64, sizes.size());
  auto layout = LLVM::LLVMStructType::getLiteral(b.getContext(), {ptr, ptr, i64, extents, extents});
  Value d = LLVM::PoisonOp::create(b, loc, layout);
  auto set = [&](Value v, ArrayRef<int64_t> at) { d = LLVM::InsertValueOp::create(b, loc, d, v, at); };
  set(data, {0});
  set(data, {1});
  set(constant(0, i64), {2});
  for (auto [i, size] : llvm::enumerate(sizes)) {
    set(constant(size, i64), {3, int64_t(i)});
    set(constant(strides[i], i64), {4, int64_t(i)});
  }
  return UnrealizedConversionCastOp::create(b, loc, type, d).getResult(0);
}

// Denormals cost a hundred cycles each and can be weights of any tile; the caller's mode is put back afterwards.
static void withoutDenormals(OpBuilder &b, Location loc, Type ptr, llvm::function_ref<void()> body) {
  Value one = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(1));
  Value place = LLVM::AllocaOp::create(b, loc, ptr, b.getI32Type(), one);
  auto call = [&](StringRef name) { LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), ValueRange{place}); };
  call("llvm.x86.sse.stmxcsr");
  Value old = LLVM::LoadOp::create(b, loc, b.getI32Type(), place);
  Value bits = LLVM::ConstantOp::create(b, loc, b.getI32Type(), b.getI32IntegerAttr(0x8040)); // FTZ and DAZ
  LLVM::StoreOp::create(b, loc, LLVM::OrOp::create(b, loc, old, bits), place);
  call("llvm.x86.sse.ldmxcsr");
  body();
  LLVM::StoreOp::create(b, loc, old, place);
  call("llvm.x86.sse.ldmxcsr");
}

/// Operand `i` of the runtime's list.
Value EntryBuilder::loadMemRef(Value operands, int64_t i, MemRefType type) {
  Type i64 = b.getI64Type(), extents = LLVM::LLVMArrayType::get(i64, type.getRank());
  SmallVector<Type> parts{ptr, ptr, i64};
  if (type.getRank())
    parts.append(2, extents);
  auto layout = LLVM::LLVMStructType::getLiteral(b.getContext(), parts);
  Value loaded = LLVM::LoadOp::create(b, loc, layout, field(operands, i, ptr));
  return UnrealizedConversionCastOp::create(b, loc, type, loaded).getResult(0);
}

// From the runtime's form of a task to the task function's. Operand 4 of the runtime is the log-sum-exp, null where
// there is none.
std::string EntryBuilder::taskEntry(StringRef task, unsigned skipped) {
  auto callee = module.lookupSymbol<func::FuncOp>(task);
  std::string name = (task + ".entry").str();
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType(SmallVector<Type>(6, ptr), {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  Value operands = fn.getArgument(0), fields = fn.getArgument(1);
  SmallVector<Value> args;
  int64_t operand = 0, number = 0, data = 2;
  for (Type type : callee.getArgumentTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && number == 0) { // tensors come first
      if (operand == int64_t(skipped))
        ++operand;
      args.push_back(loadMemRef(operands, operand++, memref));
    } else if (!memref) {
      Value v = field(fields, number++, b.getI64Type());
      args.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(), v));
    } else {
      bool matrix = memref.getRank() == 2;
      int64_t any = int64_t(1) << 40;
      args.push_back(matrix ? descriptor(fn.getArgument(data), {any, 3}, {3, 1}, memref)
                            : descriptor(fn.getArgument(data), {any}, {1}, memref));
      ++data;
    }
  }
  auto call = [&] { func::CallOp::create(b, loc, callee, args); };
  if (x86)
    withoutDenormals(b, loc, ptr, call);
  else
    call();
  func::ReturnOp::create(b, loc);
  return name;
}

LogicalResult EntryBuilder::setHostCode(tile::KernelOp kernel, AttnKernel &record) {
  std::optional<ArrayRef<int64_t>> scratch = kernel.getScratch();
  if (!scratch)
    return kernel.emitError("says nothing of the memory its tasks need: run convert-attn-tile-to-cpu first, or write "
                            "scratch([base, per_dim, per_value_dim])");
  record.scratch_base = (*scratch)[0];
  record.scratch_per_dim = (*scratch)[1];
  record.scratch_per_value_dim = (*scratch)[2];
  unsigned skipped = record.lse < 0 ? 4 : ~0u;
  record.code_task = code(taskEntry(kernel.getTask(), skipped));
  bool oneWidth = kernel.getTail() == kernel.getTask();
  record.code_tail = oneWidth ? record.code_task : code(taskEntry(kernel.getTail(), skipped));
  return success();
}

LogicalResult EntryBuilder::setDeviceCode(tile::KernelOp kernel, AttnKernel &record) {
  std::string task = getDeviceName(kernel.getTask());
  record.kernel_name = string(task);
  record.merge_name = string(getMergeName(task));
  return success();
}

FailureOr<AttnKernel> EntryBuilder::kernelRecord(tile::LaunchOp launch) {
  auto kernel = module.lookupSymbol<tile::KernelOp>(launch.getKernel());
  if (!kernel)
    return launch.emitError() << "no kernel " << launch.getKernelAttr();
  AttnKernel record = {};
  auto place = [&](Value v) { return int64_t(*interface.find(v)); };
  record.query = place(launch.getInputs()[0]);
  record.key = place(launch.getInputs()[1]);
  record.value = place(launch.getInputs()[2]);
  record.out = place(launch.getOutputs()[0]);
  record.lse = launch.getOutputs().size() > 1 ? place(launch.getOutputs()[1]) : -1;
  record.joined_out = launch.getJoinedOutput() ? place(launch.getJoinedOutput()) : -1;
  record.joined_lse = launch.getJoinedOutput() ? place(launch.getJoinedLse()) : -1;
  for (Value captured : launch.getInputs().drop_front(3)) {
    if (record.num_captured == ATTN_MAX_OPERANDS)
      return launch.emitError() << "reads more than " << int(ATTN_MAX_OPERANDS) << " captured tensors";
    record.captured[record.num_captured++] = place(captured);
  }
  ArrayRef<int64_t> tables = kernel.getTables();
  if (tables.size() / 3 > ATTN_MAX_TABLES)
    return launch.emitError() << "its mask reads captured tensors in more than " << int(ATTN_MAX_TABLES)
                              << " ways; combine them into fewer tensors";
  for (; !tables.empty(); tables = tables.drop_front(3))
    record.tables[record.num_tables++] = {tables[0], tables[1], tables[2]};
  tile::KernelConfig numbers = kernel.getNumbers();
#define ATTN_KERNEL_NUMBER(name) record.name = numbers.name;
#include "attn/Runtime/Fields.def"
  record.code_classify = kernel.getClassify() ? code(*kernel.getClassify()) : -1;
  if (failed(numbers.warps ? setDeviceCode(kernel, record) : setHostCode(kernel, record)))
    return failure();
  return record;
}

// From the runtime's form of a step's code, a range of units, to a call for each unit.
std::string EntryBuilder::stepEntry(func::FuncOp callee) {
  std::string name = (callee.getName() + ".entry").str();
  Type i64 = b.getI64Type();
  auto fn = func::FuncOp::create(b, loc, name, b.getFunctionType({ptr, i64, i64}, {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  SmallVector<Value> args;
  for (auto [i, type] : llvm::enumerate(callee.getArgumentTypes().drop_back()))
    args.push_back(loadMemRef(fn.getArgument(0), i, cast<MemRefType>(type)));
  auto toIndex = [&](Value v) { return arith::IndexCastOp::create(b, loc, b.getIndexType(), v); };
  auto loop = [&] {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto units = scf::ForOp::create(b, loc, toIndex(fn.getArgument(1)), toIndex(fn.getArgument(2)), one);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(units.getBody());
    args.push_back(units.getInductionVar());
    func::CallOp::create(b, loc, callee, args);
  };
  if (x86)
    withoutDenormals(b, loc, ptr, loop);
  else
    loop();
  func::ReturnOp::create(b, loc);
  return name;
}

AttnStep EntryBuilder::kernelStep(int64_t kernel) {
  AttnStep record = {};
  record.kernel = kernel;
  return record;
}

FailureOr<AttnStep> EntryBuilder::codeStep(tile::StepOp step) {
  AttnStep record = {};
  record.kernel = -1;
  SmallVector<Value> tensors(step.getInputs());
  llvm::append_range(tensors, step.getOutputs());
  if (tensors.size() > ATTN_MAX_OPERANDS || step.getUnits().size() > 3 * ATTN_MAX_RANK ||
      step.getMultipleExtents().size() > 4 * ATTN_MAX_MULTIPLES)
    return step.emitError() << "has " << tensors.size() << " tensors and " << step.getUnits().size() / 3
                            << " dimensions of units; at most " << int(ATTN_MAX_OPERANDS) << " and "
                            << int(ATTN_MAX_RANK);
  for (Value tensor : tensors)
    record.operands[record.num_operands++] = *interface.find(tensor);
  for (ArrayRef<int64_t> units = step.getUnits(); !units.empty(); units = units.drop_front(3))
    record.units[record.num_units++] = {units[0], units[1], units[2]};
  for (ArrayRef<int64_t> at = step.getMultipleExtents(); !at.empty(); at = at.drop_front(4))
    record.multiples[record.num_multiples++] = {at[0], at[1], at[2], at[3]};
  if (auto least = step->getAttrOfType<DenseI64ArrayAttr>(tile::kLeastAttr)) {
    if (least.size() > 6 * ATTN_MAX_LEAST)
      return step.emitError() << "has " << least.size() / 6 << " bounds of extents; at most " << int(ATTN_MAX_LEAST);
    for (ArrayRef<int64_t> at = least; !at.empty(); at = at.drop_front(6))
      record.least[record.num_least++] = {at[0], at[1], at[2], at[3], at[4], at[5]};
  }
  if (device)
    record.kernel_name = string(getDeviceName(step.getCode()));
  else
    record.code = code(stepEntry(module.lookupSymbol<func::FuncOp>(step.getCode())));
  return record;
}

// int NAME(...), NAME_plan(attn_plan **, ...), NAME_run(const attn_plan *, ...): store the arguments and call the
// runtime.
void EntryBuilder::entry(StringRef suffix, int mode, unsigned numTensors) {
  Type i32 = b.getI32Type();
  SmallVector<Type> types(numTensors + (mode ? 1 : 0) + (device ? 1 : 0), ptr);
  auto fn = func::FuncOp::create(b, loc, interface.name + suffix.str(), b.getFunctionType(types, i32));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  auto array = [&](unsigned count) {
    return LLVM::AllocaOp::create(b, loc, ptr, ptr, constant(std::max(count, 1u), i32)).getResult();
  };
  auto put = [&](Value array, unsigned i, Value v) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, ptr, array, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, v, at);
  };
  Value arguments = array(numTensors), pointers = array(codes.size()), plan = array(1);
  for (unsigned i = 0; i < numTensors; ++i)
    put(arguments, i, fn.getArgument(i + (mode ? 1 : 0)));
  for (auto [i, symbol] : llvm::enumerate(codes)) {
    auto callee = module.lookupSymbol<func::FuncOp>(symbol);
    Value address = func::ConstantOp::create(b, loc, callee.getFunctionType(), symbol);
    put(pointers, i, UnrealizedConversionCastOp::create(b, loc, ptr, address).getResult(0));
  }
  Value planPlace = plan;
  if (mode == 1)
    planPlace = fn.getArgument(0);
  else if (mode == 2)
    put(plan, 0, fn.getArgument(0));
  SmallVector<Value> call{address(interface.name + ".table"),
                          address(interface.name + ".strings"),
                          pointers,
                          arguments,
                          constant(mode, i32),
                          planPlace};
  if (device)
    call.push_back(fn.getArguments().back());
  func::ReturnOp::create(b, loc, func::CallOp::create(b, loc, device ? kCallOn : kCall, i32, call).getResults());
}

/// The records of all kernels, then of all steps.
FailureOr<SmallVector<int64_t>> EntryBuilder::kernelsAndSteps(AttnFunction &header) {
  SmallVector<int64_t> kernels, steps;
  for (Operation &op : func.getBody().front()) {
    if (auto launch = dyn_cast<tile::LaunchOp>(op)) {
      FailureOr<AttnKernel> record = kernelRecord(launch);
      if (failed(record))
        return failure();
      append(kernels, *record);
      append(steps, kernelStep(header.num_kernels++));
    } else if (auto step = dyn_cast<tile::StepOp>(op)) {
      FailureOr<AttnStep> record = codeStep(step);
      if (failed(record))
        return failure();
      append(steps, *record);
    } else {
      continue;
    }
    ++header.num_steps;
  }
  llvm::append_range(kernels, steps);
  return std::move(kernels);
}

LogicalResult EntryBuilder::build() {
  AttnFunction header = {};
  header.abi_version = ATTN_ABI_VERSION;
  header.name = string(interface.name);
  header.num_tensors = interface.tensors.size();
  header.num_symbols = interface.symbols.size();
  header.num_arguments = interface.numArguments;
  header.threads = threads;
  header.device = device ? ATTN_CUDA : ATTN_CPU;
  header.image = device ? code(kImageGetter) : -1;
  FailureOr<SmallVector<int64_t>> records = kernelsAndSteps(header);
  if (failed(records))
    return failure();
  SmallVector<int64_t> table;
  append(table, header);
  for (const TensorInfo &tensor : interface.tensors)
    append(table, tensorRecord(tensor));
  for (const SymbolInfo &symbol : interface.symbols)
    append(table, AttnSymbol{string(symbol.name), symbol.rule});
  llvm::append_range(table, *records);
  auto words = DenseElementsAttr::get(RankedTensorType::get({int64_t(table.size())}, b.getI64Type()), ArrayRef(table));
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI64Type(), table.size()), /*isConstant=*/true,
                         LLVM::Linkage::Internal, interface.name + ".table", words, /*alignment=*/8);
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), strings.size()), /*isConstant=*/true,
                         LLVM::Linkage::Internal, interface.name + ".strings", b.getStringAttr(strings));
  unsigned numInputs = interface.numInputs, numArguments = interface.numArguments;
  func.erase();
  entry("", 0, numArguments);
  entry("_plan", 1, numInputs);
  entry("_run", 2, numArguments);
  return success();
}

struct LowerEntryPoints : impl::LowerEntryPointsBase<LowerEntryPoints> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OpBuilder b(&getContext());
    b.setInsertionPointToEnd(module.getBody());
    Type ptr = LLVM::LLVMPointerType::get(&getContext()), i32 = b.getI32Type();
    SmallVector<func::FuncOp> functions;
    for (auto fn : module.getOps<func::FuncOp>())
      if (!fn.getOps<CompiledOpInterface>().empty())
        functions.push_back(fn);
    if (llvm::any_of(functions, isForDevice))
      makeImage(b, module);
    llvm::SetVector<func::FuncOp> deviceCode = findDeviceCode(module);
    func::FuncOp::create(b, module.getLoc(), kCall, b.getFunctionType({ptr, ptr, ptr, ptr, i32, ptr}, i32))
        .setPrivate();
    func::FuncOp::create(b, module.getLoc(), kCallOn, b.getFunctionType({ptr, ptr, ptr, ptr, i32, ptr, ptr}, i32))
        .setPrivate();
    for (func::FuncOp fn : functions) {
      FailureOr<FunctionInterface> interface = FunctionInterface::of(fn);
      if (failed(interface) || failed(EntryBuilder(b, module, fn, std::move(*interface), threads, x86).build()))
        return signalPassFailure();
    }
    for (auto kernel : llvm::make_early_inc_range(module.getOps<tile::KernelOp>()))
      kernel.erase();
    for (func::FuncOp fn : deviceCode)
      fn.erase();
  }
};

} // namespace
} // namespace attn
