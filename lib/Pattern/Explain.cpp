//===- Explain.cpp - How a mask is read, in words -------------------------===//

#include "attn/Pattern/Explain.h"
#include "MaskAnalysis.h"
#include "attn/Pattern/Captures.h"
#include "attn/Support/Names.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace attn;
using llvm::formatv;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Where the bracket that opens at `open` is closed.
static size_t findClosing(StringRef text, size_t open) {
  int64_t depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(';
    depth -= text[at] == ')';
    if (depth == 0)
      return at;
  }
  return text.size();
}

/// What the spec calls the value that is printed as `%arg3`.
static std::string getPrintedName(AttentionOp op, StringRef printed) {
  unsigned number;
  auto func = op->getParentOfType<func::FuncOp>();
  if (func && printed.starts_with("arg") && !printed.drop_front(3).getAsInteger(10, number) &&
      number < func.getNumArguments())
    return getArgumentNames(func)[number];
  return printed.str();
}

/// A short form as a person writes it in prose: arguments by name, types left out.
static std::string tidy(AttentionOp op, StringRef text) {
  std::string tidied;
  while (!text.empty()) {
    size_t percent = text.find('%');
    tidied += text.substr(0, percent);
    if (percent == StringRef::npos)
      break;
    text = text.substr(percent + 1);
    StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '#'; });
    text = text.substr(name.size());
    tidied += '%';
    tidied += getPrintedName(op, name);
    if (text.consume_front(" : tensor")) {
      int64_t depth = 0;
      size_t at = 0;
      do {
        depth += text[at] == '<';
        depth -= text[at] == '>';
      } while (++at < text.size() && depth > 0);
      text = text.substr(at);
    }
  }
  return tidied;
}

static std::string printMask(AttentionOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(os, OpPrintingFlags().useLocalScope().elideLargeElementsAttrs());
  StringRef clause = op.isCounted() ? " mask counted(" : " mask(";
  size_t open = text.find(clause);
  if (open == std::string::npos)
    return "";
  open += clause.size();
  return tidy(op, StringRef(text).slice(open, findClosing(text, open - 1)));
}

std::string attn::describeMask(AttentionOp op) {
  if (!op.getMaskBlock())
    return "";
  std::string text = printMask(op);
  int64_t size = op.getMaskBlock()->getOperations().size() - 1;
  return text.empty() ? formatv("a region of {0} op{1}", size, size == 1 ? "" : "s").str() : text;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

namespace {
/// A copy of an attention, for a while beside it, whose mask is one truth value of the original.
class Excerpt {
public:
  Excerpt(AttentionOp op, Value part) {
    IRMapping mapping;
    copy = cast<AttentionOp>(op->clone(mapping));
    OpBuilder(op).insert(copy);
    Block &block = *copy.getMaskBlock();
    block.getTerminator()->setOperands(mapping.lookupOrDefault(part));
    for (Operation *inner = block.getTerminator()->getPrevNode(); inner;) {
      Operation *dead = inner->use_empty() ? inner : nullptr;
      inner = inner->getPrevNode();
      if (dead)
        dead->erase();
    }
  }
  Excerpt(const Excerpt &) = delete;
  ~Excerpt() { copy->erase(); }

  AttentionOp get() const { return copy; }
  std::string getText(Operation *op) const {
    std::string text = printMask(copy);
    return text.empty() ? op->getName().getStringRef().str() : text;
  }

private:
  AttentionOp copy;
};
} // namespace

static void addConjuncts(Value value, Block &block, SmallVector<Value> &conjuncts) {
  auto both = value.getDefiningOp<arith::AndIOp>();
  if (!both || both->getBlock() != &block) {
    conjuncts.push_back(value);
    return;
  }
  addConjuncts(both.getLhs(), block, conjuncts);
  addConjuncts(both.getRhs(), block, conjuncts);
}

static SmallVector<Value> getConjuncts(AttentionOp op) {
  SmallVector<Value> conjuncts;
  if (op.isCounted())
    return llvm::to_vector(op.getMaskMembers());
  if (Block *block = op.getMaskBlock())
    addConjuncts(op.getMaskMembers()[0], *block, conjuncts);
  return conjuncts;
}

/// Why the reading of an op of an expanded mask says nothing; "" where it says something.
static std::string whyUnread(Operation &op, const MaskAnalysis &analysis) {
  if (isa<tensor::DimOp>(op)) // an extent is known, whatever the elements are
    return "";
  auto isFloat = [](Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); };
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op.getOperandTypes()), SmallVector<Type>(op.getResultTypes())))
    if (isFloat(type))
      return formatv("'{0}' works on floating-point numbers, which are only known one by one", op.getName()).str();
  if (!isa<MaskOpInterface>(op))
    return formatv("'{0}' has no reading over ranges of positions", op.getName()).str();
  if (analysis.isPointOnly(&op))
    return formatv("'{0}' of numbers that may be negative is only known one by one", op.getName()).str();
  return "";
}

