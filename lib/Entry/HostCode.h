//===- HostCode.h - From the runtime's operands to a function's -*- C++ -*-===//
#ifndef ATTN_LIB_ENTRY_HOSTCODE_H
#define ATTN_LIB_ENTRY_HOSTCODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace attn::entry {

using mlir::Value;

/// Makes functions that unpack the runtime's lists of operands (attn/Runtime/Abi.h) and call the code of a task or a
/// step. Each returns the name of what it made.
class HostCode {
public:
  HostCode(mlir::OpBuilder &b, mlir::Location loc, bool x86)
      : b(b), loc(loc), x86(x86), ptr(mlir::LLVM::LLVMPointerType::get(b.getContext())) {}

  /// `skipped` is an operand of the runtime that the task does not take: 4, the log-sum-exp, null where there is none.
  std::string makeTask(mlir::func::FuncOp callee, unsigned skipped);
  /// The runtime gives a range of units; the code is called for each.
  std::string makeStep(mlir::func::FuncOp callee);

private:
  void withoutDenormals(llvm::function_ref<void()> body);
  Value loadMemRef(Value operands, int64_t i, mlir::MemRefType type);
  Value descriptor(Value data, llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, mlir::MemRefType type);
  Value constant(int64_t v, mlir::Type type) {
    return mlir::LLVM::ConstantOp::create(b, loc, type, b.getIntegerAttr(type, v));
  }
  Value field(Value base, int64_t i, mlir::Type type) {
    Value at = mlir::LLVM::GEPOp::create(b, loc, ptr, type, base, llvm::ArrayRef<mlir::LLVM::GEPArg>{int32_t(i)});
    return mlir::LLVM::LoadOp::create(b, loc, type, at);
  }

  mlir::OpBuilder &b;
  mlir::Location loc;
  bool x86;
  mlir::Type ptr;
};

} // namespace attn::entry

#endif // ATTN_LIB_ENTRY_HOSTCODE_H
