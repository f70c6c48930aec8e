//===- Spec.h - How the tools start, read their spec and report -----------===//
#ifndef ATTN_TOOLS_SPEC_H
#define ATTN_TOOLS_SPEC_H

#include "attn/Register.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"

namespace attn::tools {

/// libLLVM.so brings options of its own tools; one of them has the name of one of ours.
inline void removeForeignOptions() {
  if (llvm::cl::Option *other = llvm::cl::getRegisteredOptions().lookup("threads"))
    other->removeArgument();
}

/// For failures that diagnostics have told.
inline llvm::Error toldAlready() { return llvm::createStringError(llvm::inconvertibleErrorCode(), ""); }

/// Hands the spec in a file to `use`, in a context of all dialects whose diagnostics are told at their place in the
/// file.
inline llvm::Error withSpec(llvm::StringRef path, llvm::function_ref<llvm::Error(mlir::ModuleOp)> use) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = mlir::openInputFile(path, &message);
  if (!file)
    return makeError(message);
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  mlir::SourceMgrDiagnosticHandler handler(*source, &context, llvm::errs());
  mlir::OwningOpRef<mlir::ModuleOp> module = parseSpec(source, &context);
  return module ? use(*module) : toldAlready();
}

/// The exit status of a tool that ends with `error`, which is told.
inline int finish(llvm::StringRef tool, llvm::Error error) {
  if (!error)
    return 0;
  if (std::string message = llvm::toString(std::move(error)); !message.empty())
    llvm::WithColor::error(llvm::errs(), tool) << message << "\n";
  return 1;
}

} // namespace attn::tools

#endif // ATTN_TOOLS_SPEC_H
