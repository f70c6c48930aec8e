//===- LowerEntryPoints.cpp - C functions and tables for the runtime ------===//
#include "DeviceImage.h"
#include "Records.h"
#include "attn/Entry/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace attn {
#define GEN_PASS_DEF_LOWERENTRYPOINTS
#include "attn/Entry/Passes.h.inc"

using namespace mlir;
using namespace entry;

namespace {

constexpr const char *kCall = "attn_call", *kCallOn = "attn_call_on";

/// The C functions of one spec's function, and the constants they hand to the runtime.
class CFunctions {
public:
  CFunctions(OpBuilder &b, Location loc, ModuleOp module, StringRef name, const RecordBuilder &records)
      : b(b), loc(loc), module(module), name(name), records(records), ptr(LLVM::LLVMPointerType::get(b.getContext())) {}

  void addAll(unsigned numInputs, unsigned numArguments);

private:
  void addConstants();
  void add(StringRef suffix, int mode, unsigned numTensors);
  Value address(StringRef global) { return LLVM::AddressOfOp::create(b, loc, ptr, global); }
  Value constant(int64_t v, Type type) { return LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, v)); }

  OpBuilder &b;
  Location loc;
  ModuleOp module;
  std::string name;
  const RecordBuilder &records;
  Type ptr;
};

void CFunctions::addConstants() {
  auto words = DenseElementsAttr::get(RankedTensorType::get({int64_t(records.table.size())}, b.getI64Type()),
                                      ArrayRef(records.table));
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI64Type(), records.table.size()), /*isConstant=*/true,
                         LLVM::Linkage::Internal, name + ".table", words, /*alignment=*/8);
  LLVM::GlobalOp::create(b, loc, LLVM::LLVMArrayType::get(b.getI8Type(), records.strings.size()), /*isConstant=*/true,
                         LLVM::Linkage::Internal, name + ".strings", b.getStringAttr(records.strings));
}

// int NAME(...), NAME_plan(attn_plan **, ...), NAME_run(const attn_plan *, ...): store the arguments and call the
// runtime.
void CFunctions::add(StringRef suffix, int mode, unsigned numTensors) {
  Type i32 = b.getI32Type();
  SmallVector<Type> types(numTensors + (mode ? 1 : 0) + (records.device ? 1 : 0), ptr);
  auto fn = func::FuncOp::create(b, loc, name + suffix.str(), b.getFunctionType(types, i32));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(fn.addEntryBlock());
  auto array = [&](unsigned count) {
    return LLVM::AllocaOp::create(b, loc, ptr, ptr, constant(std::max(count, 1u), i32)).getResult();
  };
  auto put = [&](Value array, unsigned i, Value v) {
    Value at = LLVM::GEPOp::create(b, loc, ptr, ptr, array, ArrayRef<LLVM::GEPArg>{int32_t(i)});
    LLVM::StoreOp::create(b, loc, v, at);
  };
  Value arguments = array(numTensors), pointers = array(records.codes.size()), plan = array(1);
  for (unsigned i = 0; i < numTensors; ++i)
    put(arguments, i, fn.getArgument(i + (mode ? 1 : 0)));
  for (auto [i, symbol] : llvm::enumerate(records.codes)) {
    auto callee = module.lookupSymbol<func::FuncOp>(symbol);
    Value address = func::ConstantOp::create(b, loc, callee.getFunctionType(), symbol);
    put(pointers, i, UnrealizedConversionCastOp::create(b, loc, ptr, address).getResult(0));
  }
  Value planPlace = plan;
  if (mode == 1)
    planPlace = fn.getArgument(0);
  else if (mode == 2)
    put(plan, 0, fn.getArgument(0));
  SmallVector<Value> call{
      address(name + ".table"), address(name + ".strings"), pointers, arguments, constant(mode, i32), planPlace};
  if (records.device)
    call.push_back(fn.getArguments().back());
  func::ReturnOp::create(b, loc,
                         func::CallOp::create(b, loc, records.device ? kCallOn : kCall, i32, call).getResults());
}

void CFunctions::addAll(unsigned numInputs, unsigned numArguments) {
  addConstants();
  add("", 0, numArguments);
  add("_plan", 1, numInputs);
  add("_run", 2, numArguments);
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
      if (failed(lower(b, fn)))
        return signalPassFailure();
    }
    for (auto kernel : llvm::make_early_inc_range(module.getOps<tile::KernelOp>()))
      kernel.erase();
    for (func::FuncOp fn : deviceCode)
      fn.erase();
  }

private:
  LogicalResult lower(OpBuilder &b, func::FuncOp func) {
    FailureOr<FunctionInterface> interface = FunctionInterface::of(func);
    if (failed(interface))
      return failure();
    RecordBuilder records(b, func, *interface, {threads, x86});
    if (failed(records.build()))
      return failure();
    Location loc = func.getLoc();
    func.erase();
    CFunctions(b, loc, getOperation(), interface->name, records).addAll(interface->numInputs, interface->numArguments);
    return success();
  }
};

} // namespace
} // namespace attn
