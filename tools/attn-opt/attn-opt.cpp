//===- attn-opt.cpp - mlir-opt with the attn dialects and passes ------------===//

#include "attn/Register.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllPasses();
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  attn::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, "attn-mlir optimizer\n", registry));
}
