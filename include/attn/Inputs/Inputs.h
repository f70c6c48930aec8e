//===- Inputs.h - Inputs of a function: extents, files, random data ---------===//
#ifndef ATTN_INPUTS_INPUTS_H
#define ATTN_INPUTS_INPUTS_H

#include "attn/Pattern/Mask.h"
#include "attn/Reference/HostTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace attn {

struct InputOptions {
  std::map<std::string, std::string> files; // argument name to .npy file
  bool random = false;                      // draw what no file gives
  std::map<std::string, int64_t> extents;   // B, H, Hkv, N, M, D, Dv to value
  int64_t tokens = 1024;                    // N and M where nothing else gives them
  std::string extentsOption = "--random";   // where a person gives extents
  uint64_t seed = 0;
};

/// Reads "NAME=FILE.npy", an entry of the option "--input" or "--output", into `files`.
llvm::Error readFileOption(llvm::StringRef option, llvm::StringRef entry, std::map<std::string, std::string> &files);
/// Reads "B=1,H=8,N=4096", the value of an option, into `extents`.
llvm::Error readExtentsOption(llvm::StringRef option, llvm::StringRef text, std::map<std::string, int64_t> &extents);

/// One tensor per argument of `func`. Random q, k, v are normal; captured tensors get what their uses ask for: sorted
/// document ids, lengths, index sets in range, block tables of zeros and ones. An error says which argument or extent
/// is wrong and what to give instead.
llvm::Expected<llvm::SmallVector<HostTensor>> makeInputs(mlir::func::FuncOp func, const InputOptions &options);

/// A step around attention and what it does.
struct CountedStep {
  mlir::Operation *op;
  StepWork work;
};

/// What the masks of a function depend on.
struct MaskInputs {
  struct Attention {
    AttentionOp op;
    Extents extents;
    int64_t headDim, valueDim;
    std::vector<CapturedData> captured; // goes with Captures::tensors
    int64_t operandBytes = 0;           // of sink, table, bias and scores
  };
  llvm::SmallVector<Attention> attentions;
  llvm::SmallVector<CountedStep> steps;
  llvm::SmallVector<std::string> drawn; // the arguments among them that no file gave
};

/// The extents and the tensors that masks read, as makeInputs gives them for `spec`, which `func` has been made of; no
/// other tensor is made.
llvm::Expected<MaskInputs> makeMaskInputs(mlir::func::FuncOp func, mlir::func::FuncOp spec,
                                          const InputOptions &options);

/// The steps of a function in order, for these inputs.
llvm::Expected<llvm::SmallVector<CountedStep>> countSteps(mlir::func::FuncOp func, llvm::ArrayRef<HostTensor> inputs);

/// Shape of every result for these inputs.
llvm::Expected<llvm::SmallVector<llvm::SmallVector<int64_t>>> getResultShapes(mlir::func::FuncOp func,
                                                                              llvm::ArrayRef<HostTensor> inputs);

} // namespace attn

#endif // ATTN_INPUTS_INPUTS_H
