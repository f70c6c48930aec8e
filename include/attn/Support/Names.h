//===- Names.h - The names a user knows arguments and results by ------------===//
//
// `--input=q=FILE`, the generated header and argument errors all speak of an argument by the name it has in the spec.
// MLIR drops SSA names after parsing, so `parseSpec` writes them into the IR as the argument attribute `attn.name`; a
// front end that builds a module in memory may set that attribute itself.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SUPPORT_NAMES_H
#define ATTN_SUPPORT_NAMES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>
#include <string>

namespace attn {

/// The argument (and result) attribute that holds a name.
constexpr llvm::StringLiteral kNameAttr = "attn.name";

/// Parses a spec, text or bytecode, and records the SSA names of all function arguments as `attn.name`. A mask that
/// provably keeps nothing is an error. Errors go to the context's diagnostic handler and give a null module.
mlir::OwningOpRef<mlir::ModuleOp> parseSpec(const std::shared_ptr<llvm::SourceMgr> &source, mlir::MLIRContext *context);

/// One C identifier per argument, all different: its `attn.name`, else `argN`.
llvm::SmallVector<std::string> getArgumentNames(mlir::func::FuncOp func);

/// One C identifier per result, all different and different from the arguments' names: its `attn.name`, else `lse` for
/// a log-sum-exp result of an attention op and `out` for anything else, numbered (`out0`, `out1`) where there are
/// several.
llvm::SmallVector<std::string> getResultNames(mlir::func::FuncOp func);

/// "N" for "queries": the letter that stands for an extent in headers and options; empty where it has none.
llvm::StringRef getExtentLetter(llvm::StringRef extent);

/// Of the GPU kernel of a task function, and of the one that merges its partial results: PTX knows no dots in names.
std::string getDeviceName(llvm::StringRef task);
std::string getMergeName(llvm::StringRef deviceName);
/// Attributes of a module that hold its GPU code for the object: strings.
constexpr llvm::StringLiteral kPTXAttr = "attn.ptx", kCubinAttr = "attn.cubin";
/// Marks a task function with tile instructions of a CPU.
constexpr llvm::StringLiteral kAMXAttr = "attn.amx";

} // namespace attn

#endif // ATTN_SUPPORT_NAMES_H
