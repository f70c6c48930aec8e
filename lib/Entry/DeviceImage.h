//===- DeviceImage.h - What a module holds for a GPU ------------*- C++ -*-===//
#ifndef ATTN_LIB_ENTRY_DEVICEIMAGE_H
#define ATTN_LIB_ENTRY_DEVICEIMAGE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace attn::entry {

/// The function that gives the address of the image.
constexpr const char *kImageGetter = "attn_image.get";

/// Code without a body here is on the device.
bool isOnDevice(mlir::ModuleOp module, mlir::FlatSymbolRefAttr code);
bool isForDevice(mlir::func::FuncOp func);
/// The declarations of device code, which say which tensors it takes; they go with the ops that ask.
llvm::SetVector<mlir::func::FuncOp> findDeviceCode(mlir::ModuleOp module);

/// The constant AttnImage of the module's GPU code, and its getter. The texts are attributes of the module; an emulated
/// kernel has none.
void makeImage(mlir::OpBuilder &b, mlir::ModuleOp module);

} // namespace attn::entry

#endif // ATTN_LIB_ENTRY_DEVICEIMAGE_H
