//===- Render.cpp - A case as text --------------------------------------===//
#include "Case.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>
#include <random>

using llvm::raw_ostream;
using llvm::StringRef;

namespace attn::fuzz {
namespace {

std::string typeOf(const Case &drawn, const std::vector<Extent> &dims, StringRef element) {
  std::string type = "tensor<";
  for (const Extent &extent : dims) {
    bool fixed = extent.variable < 0 || drawn.isStatic[extent.variable];
    type += (fixed ? std::to_string(extent.get(drawn.variants.front().variables)) : "?") + "x";
  }
  return type + element.str() + ">";
}

/// Writes a region, one op a line.
class RegionWriter {
public:
  RegionWriter(raw_ostream &os) : os(os) {}

  /// Writes the ops of a tree and answers the name of its value.
  std::string write(const Expression &e) {
    if (e.isPlace())
      return place(e.text[1]);
    if (e.blocked)
      return writeBlocked(e);
    std::vector<std::string> operands;
    for (const Expression &operand : e.operands)
      operands.push_back(write(operand));
    std::string line;
    for (size_t at = 0; at < e.text.size(); ++at)
      if (e.text[at] == '$')
        line += operands[e.text[++at] - '0'];
      else if (e.text[at] == '@')
        line += place(e.text[++at]);
      else
        line += e.text[at];
    return emit(line);
  }

private:
  std::string emit(const std::string &line) {
    std::string name = "%x" + std::to_string(count++);
    os << "      " << name << " = " << line << "\n";
    return name;
  }

  std::string place(char letter) {
    return letter == 'i' && !rowBlock.empty()   ? rowBlock
           : letter == 'j' && !keyBlock.empty() ? keyBlock
                                                : std::string("%") + letter;
  }

  std::string writeBlocked(const Expression &e) {
    std::string size = emit("arith.constant " + std::to_string(e.blocked) + " : index");
    rowBlock = emit("arith.floordivsi %i, " + size + " : index");
    keyBlock = emit("arith.floordivsi %j, " + size + " : index");
    std::string result = write(e.operands.front());
    rowBlock = keyBlock = "";
    return result;
  }

