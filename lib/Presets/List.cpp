//===- List.cpp - Tell the presets -------------------------------------------===//
#include "attn/Presets/Presets.h"
#include "attn/Support/Errors.h"
#include "attn/Support/Names.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace attn {
namespace {

/// "longformer(q: ?x?x?x64xf32, ...) -> ?x?x?x64xf32" for every function of the spec.
void printFunctions(ModuleOp module, llvm::raw_ostream &os) {
  auto shape = [](Type type) {
    std::string text = llvm::formatv("{0}", type).str();
    llvm::StringRef inner = text;
    return inner.consume_front("tensor<") ? inner.drop_back().str() : text;
  };
  for (auto func : module.getOps<func::FuncOp>()) {
    os << "  " << func.getName() << "(";
    llvm::interleaveComma(llvm::zip_equal(getArgumentNames(func), func.getArgumentTypes()), os,
                          [&](auto argument) { os << std::get<0>(argument) << ": " << shape(std::get<1>(argument)); });
    os << ") -> ";
    llvm::interleaveComma(func.getResultTypes(), os, [&](Type type) { os << shape(type); });
    os << "\n";
  }
}

void printSettings(const Preset &preset, llvm::raw_ostream &os) {
  for (const Setting &setting : preset.settings) {
    os << "  --set=" << setting.name << "=" << setting.initial;
    for (llvm::StringRef word : llvm::drop_begin(setting.words, !setting.words.empty()))
      os << "|" << word;
    os << "  " << setting.meaning << "\n";
  }
}

} // namespace

llvm::Error printPresets(MLIRContext *context, llvm::raw_ostream &os) {
  for (auto &[name, preset] : getPresets()) {
    os << name << ": " << preset.source << "\n  " << preset.kind << "; " << preset.complexity << "; "
       << (preset.decodes ? "decodes" : "does not decode") << "\n";
    llvm::Expected<std::string> text = writePreset({name, {}});
    if (!text)
      return text.takeError();
    auto source = std::make_shared<llvm::SourceMgr>();
    source->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(*text, "preset:" + name), llvm::SMLoc());
    OwningOpRef<ModuleOp> module = parseSpec(source, context);
    if (!module)
      return makeError("the preset ", name, " does not parse");
    printFunctions(*module, os);
    printSettings(preset, os);
    os << "\n";
  }
  return llvm::Error::success();
}

} // namespace attn
