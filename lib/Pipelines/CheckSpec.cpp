//===- CheckSpec.cpp - Whether the functions of a spec can be compiled -----===//
#include "CheckSpec.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Entry/Interface.h"
#include "attn/Pipelines/Pipelines.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace attn {

/// Functions that the code of an object calls (docs/Flow.md, "cpu"): one of these names would make it call itself.
static constexpr StringRef kCalled[] = {"malloc",      "calloc", "realloc", "aligned_alloc", "free",   "memcpy",
                                        "memmove",     "memset", "memcmp",  "snprintf",      "dlopen", "dlsym",
                                        "sched_yield", "strcmp", "strcspn", "strlen",        "strstr"};

static LogicalResult checkName(func::FuncOp func) {
  StringRef name = func.getName();
  if (llvm::is_contained(kCalled, name) || name.starts_with("attn_") || name.starts_with("__"))
    return func.emitError() << "'" << name
                            << "' cannot be the name of a compiled function: its own code may call another "
                            << "of that name; rename it";
  return success();
}

/// Every function gives three; those of all functions differ.
static LogicalResult checkEntries(ModuleOp spec) {
  llvm::StringMap<func::FuncOp> owners;
  for (auto func : spec.getOps<func::FuncOp>()) {
    if (func.isPrivate())
      continue;
    for (const std::string &name : entryNames(func)) {
      auto [owner, isNew] = owners.try_emplace(name, func);
      if (!isNew)
        return func.emitError() << "'" << func.getName() << "' and '" << owner->second.getName()
                                << "' would both be compiled to a function '" << name << "'; rename one";
    }
  }
  return success();
}

LogicalResult checkSpec(ModuleOp spec) {
  bool any = false;
  for (auto func : spec.getOps<func::FuncOp>()) {
    if (func.isPrivate())
      continue;
    any = true;
    WalkResult found = func.walk([](CompiledOpInterface) { return WalkResult::interrupt(); });
    if (!found.wasInterrupted())
      return func.emitError() << "'" << func.getName()
                              << "' holds no op of the attn dialect, so there is nothing to compile; leave it out or "
                                 "make it private";
    if (failed(FunctionInterface::of(func)) || failed(checkName(func)))
      return failure();
  }
  if (!any)
    return spec.emitError("holds no public function, so there is nothing to compile");
  return checkEntries(spec);
}

} // namespace attn