static bool isConnective(Operation *op) { return isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp, arith::SelectOp>(op); }

/// "%doc and %length".
static std::string nameTensors(AttentionOp op, ArrayRef<Value> tensors) {
  auto func = op->getParentOfType<func::FuncOp>();
  SmallVector<std::string> names;
  for (Value tensor : tensors) {
    auto argument = dyn_cast<BlockArgument>(tensor);
    bool isNamed = argument && func && argument.getOwner() == &func.front();
    names.push_back(isNamed ? "%" + getArgumentNames(func)[argument.getArgNumber()] : "a constant");
  }
  return llvm::join(names, " and ");
}

static MaskPart explain(AttentionOp op, Value value, const Reindexing &reindexing) {
  Operation *source = value.getDefiningOp() ? value.getDefiningOp() : op.getOperation();
  Excerpt excerpt(op, value);
  MaskPart part = {excerpt.getText(source), source->getLoc(), MaskPart::Reading::Positions, ""};
  ExpandedMask mask(excerpt.get());
  MaskAnalysis analysis(mask);
  if (reindexing.kind != ReindexKind::Dense && analysis.holdsInClasses(mask.getResult(), reindexing)) {
    part.reading = MaskPart::Reading::Classes;
    return part;
  }
  for (Operation &inner : mask.getBlock()) {
    part.why = whyUnread(inner, analysis);
    if (part.why.empty())
      continue;
    part.reading = isConnective(source) ? MaskPart::Reading::Partly : MaskPart::Reading::Unknown;
    return part;
  }
  if (!Captures::of(excerpt.get()).tables.empty()) {
    part.reading = MaskPart::Reading::Tables;
    part.why = nameTensors(op, mask.getTensors());
  }
  return part;
}

std::vector<MaskPart> attn::explainMask(AttentionOp op, const Reindexing &reindexing) {
  std::vector<MaskPart> parts;
  for (Value conjunct : getConjuncts(op))
    parts.push_back(explain(op, conjunct, reindexing));
  return parts;
}

//===----------------------------------------------------------------------===//
// Fallbacks
//===----------------------------------------------------------------------===//

/// Parts that keep every size-th key but stand where they make no smaller problems.
static void addScattered(AttentionOp op, const Reindexing &reindexing, std::vector<Fallback> &fallbacks) {
  Block *block = op.getMaskBlock();
  if (!block || reindexing.kind == ReindexKind::Residue)
    return;
  for (Operation &inner : block->without_terminator()) {
    if (isConnective(&inner) || inner.getNumResults() != 1 || !inner.getResult(0).getType().isInteger(1))
      continue;
    Excerpt excerpt(op, inner.getResult(0));
    Reindexing own = findReindexing(excerpt.get());
    if (own.kind != ReindexKind::Residue || llvm::is_contained(getConjuncts(op), inner.getResult(0)))
      continue;
    std::string text = excerpt.getText(&inner);
    fallbacks.push_back({inner.getLoc(),
                         formatv("'{0}' keeps one key in {1} but stands in an 'or' or 'not', so that it cannot run as "
                                 "smaller dense problems: its tiles are partial",
                                 text, own.size)
                             .str(),
                         "attend to it in an attn.attention of its own, or give its heads their own op"});
  }
}

std::vector<Fallback> attn::findFallbacks(AttentionOp op, const Reindexing &reindexing) {
  std::vector<Fallback> fallbacks;
  for (const MaskPart &part : explainMask(op, reindexing))
    if (part.reading == MaskPart::Reading::Unknown || part.reading == MaskPart::Reading::Partly)
      fallbacks.push_back(
          {part.loc,
           formatv("'{0}' cannot be read over tiles{1}: {2}; every tile that the rest of the mask keeps "
                   "is partial",
                   part.text, part.reading == MaskPart::Reading::Partly ? " in part" : "", part.why)
               .str(),
           "capture an integer or i1 tensor that says the same: its ranges are looked up per tile"});
  addScattered(op, reindexing, fallbacks);
  return fallbacks;
}
