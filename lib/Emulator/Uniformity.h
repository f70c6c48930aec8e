//===- Uniformity.h - On which values do the lanes of a warp agree? ---------===//
#ifndef ATTN_LIB_EMULATOR_UNIFORMITY_H
#define ATTN_LIB_EMULATOR_UNIFORMITY_H

#include "Rules.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace attn::emulator {

/// Finds the values of a kernel that differ between lanes. Values that are merged under a varying condition do.
class Uniformity {
public:
  Uniformity(mlir::Operation *kernel, const RuleTable &rules);
  bool isVarying(mlir::Value value) const { return varying.contains(value); }

private:
  void visitBlock(mlir::Block &block);
  void visit(mlir::Operation *op);
  void visitLoop(mlir::Operation *loop);
  bool isAnyVarying(mlir::ValueRange values) const;
  void mark(mlir::Value value, bool isVarying);
  void markAll(mlir::ValueRange values, bool areVarying);

  const RuleTable &rules;
  llvm::DenseSet<mlir::Value> varying;
  bool changed = false;
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_UNIFORMITY_H
