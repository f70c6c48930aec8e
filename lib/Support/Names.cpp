//===- Names.cpp - The names a user knows arguments and results by ----------===//
#include "attn/Support/Names.h"
#include "attn/Dialect/Attn/IR/EmptyMask.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using llvm::SmallVector;
using llvm::StringRef;

namespace attn {
namespace {

/// Words that name nothing in a C or C++ header.
bool isReserved(StringRef name) {
  static const llvm::StringSet<> words = {
      "auto",     "bool",     "break",    "case",     "char",   "class",    "const",  "continue", "default",
      "delete",   "do",       "double",   "else",     "enum",   "explicit", "export", "extern",   "false",
      "float",    "for",      "friend",   "goto",     "if",     "inline",   "int",    "long",     "new",
      "operator", "private",  "public",   "register", "return", "short",    "signed", "sizeof",   "static",
      "struct",   "switch",   "template", "this",     "throw",  "true",     "try",    "typedef",  "typename",
      "union",    "unsigned", "using",    "virtual",  "void",   "volatile", "while",  "plan"};
  return words.contains(name);
}

/// `name` as a C identifier that `taken` does not hold yet; it is added there.
std::string makeIdentifier(StringRef name, llvm::StringSet<> &taken) {
  std::string id;
  for (char c : name)
    id += llvm::isAlnum(c) ? c : '_';
  if (id.empty() || llvm::isDigit(id.front()))
    id = "arg" + id;
  if (isReserved(id))
    id += '_';
  std::string unique = id;
  for (unsigned n = 1; !taken.insert(unique).second; ++n)
    unique = id + "_" + std::to_string(n);
  return unique;
}

/// What the source calls the argument `range` defines: the text behind the `%`.
StringRef getSourceName(SMRange range) {
  if (!range.isValid())
    return {};
  StringRef text(range.Start.getPointer(), range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return text;
}

void recordArgumentNames(ModuleOp module, const AsmParserState &state) {
  module.walk([&](func::FuncOp func) {
    const AsmParserState::BlockDefinition *block = func.isExternal() ? nullptr : state.getBlockDef(&func.front());
    if (!block)
      return;
    for (auto [index, argument] : llvm::enumerate(block->arguments)) {
      StringRef name = getSourceName(argument.loc);
      if (!name.empty() && index < func.getNumArguments() && !func.getArgAttr(index, kNameAttr))
        func.setArgAttr(index, kNameAttr, StringAttr::get(func.getContext(), name));
    }
  });
}

/// A block holding one module is that module; anything else is wrapped, as MLIR's own parser does.
OwningOpRef<ModuleOp> takeModule(Block &block, Location loc, MLIRContext *context) {
  if (llvm::hasSingleElement(block))
    if (auto module = dyn_cast<ModuleOp>(block.front())) {
      module->remove();
      return module;
    }
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  module->getBody()->getOperations().splice(module->getBody()->begin(), block.getOperations());
  return failed(verify(*module)) ? OwningOpRef<ModuleOp>() : std::move(module);
}

/// Also in a context that does not know our dialect, where an op is only a name.
bool isAttention(Operation *op) { return op->getName().getStringRef() == AttentionOp::getOperationName(); }

bool isLogSumExp(Value value) {
  auto result = dyn_cast<OpResult>(value);
  if (!result || result.getResultNumber() != 1)
    return false;
  StringRef op = result.getOwner()->getName().getStringRef();
  return isAttention(result.getOwner()) || op == "attn.merge" || op == "attn_tile.launch";
}

/// What a result is called before numbering.
StringRef getResultStem(func::FuncOp func, func::ReturnOp terminator, unsigned index) {
  if (auto name = func.getResultAttrOfType<StringAttr>(index, kNameAttr))
    return name.getValue();
  return terminator && isLogSumExp(terminator.getOperand(index)) ? "lse" : "out";
}

} // namespace

/// The module, with the names of its arguments where it is text.
static OwningOpRef<ModuleOp> parseModule(const std::shared_ptr<llvm::SourceMgr> &source, MLIRContext *context) {
  const llvm::MemoryBuffer *buffer = source->getMemoryBuffer(source->getMainFileID());
  if (isBytecode(buffer->getMemBufferRef()))
    return parseSourceFile<ModuleOp>(source, ParserConfig(context));
  Block block;
  AsmParserState state;
  if (failed(parseAsmSourceFile(*source, &block, ParserConfig(context), &state)))
    return nullptr;
  Location start = FileLineColLoc::get(context, buffer->getBufferIdentifier(), 0, 0);
  OwningOpRef<ModuleOp> module = takeModule(block, start, context);
  if (module)
    recordArgumentNames(*module, state);
  return module;
}

OwningOpRef<ModuleOp> parseSpec(const std::shared_ptr<llvm::SourceMgr> &source, MLIRContext *context) {
  OwningOpRef<ModuleOp> module = parseModule(source, context);
  bool empty = false;
  if (module)
    module->walk([&](Operation *op) {
      if (op->isRegistered() && isAttention(op))
        empty |= failed(checkKeepsSomething(cast<AttentionOp>(op)));
    });
  return empty ? nullptr : std::move(module);
}

SmallVector<std::string> getArgumentNames(func::FuncOp func) {
  SmallVector<std::string> names;
  llvm::StringSet<> taken;
  for (unsigned index = 0; index < func.getNumArguments(); ++index) {
    auto name = func.getArgAttrOfType<StringAttr>(index, kNameAttr);
    names.push_back(makeIdentifier(name ? name.str() : "arg" + std::to_string(index), taken));
  }
  return names;
}

SmallVector<std::string> getResultNames(func::FuncOp func) {
  func::ReturnOp terminator = func.isExternal() ? nullptr : dyn_cast<func::ReturnOp>(func.back().getTerminator());
  SmallVector<StringRef> stems;
  llvm::StringMap<unsigned> count, next;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    stems.push_back(getResultStem(func, terminator, index));
    ++count[stems.back()];
  }
  llvm::StringSet<> taken;
  for (const std::string &name : getArgumentNames(func))
    taken.insert(name);
  SmallVector<std::string> names;
  for (StringRef stem : stems)
    names.push_back(makeIdentifier(count[stem] > 1 ? (stem + llvm::Twine(next[stem]++)).str() : stem.str(), taken));
  return names;
}

StringRef getExtentLetter(StringRef extent) {
  return llvm::StringSwitch<StringRef>(extent)
      .Case("batch", "B")
      .Cases({"heads", "query heads"}, "H")
      .Case("key/value heads", "Hkv")
      .Case("groups", "G")
      .Cases({"tokens", "queries"}, "N")
      .Cases({"keys", "output tokens"}, "M")
      .Case("rows", "W")
      .Cases({"head_dim", "output head_dim"}, "D")
      .Case("output heads", "G")
      .Case("value head_dim", "Dv")
      .Case("features", "F")
      .Case("distances", "L")
      .Default("");
}

std::string getDeviceName(StringRef task) {
  std::string name = task.str();
  std::replace(name.begin(), name.end(), '.', '$');
  return name;
}

std::string getMergeName(StringRef deviceName) { return (deviceName + "$merge").str(); }

} // namespace attn
