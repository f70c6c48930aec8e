//===- AttnOps.cpp - The attention op: accessors, parser, printer -----------===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

ValueRange AttentionOp::getMaskMembers() {
  Block *block = getMaskBlock();
  return block ? ValueRange(block->getTerminator()->getOperands()) : ValueRange();
}

Value AttentionOp::getScoreResult() {
  Block *block = getScoreBlock();
  return block ? block->getTerminator()->getOperand(0) : Value();
}

static Block *addBlock(Region &region, MLIRContext *context, Location loc, bool hasScore) {
  Block *block = &region.emplaceBlock();
  if (hasScore)
    block->addArgument(Float32Type::get(context), loc);
  for (int i = 0; i < 4; ++i)
    block->addArgument(IndexType::get(context), loc);
  return block;
}

Block *AttentionOp::addMaskBlock() { return addBlock(getMask(), getContext(), getLoc(), /*hasScore=*/false); }
Block *AttentionOp::addScoreBlock() { return addBlock(getScore(), getContext(), getLoc(), /*hasScore=*/true); }

void AttentionOp::getAsmBlockArgumentNames(Region &region, OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  static constexpr StringRef names[] = {"s", "b", "h", "i", "j"};
  auto used = &region == &getScore() ? ArrayRef(names) : ArrayRef(names).drop_front();
  for (auto [argument, name] : llvm::zip(region.getArguments(), used))
    setName(argument, name);
}

//===----------------------------------------------------------------------===//
// Parser
//===----------------------------------------------------------------------===//

namespace {
/// Reads the clauses between the operands and the types.
class ClauseParser {
public:
  ClauseParser(OpAsmParser &parser, OperationState &result) : parser(parser), result(result) {
    score = result.addRegion();
    mask = result.addRegion();
  }

  /// The clauses in any order, each at most once, then the attribute dictionary.
  ParseResult parse() {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    llvm::SmallDenseSet<StringRef> seen;
    while (succeeded(parser.parseOptionalKeyword(&name, kClauses))) {
      if (!seen.insert(name).second)
        return parser.emitError(loc) << "the clause '" << name << "' is given twice";
      if (parseClause(name))
        return failure();
      loc = parser.getCurrentLocation();
    }
    if (succeeded(parser.parseOptionalKeyword(&name))) {
      InFlightDiagnostic error = parser.emitError(loc) << "unknown clause '" << name << "'; known are ";
      llvm::interleaveComma(ArrayRef(kClauses).drop_back(), error);
      return error << " and " << ArrayRef(kClauses).back();
    }
    return parser.parseOptionalAttrDict(result.attributes);
  }

  SmallVector<Value, 2> joined;                   // output and log-sum-exp, or none
  SmallVector<Value, 1> sink;                     // or none
  SmallVector<Value, 2> relative;                 // table and bias, table, or none
  SmallVector<Value, 1> queryIndices, keyIndices; // or none

private:
  static constexpr StringRef kClauses[] = {"query_rows", "key_rows", "scale", "align", "normalizer", "relative",
                                           "join",       "sink",     "score", "mask",  "schedule"};

  ParseResult parseClause(StringRef name) {
    if (name == "query_rows" || name == "key_rows")
      return parseRows(name, name == "key_rows" ? keyIndices : queryIndices);
    if (name == "scale")
      return parseScale();
    if (name == "align")
      return parseEnum<AlignAttr, Align>("align", "bottom_right");
    if (name == "normalizer")
      return parseEnum<NormalizerAttr, Normalizer>("normalizer", "sigmoid");
    if (name == "score")
      return parseScore();
    if (name == "join")
      return parseJoin();
    if (name == "sink")
      return parseSink();
    if (name == "relative")
      return parseRelative();
    return name == "mask" ? parseMask() : parseSchedule();
  }

  /// The parenthesis after the name of a clause.
  ParseResult open(StringRef example) {
    if (succeeded(parser.parseOptionalLParen()))
      return success();
    return parser.emitError(parser.getCurrentLocation()) << "expected '(', as in " << example;
  }

  ParseResult close(StringRef clause) {
    if (succeeded(parser.parseOptionalRParen()))
      return success();
    return parser.emitError(parser.getCurrentLocation()) << "expected ')' at the end of the clause '" << clause << "'";
  }

