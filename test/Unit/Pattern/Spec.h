//===- Spec.h - Attention ops for tests, from their mask -------*- C++ -*-===//

#ifndef ATTN_TEST_UNIT_PATTERN_SPEC_H
#define ATTN_TEST_UNIT_PATTERN_SPEC_H

#include "Draw.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Pattern/Captures.h"
#include "attn/Pattern/IntervalModels.h"
#include "attn/Pattern/Mask.h"
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
  registerIntervalModels(registry);
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
  %limit = arith.constant dense<5> : tensor<i32>
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

/// The data of the tensors that the mask captures, in their order.
inline std::vector<CapturedData> getData(Spec &spec, const Problem &p) {
  const Grid *grids[] = {&p.len, &p.doc, &p.set, &p.table, &p.wide, &p.bytes};
  std::vector<CapturedData> data;
  for (mlir::Value tensor : Captures::of(spec.op).tensors) {
    const Grid &grid = *grids[mlir::cast<mlir::BlockArgument>(tensor).getArgNumber() - 3];
    CapturedData content;
    if (mlir::cast<mlir::RankedTensorType>(tensor.getType()).getRank() == 2)
      content.shape.push_back(grid.rows);
    content.shape.push_back(grid.columns);
    content.values = grid.values;
    data.push_back(std::move(content));
  }
  return data;
}

inline MaskEvaluator makeEvaluator(Spec &spec, const Problem &p, const Reindexing &reindexing = {}) {
  return MaskEvaluator(spec.op, {p.batches, p.heads, 1, p.queries, p.keys}, getData(spec, p), reindexing);
}

} // namespace attn::test

#endif // ATTN_TEST_UNIT_PATTERN_SPEC_H
