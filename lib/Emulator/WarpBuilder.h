//===- WarpBuilder.h - Kernel code for one thread to host code for a warp ---===//
//
// A value of the kernel becomes a list of components: one for a scalar, one per element for a vector or struct. A
// component is a scalar where all lanes agree (uniform), else a vector of 32. Pointers are integers: host addresses in
// global memory, offsets in shared memory. 16-bit floats are carried as their bits.
#ifndef ATTN_LIB_EMULATOR_WARPBUILDER_H
#define ATTN_LIB_EMULATOR_WARPBUILDER_H

#include "Program.h"
#include "Rules.h"
#include "Runtime/State.h"
#include "Uniformity.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace attn::emulator {

using Components = llvm::SmallVector<mlir::Value, 4>;

/// The scalar types of the components of a type; fails for types that the emulator does not know.
llvm::FailureOr<llvm::SmallVector<mlir::Type>> componentTypes(mlir::Type type);
bool isHalf(mlir::Type type);

class WarpBuilder : public mlir::OpBuilder {
public:
  WarpBuilder(mlir::ModuleOp host, mlir::LLVM::LLVMFuncOp kernel, const RuleTable &rules, const SharedLayout &shared,
              Program &program);

  /// Builds the function `name` of the host module: (Warp *, const void *const *arguments).
  llvm::LogicalResult build(llvm::StringRef name);

  // Values of the kernel.
  llvm::ArrayRef<mlir::Value> get(mlir::Value value) const;
  mlir::Value getOne(mlir::Value value) const;
  void set(mlir::Value value, Components components);
  bool isVaryingInKernel(mlir::Value value) const { return uniformity.isVarying(value); }

  // Components.
  static bool isVarying(mlir::Value component) { return llvm::isa<mlir::VectorType>(component.getType()); }
  static mlir::Type elementType(mlir::Value component);
  mlir::VectorType lanesOf(mlir::Type type) const { return mlir::VectorType::get({kLanes}, type); }
  mlir::Type likeLanes(mlir::Type type, bool varying) const { return varying ? mlir::Type(lanesOf(type)) : type; }
  mlir::Value splat(mlir::Value component);
  /// All varying if one is.
  void unify(llvm::MutableArrayRef<mlir::Value> components);
  mlir::Value firstLane(mlir::Value component);
  /// The value of one active lane.
  mlir::Value anyActiveLane(mlir::Value component);
  mlir::Value constantInt(uint64_t value, unsigned width = 32);
  mlir::Value constantLike(mlir::Type type, uint64_t bits);
  mlir::Value laneNumbers();
  mlir::Value resizeInt(mlir::Value component, unsigned width, bool isSigned);
  /// The float behind the bits of a 16-bit one, and back.
  mlir::Value expandHalf(mlir::Value bits, mlir::Type half);
  mlir::Value narrowToHalf(mlir::Value value, mlir::Type half);

  /// The same bits as components of `type`, the first one lowest; fails where the widths do not fit.
  llvm::FailureOr<Components> regroup(llvm::ArrayRef<mlir::Value> components, mlir::Type type);

  // Control flow: null is all lanes.
  mlir::Value getMask() const { return mask; }
  mlir::Value maskBits();
  mlir::Value toBits(mlir::Value mask);
  mlir::Value andMask(mlir::Value condition);
  mlir::Value isAnyActive(mlir::Value mask);
  /// Rewrites the ops of a block of the kernel here, but its terminator, under `mask`.
  llvm::LogicalResult rewriteBlock(mlir::Block &block, mlir::Value mask);

  // Run-time functions: `lanes` are passed as arrays of 32.
  mlir::Value getWarp() const { return warp; }
  mlir::Value call(llvm::StringRef function, mlir::Type result, mlir::ValueRange arguments);
  /// A C function of `count` numbers of `type`, found in this process.
  mlir::Value addressOfFunction(llvm::StringRef name, mlir::Type type, unsigned count);
  /// Arrays for arguments live until the op is done; `putLanes` fills the next ones.
  void clearArrays() { used = 0; }
  mlir::Value putLanes(llvm::ArrayRef<mlir::Value> components);
  mlir::Value reserveLanes(unsigned bytesPerLane);
  mlir::Value takeLanes(mlir::Value array, mlir::Type type, unsigned index);
  mlir::Value takeFirstLane(mlir::Value array, mlir::Type type, unsigned index);
  mlir::Value loadFromWarp(mlir::Type type, unsigned offset);
  /// The number by which the runtime names this op.
  mlir::Value site(mlir::Operation *op);

  /// Emits an error if the chip is older.
  llvm::LogicalResult requireChip(mlir::Operation *op, unsigned chip) const;
  llvm::FailureOr<uint64_t> sharedOffset(llvm::StringRef global) const;

  /// The location of the op that is rewritten.
  mlir::Location loc;

private:
  llvm::LogicalResult rewrite(mlir::Operation &op, std::map<std::string, uint64_t> *counts);
  llvm::LogicalResult setArguments(mlir::Value arguments);
  mlir::LLVM::LLVMFuncOp declare(llvm::StringRef function, mlir::Type result, mlir::TypeRange arguments);
  mlir::Value arrayAt(unsigned offset);
  void countRegion(uint64_t region);

  mlir::ModuleOp host;
  mlir::LLVM::LLVMFuncOp kernel;
  const RuleTable &rules;
  const SharedLayout &shared;
  Program &program;
  Uniformity uniformity;
  llvm::DenseMap<mlir::Value, Components> values;
  mlir::Value warp, arrays, mask;
  unsigned used = 0, arrayBytes = 0;
};

} // namespace attn::emulator

#endif // ATTN_LIB_EMULATOR_WARPBUILDER_H