  /// `least` to `most` tensors with their types, which `takes` describes.
  ParseResult parseTensors(StringRef clause, StringRef example, StringRef takes, size_t least, size_t most,
                           SmallVectorImpl<Value> &into) {
    SMLoc loc = parser.getCurrentLocation();
    SmallVector<OpAsmParser::UnresolvedOperand, 2> operands;
    SmallVector<Type, 2> types;
    if (open(example) || parser.parseOperandList(operands))
      return failure();
    if (operands.size() < least || operands.size() > most || parser.parseOptionalColon())
      return parser.emitError(loc) << clause << " takes " << takes << ", as in " << example;
    if (parser.parseTypeList(types) || close(clause))
      return failure();
    return parser.resolveOperands(operands, types, loc, into);
  }

  ParseResult parseJoin() {
    return parseTensors("join", "join(%output, %lse : type, type)", "an output and its log-sum-exp with their types", 2,
                        2, joined);
  }

  ParseResult parseSink() {
    return parseTensors("sink", "sink(%logits : tensor<?xf32>)", "a tensor of logits with its type", 1, 1, sink);
  }

  ParseResult parseRows(StringRef clause, SmallVectorImpl<Value> &into) {
    return parseTensors(clause, (clause + "(%rows : tensor<?x?xi32>)").str(), "a tensor of row numbers with its type",
                        1, 1, into);
  }

  ParseResult parseRelative() {
    return parseTensors("relative", "relative(%table, %bias : type, type) or relative(%table : type)",
                        "a table and perhaps a bias with their types", 1, 2, relative);
  }

  ParseResult parseScore() {
    OptionalParseResult region = parser.parseOptionalRegion(*score);
    if (region.has_value())
      return *region;
    return parser.emitError(parser.getCurrentLocation(), "expected '{' and a region after 'score'");
  }

  ParseResult parseMask() {
    bool counted = succeeded(parser.parseOptionalKeyword("counted"));
    if (succeeded(parser.parseOptionalLParen()))
      return parseMaskSugar(parser, *mask, counted);
    if (counted)
      return parser.emitError(parser.getCurrentLocation(),
                              "expected '(' and predicates, as in mask counted(causal or global(count = 1)); a region "
                              "counts by what it yields");
    OptionalParseResult region = parser.parseOptionalRegion(*mask);
    if (region.has_value())
      return *region;
    return parser.emitError(parser.getCurrentLocation(),
                            "expected '(' and predicates, as in mask(causal), or '{' and a region after 'mask'");
  }

  ParseResult parseScale() {
    if (open("scale(0.125)"))
      return failure();
    SMLoc loc = parser.getCurrentLocation();
    bool isNegative = succeeded(parser.parseOptionalMinus());
    Attribute value;
    OptionalParseResult parsed = parser.parseOptionalAttribute(value);
    if (parsed.has_value() && failed(*parsed))
      return failure();
    auto scale = dyn_cast_or_null<FloatAttr>(value);
    if (!scale)
      return parser.emitError(loc, "scale must be a finite number with a decimal point, as in scale(0.125); leave it "
                                   "out for 1 / sqrt(head_dim) (A8)");
    result.addAttribute("scale", isNegative ? FloatAttr::get(scale.getType(), -scale.getValue()) : scale);
    return close("scale");
  }

  template <typename AttrT, typename EnumT>
  ParseResult parseEnum(StringRef clause, StringRef example) {
    if (open((clause + "(" + example + ")").str()))
      return failure();
    FailureOr<EnumT> value = FieldParser<EnumT>::parse(parser);
    if (failed(value) || close(clause))
      return failure();
    result.addAttribute(clause, AttrT::get(parser.getContext(), *value));
    return success();
  }

  ParseResult parseSchedule() {
    StringRef example = "schedule(#attn.schedule<query_tile = 48>)";
    if (open(example))
      return failure();
    SMLoc loc = parser.getCurrentLocation();
    Attribute value;
    OptionalParseResult parsed = parser.parseOptionalAttribute(value);
    if (parsed.has_value() && failed(*parsed))
      return failure();
    auto schedule = dyn_cast_or_null<ScheduleAttr>(value);
    if (!schedule)
      return parser.emitError(loc) << "schedule takes an attribute, as in " << example;
    result.addAttribute("schedule", schedule);
    return close("schedule");
  }

  OpAsmParser &parser;
  OperationState &result;
  Region *score;
  Region *mask;
};
} // namespace

