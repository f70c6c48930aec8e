//===- Spec.h - Attention ops for tests, from their mask -------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_PATTERN_SPEC_H
#define ATTN_TEST_UNIT_PATTERN_SPEC_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include <string>

namespace attn::test {

inline mlir::DialectRegistry makeRegistry() {
  mlir::DialectRegistry registry;
  registry.insert<AttnDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::index::IndexDialect,
                  mlir::LLVM::LLVMDialect, mlir::tensor::TensorDialect>();
  return registry;
}

/// A function with one attention op; %len, %doc, %set, %table are there to be captured.
class Spec {
public:
  Spec(mlir::MLIRContext &context, const std::string &mask, const std::string &align = "",
       const std::string &tensor = "tensor<?x?x?x64xf32>") {
    std::string text = "!t = " + tensor + R"(
func.func @f(%q: !t, %k: !t, %v: !t, %len: tensor<?xi32>, %doc: tensor<?x?xi32>, %set: tensor<?x?xi32>,
             %table: tensor<?x?xi1>, %wide: tensor<?x?xi64>, %bytes: tensor<?x?xi8>) -> !t {
  %o = attn.attention %q, %k, %v )" +
                       align + " " + mask + R"( : !t, !t, !t -> !t
  return %o : !t
})";
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (module)
      module->walk([&](AttentionOp found) { op = found; });
  }

  mlir::OwningOpRef<mlir::ModuleOp> module;
  AttentionOp op;
};

} // namespace attn::test

#endif // ATTN_TEST_UNIT_PATTERN_SPEC_H
