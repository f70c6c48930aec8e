//===- Records.h - What the runtime knows of a function ---------*- C++ -*-===//
#ifndef ATTN_LIB_ENTRY_RECORDS_H
#define ATTN_LIB_ENTRY_RECORDS_H

#include "attn/Dialect/AttnTile/IR/AttnTile.h"
#include "attn/Entry/Interface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace attn::entry {

struct Options {
  bool threads, x86;
};

/// The table of a function in the layout of attn/Runtime/Abi.h, the strings it names by offset, and the symbols of the
/// code it names by number.
class RecordBuilder {
public:
  RecordBuilder(mlir::OpBuilder &b, mlir::func::FuncOp func, const FunctionInterface &interface, Options options);

  mlir::LogicalResult build();

  llvm::SmallVector<int64_t> table;
  std::string strings;
  llvm::SmallVector<std::string> codes;
  const bool device;

private:
  int64_t string(llvm::StringRef text);
  int64_t code(llvm::StringRef symbol);
  int64_t constantGetter(const TensorInfo &tensor);
  AttnTensor tensorRecord(const TensorInfo &tensor);
  mlir::FailureOr<AttnKernel> kernelRecord(tile::LaunchOp launch);
  mlir::LogicalResult setHostCode(tile::KernelOp kernel, AttnKernel &record);
  void setDeviceCode(tile::KernelOp kernel, AttnKernel &record);
  int64_t amxGranted();
  mlir::FailureOr<AttnStep> codeStep(tile::StepOp step);
  mlir::FailureOr<llvm::SmallVector<int64_t>> kernelsAndSteps(AttnFunction &header);

  mlir::OpBuilder &b;
  mlir::Location loc;
  mlir::ModuleOp module;
  mlir::func::FuncOp func;
  const FunctionInterface &interface;
  Options options;
  mlir::Type ptr;
  bool usesAMX = false;
};

} // namespace attn::entry

#endif // ATTN_LIB_ENTRY_RECORDS_H