  raw_ostream &os;
  unsigned count = 0;
  std::string rowBlock, keyBlock;
};

std::string renderSugar(const Expression &e) {
  if (e.blocked)
    return "blocked(" + std::to_string(e.blocked) + ", " + renderSugar(e.operands.front()) + ")";
  if (StringRef(e.text).starts_with("attn."))
    return e.sugar;
  std::string text;
  for (size_t at = 0; at < e.sugar.size(); ++at)
    if (e.sugar[at] == '$')
      text += renderSugar(e.operands[e.sugar[++at] - '0']);
    else
      text += e.sugar[at];
  return text;
}

void renderRegion(raw_ostream &os, StringRef name, StringRef arguments, llvm::ArrayRef<const Expression *> parts) {
  os << "\n    " << name << " {\n    ^bb0(" << arguments << "):\n";
  RegionWriter writer(os);
  std::string results, types;
  for (const Expression *part : parts) {
    results += (results.empty() ? "" : ", ") + writer.write(*part);
    types += (types.empty() ? "" : ", ") + part->type;
  }
  os << "      attn.yield " << results << " : " << types << "\n    }";
}

void renderMask(raw_ostream &os, const Attention &op) {
  llvm::SmallVector<const Expression *> parts{&*op.mask};
  if (op.counts())
    parts = {&op.mask->operands[0], &op.mask->operands[1]};
  if (!op.sugar)
    return renderRegion(os, "mask", "%b: index, %h: index, %i: index, %j: index", parts);
  os << (op.counts() ? " mask counted(" : " mask(") << renderSugar(*parts.front());
  if (op.counts())
    os << " or " << renderSugar(*parts.back());
  os << ")";
}

void renderOp(raw_ostream &os, const Attention &op) {
  os << "  %" << op.output << (op.lse ? ", %lse_" + op.output : "") << " = attn.attention %" << op.query << ", %"
     << op.key << ", %" << op.value;
  if (!op.queryRows.empty())
    os << " query_rows(%" << op.queryRows << " : !" << op.queryRows << ")";
  if (!op.keyRows.empty())
    os << " key_rows(%" << op.keyRows << " : !" << op.keyRows << ")";
  if (!op.scale.empty())
    os << " scale(" << op.scale << ")";
  if (op.bottomRight)
    os << " align(bottom_right)";
  if (!op.joined.empty())
    os << " join(%" << op.joined << ", %lse_" << op.joined << " : !" << op.joined << ", !lse_" << op.joined << ")";
  if (!op.sink.empty())
    os << " sink(%" << op.sink << " : !" << op.sink << ")";
  if (!op.table.empty())
    os << " relative(%" << op.table << (op.bias.empty() ? "" : ", %" + op.bias) << " : !" << op.table
       << (op.bias.empty() ? "" : ", !" + op.bias) << ")";
  if (op.score)
    renderRegion(os, "score", "%s: f32, %b: index, %h: index, %i: index, %j: index", &*op.score);
  if (op.mask)
    renderMask(os, op);
  os << " : !" << op.query << ", !" << op.key << ", !" << op.value << " -> !" << op.output;
  os << (op.lse ? ", !lse_" + op.output : "") << "\n";
}

void renderElement(raw_ostream &os, const Elements &elements, size_t at, bool isFloat) {
  if (!isFloat)
    os << elements.integers[at];
  else if (std::isfinite(elements.floats[at]))
    os << llvm::format("%.9e", elements.floats[at]);
  else
    os << (std::isnan(elements.floats[at]) ? "0.0" : elements.floats[at] > 0 ? "3.0e38" : "-3.0e38");
}

void renderDense(raw_ostream &os, const Elements &elements, llvm::ArrayRef<int64_t> shape, size_t &at, bool isFloat) {
  if (shape.empty())
    return renderElement(os, elements, at++, isFloat);
  os << "[";
  for (int64_t k = 0; k < shape.front(); ++k) {
    os << (k ? ", " : "");
    renderDense(os, elements, shape.drop_front(), at, isFloat);
  }
  os << "]";
}

void renderConstant(raw_ostream &os, const Tensor &tensor) {
  llvm::SmallVector<int64_t> shape;
  for (const Extent &extent : tensor.dims)
    shape.push_back(extent.get({}));
  size_t at = 0;
  os << "  %" << tensor.name << " = arith.constant dense<";
  renderDense(os, fill(tensor, shape, tensor.seed), shape, at, StringRef(tensor.element).contains('f'));
  os << "> : !" << tensor.name << "\n";
}

} // namespace

int64_t Extent::get(llvm::ArrayRef<int64_t> variables) const {
  if (variable < 0)
    return more;
  return (variables[variable] * multiple + divisor - 1) / divisor + more;
}

bool Expression::hasSugar() const {
  if (blocked)
    return operands.front().hasSugar();
  if (sugar.empty())
    return false;
  return llvm::StringRef(text).starts_with("attn.") ||
         llvm::all_of(operands, [](const Expression &e) { return e.text == "arith.constant true" || e.hasSugar(); });
}

const Tensor *Case::find(StringRef name) const {
  for (const Tensor &tensor : tensors)
    if (tensor.name == name)
      return &tensor;
  return nullptr;
}

std::string render(const Case &drawn) {
  std::string text;
  llvm::raw_string_ostream os(text);
  std::string arguments, results, types;
  auto add = [](std::string &list, const std::string &entry) { list += (list.empty() ? "" : ", ") + entry; };
  for (const Tensor &tensor : drawn.tensors) {
    os << "!" << tensor.name << " = " << typeOf(drawn, tensor.dims, tensor.element) << "\n";
    if (!tensor.constant)
      add(arguments, "%" + tensor.name + ": !" + tensor.name);
  }
  for (const Attention &op : drawn.ops) {
    os << "!" << op.output << " = " << typeOf(drawn, {op.batch, op.queryHeads, op.queries, op.valueDim}, drawn.element)
       << "\n";
    if (op.returned)
      add(results, "%" + op.output), add(types, "!" + op.output);
    if (!op.lse)
      continue;
    os << "!lse_" << op.output << " = " << typeOf(drawn, {op.batch, op.queryHeads, op.queries}, "f32") << "\n";
    add(results, "%lse_" + op.output), add(types, "!lse_" + op.output);
  }
  os << "func.func @f(" << arguments << ") -> (" << types << ") {\n";
  for (const Tensor &tensor : drawn.tensors)
    if (tensor.constant)
      renderConstant(os, tensor);
  for (const Attention &op : drawn.ops)
    renderOp(os, op);
  os << "  return " << results << " : " << types << "\n}\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

static double drawSpecial(std::mt19937_64 &random) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  static const double values[] = {-inf, -inf, -3.4028234e38, -1e4, -1e30, 0, 0, 1, -1, 0.5, 20, -80, inf, 1e4};
  return values[random() % std::size(values)];
}

static double drawNormal(std::mt19937_64 &random) {
  auto uniform = [&] { return (double(random() >> 11) + 0.5) * 0x1p-53; };
  return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * M_PI * uniform());
}

static int64_t drawExtreme(std::mt19937_64 &random, unsigned bits) {
  int64_t most = bits >= 64 ? INT64_MAX : (int64_t(1) << (bits - 1)) - 1;
  int64_t values[] = {most, -most - 1, most - 1, 0, -1, 1, most / 2};
  return values[random() % std::size(values)];
}

Elements fill(const Tensor &tensor, llvm::ArrayRef<int64_t> shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  Elements elements;
  int64_t count = 1, columns = shape.empty() ? 1 : shape.back();
  for (int64_t extent : shape)
    count *= extent;
  // Now and then one kind of special number alone: all -inf, all -3.4e38.
  double alone = random() % 4 == 0 ? drawSpecial(random) : std::nan("");
  int64_t document = 0;
  unsigned bits = tensor.element == "index" ? 64 : std::atoi(tensor.element.c_str() + 1);
  for (int64_t at = 0; at < count; ++at)
    switch (tensor.filling) {
    case Filling::Normal:
      elements.floats.push_back(tensor.factor * drawNormal(random));
      break;
    case Filling::Special:
      elements.floats.push_back(random() % 3 && !std::isnan(alone) ? alone : drawSpecial(random));
      break;
    case Filling::Documents:
      document = at % columns == 0 ? 0 : document + (random() % 12 == 0);
      elements.integers.push_back(document);
      break;
    case Filling::Uniform:
      elements.integers.push_back(tensor.least + int64_t(random() % uint64_t(tensor.most - tensor.least + 1)));
      break;
    case Filling::Extreme:
      elements.integers.push_back(drawExtreme(random, bits == 1 ? 2 : bits));
      break;
    }
  if (tensor.element == "i1")
    for (int64_t &value : elements.integers)
      value &= 1;
  return elements;
}

} // namespace attn::fuzz
