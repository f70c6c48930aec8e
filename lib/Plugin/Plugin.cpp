//===- Plugin.cpp - attn-mlir for a stock mlir-opt --------------------------===//
//
// mlir-opt --load-dialect-plugin=AttnPlugin.so --pass-pipeline='builtin.module(...)': the dialect entry registers the
// passes too, so that one flag is enough.
//
//===----------------------------------------------------------------------===//
#include "attn/Register.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

static void registerEverything(mlir::DialectRegistry *registry) {
  attn::registerAllDialects(*registry);
  attn::registerAllExtensions(*registry);
  attn::registerAllPasses();
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Attn", LLVM_VERSION_STRING, registerEverything};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "AttnPasses", LLVM_VERSION_STRING, attn::registerAllPasses};
}
