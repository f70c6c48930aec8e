//===- DeviceImage.cpp - What a module holds for a GPU --------------------===//
#include "DeviceImage.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Support/Names.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attn::entry {

bool isOnDevice(ModuleOp module, FlatSymbolRefAttr code) {
  auto fn = module.lookupSymbol<func::FuncOp>(code.getValue());
  return fn && fn.isExternal();
}

llvm::SetVector<func::FuncOp> findDeviceCode(ModuleOp module) {
  llvm::SetVector<func::FuncOp> found;
  auto add = [&](FlatSymbolRefAttr code) {
    if (isOnDevice(module, code))
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
           return isOnDevice(step->getParentOfType<ModuleOp>(), step.getCodeAttr());
         });
}

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

} // namespace attn::entry
