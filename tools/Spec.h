//===- Spec.h - How the tools start, read their spec and report -----------===//
#ifndef ATTN_TOOLS_SPEC_H
#define ATTN_TOOLS_SPEC_H

#include "Options.h"
#include "attn/Pipelines/Pipelines.h"
#include "attn/Register.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/InitAllDialects.h"
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

/// A context of all dialects.
inline std::unique_ptr<mlir::MLIRContext> makeContext() {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  attn::registerAllDialects(registry);
  attn::registerAllExtensions(registry);
  auto context = std::make_unique<mlir::MLIRContext>(registry);
  context->printOpOnDiagnostic(false);
  return context;
}

/// Hands the spec to `use`; diagnostics are told at their place in it. Where one of them was an error the answer is
/// one, whatever `use` made of it.
inline llvm::Error withSpec(const SpecOptions &options, llvm::function_ref<llvm::Error(mlir::ModuleOp)> use) {
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> text = options.open();
  if (!text)
    return text.takeError();
  auto source = std::make_shared<llvm::SourceMgr>();
  source->AddNewSourceBuffer(std::move(*text), llvm::SMLoc());
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  mlir::SourceMgrDiagnosticHandler handler(*source, context.get(), llvm::errs());
  bool anyError = false;
  mlir::ScopedDiagnosticHandler watch(context.get(), [&](mlir::Diagnostic &diagnostic) {
    anyError |= diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    return mlir::failure(); // the handler above tells it
  });
  mlir::OwningOpRef<mlir::ModuleOp> module = parseSpec(source, context.get());
  if (!module || mlir::failed(convertToAttn(*module)))
    return toldAlready();
  if (llvm::Error error = use(*module))
    return error;
  return anyError ? toldAlready() : llvm::Error::success();
}

/// Tells all presets.
inline llvm::Error tellPresets() {
  registerAllPresets();
  return printPresets(makeContext().get(), llvm::outs());
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
