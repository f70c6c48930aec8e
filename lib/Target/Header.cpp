//===- Header.cpp - The C header of a compiled spec -----------------------===//
#include "attn/Target/Header.h"

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Entry/Interface.h"
#include "attn/Pattern/Explain.h"
#include "attn/Support/Names.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using llvm::formatv;

namespace attn {
namespace {

// The text of attn/Runtime/Attn.h, whose guard lets several generated headers and Attn.h itself stand together.
constexpr const char *kRuntimeHeader =
#include "RuntimeHeader.inc"
    ;

constexpr size_t kLineLength = 100;

/// "float32": the element type as DLPack and NumPy call it.
std::string getDTypeName(Type type) {
  if (type.isBF16())
    return "bfloat16";
  if (isa<FloatType>(type))
    return "float" + std::to_string(type.getIntOrFloatBitWidth());
  if (type.isInteger(1))
    return "bool";
  return "int" + std::to_string(type.isIndex() ? 64 : type.getIntOrFloatBitWidth());
}

/// The letters for the extents of a function, and what they stand for.
class Letters {
public:
  explicit Letters(const FunctionInterface &interface) {
    for (const SymbolInfo &symbol : interface.symbols)
      letters.push_back(makeLetter(symbol.name));
  }

  std::string get(int64_t dim) const { return dim >= 0 ? std::to_string(dim) : letters[-dim - 1]; }

  /// "B batch, N queries"; of the letters that `tensors` use.
  std::string explain(ArrayRef<TensorInfo> tensors) const {
    std::string text;
    llvm::StringMap<bool> seen;
    for (const TensorInfo &tensor : tensors)
      for (int64_t dim : tensor.dims) {
        auto it = dim < 0 ? meanings.find(letters[-dim - 1]) : meanings.end();
        if (it != meanings.end() && seen.try_emplace(it->first, true).second)
          text += formatv("{0}{1} {2}", text.empty() ? "" : ", ", it->first, it->second).str();
      }
    return text;
  }

private:
  std::string makeLetter(StringRef meaning) {
    StringRef stem = getExtentLetter(meaning);
    if (stem.empty())
      return "any";
    std::string letter = stem.str();
    for (unsigned n = 2; meanings.count(letter); ++n)
      letter = stem.str() + std::to_string(n);
    meanings[letter] = meaning.str();
    return letter;
  }

  SmallVector<std::string> letters;
  std::map<std::string, std::string> meanings;
};

class FunctionWriter {
public:
  FunctionWriter(func::FuncOp func, FunctionInterface interface, bool device, raw_ostream &os)
      : func(func), interface(std::move(interface)), letters(this->interface), device(device), os(os) {}

  void write() {
    writeComment();
    writeDeclaration("", "", /*withOutputs=*/true);
    os << "\n";
    writePlanComment();
    writeDeclaration("_plan", "attn_plan **plan", /*withOutputs=*/false);
    writeDeclaration("_run", "const attn_plan *plan", /*withOutputs=*/true);
    os << "\n";
  }

private:
  ArrayRef<TensorInfo> inputs() const { return ArrayRef(interface.tensors).take_front(interface.numInputs); }
  ArrayRef<TensorInfo> outputs() const {
    return ArrayRef(interface.tensors).slice(interface.numInputs, interface.numArguments - interface.numInputs);
  }

  void writeDeclaration(StringRef suffix, StringRef plan, bool withOutputs) {
    SmallVector<std::string> parameters;
    if (!plan.empty())
      parameters.push_back(plan.str());
    for (const TensorInfo &tensor : inputs())
      parameters.push_back("const DLTensor *" + tensor.name);
    for (const TensorInfo &tensor : withOutputs ? outputs() : ArrayRef<TensorInfo>())
      parameters.push_back("DLTensor *" + tensor.name);
    if (device)
      parameters.push_back("void *" + streamName());
    std::string line = "int " + interface.name + suffix.str() + "(";
    size_t indent = line.size();
    for (auto [n, parameter] : llvm::enumerate(parameters)) {
      std::string end = n + 1 == parameters.size() ? ");" : ",";
      if (n && line.size() + parameter.size() + end.size() >= kLineLength) {
        os << line << "\n";
        line.assign(indent - 1, ' ');
      }
      line += (n ? " " : "") + parameter + end;
    }
    os << line << "\n";
  }

  /// A tensor may have the name already.
  std::string streamName() const {
    std::string name = "stream";
    auto taken = [&](const TensorInfo &tensor) { return tensor.name == name; };
    while (llvm::any_of(ArrayRef(interface.tensors).take_front(interface.numArguments), taken))
      name += "_";
    return name;
  }

  void writeComment() {
    os << "/* " << interface.name << "\n *\n";
    func.walk([&](AttentionOp op) {
      std::string mask = describeMask(op);
      os << " * Attention" << (mask.empty() ? std::string(" without a mask") : " with the mask: " + escape(mask))
         << (op.getScoreBlock() ? ", and a score function" : "") << "\n";
    });
    os << " *\n";
    for (const TensorInfo &tensor : inputs())
      writeTensor("in ", tensor);
    for (const TensorInfo &tensor : outputs())
      writeTensor("out", tensor);
    os << " *\n";
    writeExtents();
    writeStrides();
    os << " */\n";
  }

