//===- Records.cpp - What the runtime knows of a function -----------------===//
#include "Records.h"
#include "DeviceImage.h"
#include "HostCode.h"
#include "attn/Runtime/Abi.h"
#include "attn/Support/Names.h"

using namespace mlir;

namespace attn::entry {

/// A struct of int64 fields as the table that it is.
template <typename T>
static void append(SmallVectorImpl<int64_t> &table, const T &record) {
  static_assert(sizeof(T) % sizeof(int64_t) == 0);
  auto *words = reinterpret_cast<const int64_t *>(&record);
  table.append(words, words + sizeof(T) / sizeof(int64_t));
}

RecordBuilder::RecordBuilder(OpBuilder &b, func::FuncOp func, const FunctionInterface &interface, Options options)
    : device(isForDevice(func)), b(b), loc(func.getLoc()), module(func->getParentOfType<ModuleOp>()), func(func),
      interface(interface), options(options), ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

int64_t RecordBuilder::string(StringRef text) {
  int64_t offset = strings.size();
  strings += text;
  strings.push_back('\0');
  return offset;
}

int64_t RecordBuilder::code(StringRef symbol) {
  auto it = llvm::find(codes, symbol);
  if (it == codes.end())
    it = codes.insert(codes.end(), symbol.str());
  return it - codes.begin();
}

// Constants lie in memory as the tasks read them: booleans in bytes, index as 64 bits.
static DenseElementsAttr storedForm(DenseElementsAttr constant) {
  Type element = constant.getElementType();
  auto as = [&](unsigned bits) {
    Type type = IntegerType::get(constant.getContext(), bits);
    return constant.mapValues(type, [&](const APInt &v) { return bits == 8 ? v.zext(8) : v.sextOrTrunc(bits); });
  };
  if (element.isInteger(1))
    return as(8);
  return element.isIndex() ? as(64) : constant;
}

int64_t RecordBuilder::constantGetter(const TensorInfo &tensor) {
  std::string global = interface.name + "." + tensor.name, getter = global + ".get";
  DenseElementsAttr data = storedForm(tensor.constant);
  auto flat = data.reshape(RankedTensorType::get({data.getNumElements()}, data.getElementType()));
  auto type = LLVM::LLVMArrayType::get(data.getElementType(), data.getNumElements());
  LLVM::GlobalOp::create(b, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, global, flat, /*alignment=*/64);
  auto fn = func::FuncOp::create(b, loc, getter, b.getFunctionType({}, ptr));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  func::ReturnOp::create(b, loc, LLVM::AddressOfOp::create(b, loc, ptr, global).getResult());
  return code(getter);
}

AttnTensor RecordBuilder::tensorRecord(const TensorInfo &tensor) {
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

LogicalResult RecordBuilder::setHostCode(tile::KernelOp kernel, AttnKernel &record) {
  std::optional<ArrayRef<int64_t>> scratch = kernel.getScratch();
  if (!scratch)
    return kernel.emitError("says nothing of the memory its tasks need: run convert-attn-tile-to-cpu first, or write "
                            "scratch([base, per_dim, per_value_dim])");
  record.scratch_base = (*scratch)[0];
  record.scratch_per_dim = (*scratch)[1];
  record.scratch_per_value_dim = (*scratch)[2];
  auto taskEntry = [&](StringRef task) {
    unsigned skipped = record.lse < 0 ? 4 : ~0u;
    return code(HostCode(b, loc, options.x86).makeTask(module.lookupSymbol<func::FuncOp>(task), skipped));
  };
  record.code_task = taskEntry(kernel.getTask());
  usesAMX |= module.lookupSymbol(kernel.getTask())->hasAttr(kAMXAttr);
  bool oneWidth = kernel.getTail() == kernel.getTask();
  record.code_tail = oneWidth ? record.code_task : taskEntry(kernel.getTail());
  return success();
}

// The function of the runtime that is asked before tile instructions run: see attn/Runtime/Amx.h.
int64_t RecordBuilder::amxGranted() {
  constexpr const char *kName = "attn_amx_granted";
  if (!module.lookupSymbol(kName))
    func::FuncOp::create(b, module.getLoc(), kName, b.getFunctionType({}, b.getI32Type())).setPrivate();
  return code(kName);
}

void RecordBuilder::setDeviceCode(tile::KernelOp kernel, AttnKernel &record) {
  std::string task = getDeviceName(kernel.getTask());
  record.kernel_name = string(task);
  record.merge_name = string(getMergeName(task));
}

FailureOr<AttnKernel> RecordBuilder::kernelRecord(tile::LaunchOp launch) {
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
  if (numbers.warps)
    setDeviceCode(kernel, record);
  else if (failed(setHostCode(kernel, record)))
    return failure();
  return record;
}

static AttnStep kernelStep(int64_t kernel) {
  AttnStep record = {};
  record.kernel = kernel;
  return record;
}

FailureOr<AttnStep> RecordBuilder::codeStep(tile::StepOp step) {
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
  auto code = module.lookupSymbol<func::FuncOp>(step.getCode());
  auto team = code->getAttrOfType<IntegerAttr>(tile::kTeamAttr);
  record.team = team ? team.getInt() : 1;
  if (device)
    record.kernel_name = string(getDeviceName(step.getCode()));
  else
    record.code = this->code(HostCode(b, loc, options.x86).makeStep(code));
  return record;
}

/// The records of all kernels, then of all steps.
FailureOr<SmallVector<int64_t>> RecordBuilder::kernelsAndSteps(AttnFunction &header) {
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

LogicalResult RecordBuilder::build() {
  AttnFunction header = {};
  header.abi_version = ATTN_ABI_VERSION;
  header.name = string(interface.name);
  header.num_tensors = interface.tensors.size();
  header.num_symbols = interface.symbols.size();
  header.num_arguments = interface.numArguments;
  header.threads = options.threads;
  header.device = device ? ATTN_CUDA : ATTN_CPU;
  header.image = device ? code(kImageGetter) : -1;
  FailureOr<SmallVector<int64_t>> records = kernelsAndSteps(header);
  if (failed(records))
    return failure();
  header.amx_granted = usesAMX ? amxGranted() + 1 : 0;
  append(table, header);
  for (const TensorInfo &tensor : interface.tensors)
    append(table, tensorRecord(tensor));
  for (const SymbolInfo &symbol : interface.symbols)
    append(table, AttnSymbol{string(symbol.name), symbol.rule});
  llvm::append_range(table, *records);
  return success();
}

} // namespace attn::entry