/// Behind the word: (%scores), %value.
static ParseResult parseScoresAndValue(OpAsmParser &parser, SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalLParen()))
    return parser.emitError(loc, "expected '(' and a tensor, as in scores(%scores), %value");
  return failure(parser.parseOperand(operands.emplace_back()) || parser.parseRParen() || parser.parseComma() ||
                 parser.parseOperand(operands.emplace_back()));
}

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand, 3> operands;
  SmallVector<Type, 3> types;
  SmallVector<Type, 2> results;
  SMLoc loc = parser.getCurrentLocation();
  ClauseParser clauses(parser, result);
  bool given = succeeded(parser.parseOptionalKeyword("scores"));
  if ((given ? parseScoresAndValue(parser, operands) : parser.parseOperandList(operands, /*requiredOperandCount=*/3)) ||
      clauses.parse() || parser.parseColonTypeList(types) || parser.parseArrow() || parser.parseTypeList(results) ||
      parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  result.addTypes(results);
  Value scores = given ? result.operands.front() : Value();
  if (given)
    result.operands.erase(result.operands.begin());
  result.addOperands(clauses.joined);
  result.addOperands(clauses.sink);
  result.addOperands(clauses.relative);
  if (given)
    result.addOperands(scores);
  result.addOperands(clauses.queryIndices);
  result.addOperands(clauses.keyIndices);
  int32_t joined = clauses.joined.empty() ? 0 : 1, sink = clauses.sink.size(), relative = clauses.relative.size();
  int32_t queryIndices = clauses.queryIndices.size(), keyIndices = clauses.keyIndices.size();
  result.getOrAddProperties<Properties>().operandSegmentSizes = {
      !given, !given,       1,         joined, joined, sink, std::min(relative, 1), std::max(relative - 1, 0),
      given,  queryIndices, keyIndices};
  return success();
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query, Value key, Value value, Type output) {
  state.addOperands({query, key, value});
  state.addTypes(output);
  state.addRegion();
  state.addRegion();
  state.getOrAddProperties<Properties>().operandSegmentSizes = {1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
}

//===----------------------------------------------------------------------===//
// Printer
//===----------------------------------------------------------------------===//

static void printScore(OpAsmPrinter &p, Region &region) {
  if (region.empty())
    return;
  p << " score ";
  p.printRegion(region);
}

static void printMask(OpAsmPrinter &p, Region &region) {
  if (region.empty())
    return;
  p << " mask";
  if (printMaskSugar(p, region))
    return;
  p << ' ';
  p.printRegion(region);
}

void AttentionOp::print(OpAsmPrinter &p) {
  SmallVector<Value> inputs{getScores() ? getScores() : getQuery()};
  if (!getScores())
    inputs.push_back(getKey());
  inputs.push_back(getValue());
  if (Value scores = getScores())
    p << " scores(" << scores << "), " << getValue();
  else
    p << ' ' << ValueRange(inputs);
  for (auto [clause, rows] : {std::pair("query_rows", getQueryIndices()), {"key_rows", getKeyIndices()}})
    if (rows)
      p << ' ' << clause << '(' << rows << " : " << rows.getType() << ')';
  if (FloatAttr scale = getScaleAttr()) {
    p << " scale(";
    scale.getType().isF64() ? p.printAttributeWithoutType(scale)
                            : p.printAttribute(scale); // a bare number reads as f64
    p << ')';
  }
  if (getAlign() != Align::TopLeft)
    p << " align(" << stringifyAlign(getAlign()) << ')';
  if (!isSoftmax())
    p << " normalizer(" << stringifyNormalizer(getNormalizer()) << ')';
  if (Value table = getTable()) {
    SmallVector<Value> operands{table};
    if (getBias())
      operands.push_back(getBias());
    p << " relative(" << ValueRange(operands) << " : " << ValueRange(operands).getTypes() << ')';
  }
  if (Value output = getJoinedOutput())
    p << " join(" << output << ", " << getJoinedLse() << " : " << output.getType() << ", " << getJoinedLse().getType()
      << ')';
  if (Value sink = getSink())
    p << " sink(" << sink << " : " << sink.getType() << ')';
  printScore(p, getScore());
  printMask(p, getMask());
  if (ScheduleAttr schedule = getScheduleAttr())
    p << " schedule(" << schedule << ')';
  p.printOptionalAttrDict((*this)->getAttrs(),
                          {"scale", "align", "normalizer", "schedule", getOperandSegmentSizeAttr()});
  p << " : " << ValueRange(inputs).getTypes() << " -> " << getResultTypes();
}

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
