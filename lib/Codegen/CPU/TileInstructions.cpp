//===- TileInstructions.cpp - AMX tiles by number -------------------------===//
#include "TileInstructions.h"

using namespace mlir;

namespace attn::cpu {

static constexpr const char *kConfiguration = "attn.tile_configuration";

void TileInstructions::call(StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.x86." + name), operands);
}

Value TileInstructions::number(int64_t tile) {
  return LLVM::ConstantOp::create(e.b, e.loc, e.b.getI8Type(), e.b.getI8IntegerAttr(tile));
}

Value TileInstructions::i64(Value index) { return e.make<arith::IndexCastOp>(e.b.getI64Type(), index); }

Value TileInstructions::i64(int64_t v) {
  return LLVM::ConstantOp::create(e.b, e.loc, e.b.getI64Type(), e.b.getI64IntegerAttr(v));
}

Value TileInstructions::at(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(e.b, e.loc, pointer.getType(), e.b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{i64(bytes)});
}

Value TileInstructions::at(Value pointer, int64_t bytes) {
  return bytes ? LLVM::GEPOp::create(e.b, e.loc, pointer.getType(), e.b.getI8Type(), pointer,
                                     ArrayRef<LLVM::GEPArg>{int32_t(bytes)})
                     .getResult()
               : pointer;
}

Value TileInstructions::address(Value memref) {
  auto type = cast<MemRefType>(memref.getType());
  Value base = i64(memref::ExtractAlignedPointerAsIndexOp::create(e.b, e.loc, memref));
  Value pointer = LLVM::IntToPtrOp::create(e.b, e.loc, LLVM::LLVMPointerType::get(e.b.getContext()), base);
  auto layout = memref::ExtractStridedMetadataOp::create(e.b, e.loc, memref);
  return at(pointer, e.mul(layout.getOffset(), type.getElementTypeBitWidth() / 8));
}

Value TileInstructions::rowBytes(Value matrix) {
  auto type = cast<MemRefType>(matrix.getType());
  auto layout = memref::ExtractStridedMetadataOp::create(e.b, e.loc, matrix);
  return e.mul(layout.getStrides()[0], type.getElementTypeBitWidth() / 8);
}

// Palette 1; for every tile 64 bytes a row, and 16 rows.
void TileInstructions::configure() {
  auto pointer = LLVM::LLVMPointerType::get(e.b.getContext());
  auto module = e.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!module.lookupSymbol(kConfiguration)) {
    int8_t bytes[64] = {1};
    for (int64_t tile = 0; tile < 8; ++tile) {
      bytes[16 + 2 * tile] = 64;
      bytes[48 + tile] = 16;
    }
    OpBuilder::InsertionGuard guard(e.b);
    e.b.setInsertionPointToEnd(module.getBody());
    auto type = RankedTensorType::get({64}, e.b.getI8Type());
    LLVM::GlobalOp::create(e.b, e.loc, LLVM::LLVMArrayType::get(e.b.getI8Type(), 64), /*isConstant=*/true,
                           LLVM::Linkage::Internal, kConfiguration,
                           DenseElementsAttr::get(type, ArrayRef<int8_t>(bytes)), /*alignment=*/64);
  }
  call("ldtilecfg", {LLVM::AddressOfOp::create(e.b, e.loc, pointer, kConfiguration).getResult()});
}

} // namespace attn::cpu
