//===- Register.cpp - Everything of attn-mlir in three calls ----------------===//

#include "attn/Register.h"
#include "attn/Codegen/CPU/Passes.h"
#include "attn/Codegen/GPU/Passes.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Entry/Passes.h"
#include "attn/Pattern/IntervalModels.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Schedule/Passes.h"
#include "attn/Tiling/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"

namespace attn {

void registerAllDialects(mlir::DialectRegistry &registry) { registry.insert<AttnDialect, tile::AttnTileDialect>(); }

// What the last conversion, convert-to-llvm, finds its patterns by.
static void registerConversionsToLLVM(mlir::DialectRegistry &registry) {
  mlir::arith::registerConvertArithToLLVMInterface(registry);
  mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
  mlir::index::registerConvertIndexToLLVMInterface(registry);
  mlir::registerConvertFuncToLLVMInterface(registry);
  mlir::registerConvertMathToLLVMInterface(registry);
  mlir::registerConvertMemRefToLLVMInterface(registry);
  mlir::ub::registerConvertUBToLLVMInterface(registry);
  mlir::vector::registerConvertVectorToLLVMInterface(registry);
}

void registerAllExtensions(mlir::DialectRegistry &registry) {
  registerIntervalModels(registry);
  registerConversionsToLLVM(registry);
}

void registerAllPasses() {
  registerAttnConversionPasses();
  registerAttnSchedulePasses();
  registerAttnTilingPasses();
  registerAttnCodegenCPUPasses();
  registerAttnEntryPasses();
  registerAttnCodegenGPUPasses();
  registerPipelines();
}

} // namespace attn