  void writeTensor(const char *direction, const TensorInfo &tensor) {
    size_t width = 0;
    for (const TensorInfo &other : ArrayRef(interface.tensors).take_front(interface.numArguments))
      width = std::max(width, other.name.size());
    std::string shape;
    for (int64_t dim : tensor.dims)
      shape += (shape.empty() ? "" : ", ") + letters.get(dim);
    os << " *   " << direction << "  " << llvm::left_justify(tensor.name, width) << "  "
       << getDTypeName(tensor.type.getElementType()) << " [" << shape << "]";
    if (isa<OpResult>(tensor.value) && cast<OpResult>(tensor.value).getResultNumber() == 1)
      os << "  log-sum-exp of the scores, natural; -inf where nothing is kept";
    os << "\n";
  }

  void writeExtents() {
    std::string meanings = letters.explain(ArrayRef(interface.tensors).take_front(interface.numArguments));
    if (!meanings.empty())
      writeText("Extents: " + meanings + ". One letter is one number in all tensors" + headRule() + ".");
  }

  /// Where query heads share key/value heads, how.
  std::string headRule() const {
    std::string rule;
    func->walk([&](AttentionOp op) {
      const TensorInfo &query = interface.tensors[*interface.find(op.getQueryRows())];
      const TensorInfo &key = interface.tensors[*interface.find(op.getKeyRows())];
      if (query.dims[1] != key.dims[1] && rule.empty() && (query.dims[1] < 0 || key.dims[1] < 0))
        rule = formatv("; {0} is a multiple of {1}", letters.get(query.dims[1]), letters.get(key.dims[1])).str();
    });
    return rule;
  }

  void writeStrides() {
    SmallVector<StringRef> contiguous, free;
    for (const TensorInfo &tensor : ArrayRef(interface.tensors).take_front(interface.numArguments))
      if (tensor.type.getRank() > 0)
        (tensor.innerContiguous ? contiguous : free).push_back(tensor.name);
    writeText("Strides: null is row-major. The last dimension of " + llvm::join(contiguous, ", ") +
              " must have stride 1; all others are free" +
              (free.empty() ? "." : ", as are those of " + llvm::join(free, ", ") + "."));
  }

  /// Lines of a comment.
  void writeText(StringRef text) {
    std::string line;
    SmallVector<StringRef> words;
    text.split(words, ' ');
    for (StringRef word : words) {
      if (!line.empty() && line.size() + word.size() + 4 >= kLineLength) {
        os << " *" << line << "\n";
        line = " ";
      }
      line += " " + word.str();
    }
    os << " *" << line << "\n";
  }

  void writePlanComment() {
    os << "/* The two halves of " << interface.name
       << ": what the mask keeps, for the extents and captured tensors of\n"
       << " * these inputs, and a call that uses it. One plan serves any number of calls (layers) and threads;\n"
       << " * give it back with attn_plan_free. */\n";
  }

  static std::string escape(std::string text) {
    for (size_t at; (at = text.find("*/")) != std::string::npos;)
      text.replace(at, 2, "* /");
    return text;
  }

  func::FuncOp func;
  FunctionInterface interface;
  Letters letters;
  bool device;
  raw_ostream &os;
};

/// What holds for all functions of an object for a GPU.
constexpr const char *kDeviceComment =
    R"(/* Tensors are in the memory of one GPU: their device is kDLCUDA and its number. The kernels were compiled for
 * {0}{1}.
 * `stream`, the last argument, is a CUstream (cudaStream_t), null for the default stream: a function returns once
 * its kernels are enqueued there, and outputs count when the stream has come that far. NAME_plan waits for its own
 * copies; so does NAME. The CUDA driver is found when the first function is called. The context that is current in
 * the calling thread is used, else the primary context of the tensors' GPU becomes current. */

)";

/// Code of sm_80 runs on all later chips; code of sm_90a on no other.
std::string describeReach(StringRef chip) {
  return chip.ends_with("a") ? ", and run there alone" : "; the driver compiles them for later chips";
}

std::string makeGuard(StringRef name) {
  std::string guard = "ATTN_SPEC_";
  for (char c : name)
    guard += llvm::isAlnum(c) ? llvm::toUpper(c) : '_';
  return guard + "_H";
}

} // namespace

LogicalResult writeHeader(ModuleOp spec, StringRef name, StringRef chip, raw_ostream &os) {
  std::string functions;
  llvm::raw_string_ostream body(functions);
  for (auto func : spec.getOps<func::FuncOp>()) {
    if (func.isPrivate())
      continue;
    FailureOr<FunctionInterface> interface = FunctionInterface::of(func);
    if (failed(interface))
      return failure();
    FunctionWriter(func, std::move(*interface), /*device=*/!chip.empty(), body).write();
  }
  if (functions.empty())
    return spec.emitError("holds no public function, so there is nothing to declare");
  std::string guard = makeGuard(name), device;
  if (!chip.empty())
    device = formatv(kDeviceComment, chip, describeReach(chip));
  os << "/* Attention functions of the spec " << name
     << ", compiled ahead of time by attn-compile. Link with its object."
     << " */\n#ifndef " << guard << "\n#define " << guard << "\n\n#include <dlpack/dlpack.h>\n\n"
     << kRuntimeHeader << "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
     << device << functions << "#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
  return success();
}

} // namespace attn
