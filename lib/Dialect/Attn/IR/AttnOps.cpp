//===- AttnOps.cpp - The attention op: accessors, parser, printer -----------===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static Value yieldedBy(Block *block) { return block ? cast<YieldOp>(block->getTerminator()).getValue() : Value(); }

Value AttentionOp::getMaskResult() { return yieldedBy(getMaskBlock()); }
Value AttentionOp::getScoreResult() { return yieldedBy(getScoreBlock()); }

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
    while (succeeded(parser.parseOptionalKeyword(&name, {"scale", "align", "join", "score", "mask", "schedule"}))) {
      if (!seen.insert(name).second)
        return parser.emitError(loc) << "the clause '" << name << "' is given twice";
      if (parseClause(name))
        return failure();
      loc = parser.getCurrentLocation();
    }
    if (succeeded(parser.parseOptionalKeyword(&name)))
      return parser.emitError(loc) << "unknown clause '" << name
                                   << "'; known are scale, align, join, score, mask and schedule";
    return parser.parseOptionalAttrDict(result.attributes);
  }

  SmallVector<Value, 2> joined; // output and log-sum-exp, or none

private:
  ParseResult parseClause(StringRef name) {
    if (name == "scale")
      return parseScale();
    if (name == "align")
      return parseAlign();
    if (name == "score")
      return parser.parseRegion(*score);
    if (name == "join")
      return parseJoin();
    return name == "mask" ? parseMask() : parseSchedule();
  }

  ParseResult parseJoin() {
    SMLoc loc = parser.getCurrentLocation();
    SmallVector<OpAsmParser::UnresolvedOperand, 2> operands;
    SmallVector<Type, 2> types;
    if (parser.parseLParen() || parser.parseOperandList(operands, /*requiredOperandCount=*/2) ||
        parser.parseColonTypeList(types) || parser.parseRParen())
      return failure();
    return parser.resolveOperands(operands, types, loc, joined);
  }

  ParseResult parseMask() {
    if (failed(parser.parseOptionalLParen()))
      return parser.parseRegion(*mask);
    return failure(parseMaskSugar(parser, *mask) || parser.parseRParen());
  }

  ParseResult parseScale() {
    FloatAttr scale;
    if (parser.parseLParen() || parser.parseAttribute(scale) || parser.parseRParen())
      return failure();
    result.addAttribute("scale", scale);
    return success();
  }

  ParseResult parseAlign() {
    if (parser.parseLParen())
      return failure();
    FailureOr<Align> align = FieldParser<Align>::parse(parser);
    if (failed(align) || parser.parseRParen())
      return failure();
    result.addAttribute("align", AlignAttr::get(parser.getContext(), *align));
    return success();
  }

  ParseResult parseSchedule() {
    ScheduleAttr schedule;
    if (parser.parseLParen() || parser.parseAttribute(schedule) || parser.parseRParen())
      return failure();
    result.addAttribute("schedule", schedule);
    return success();
  }

  OpAsmParser &parser;
  OperationState &result;
  Region *score;
  Region *mask;
};
} // namespace

ParseResult AttentionOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<OpAsmParser::UnresolvedOperand, 3> operands;
  SmallVector<Type, 3> types;
  SmallVector<Type, 2> results;
  SMLoc loc = parser.getCurrentLocation();
  ClauseParser clauses(parser, result);
  if (parser.parseOperandList(operands, /*requiredOperandCount=*/3) || clauses.parse() ||
      parser.parseColonTypeList(types) || parser.parseArrow() || parser.parseTypeList(results) ||
      parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  result.addTypes(results);
  result.addOperands(clauses.joined);
  int32_t one = clauses.joined.empty() ? 0 : 1;
  result.getOrAddProperties<Properties>().operandSegmentSizes = {1, 1, 1, one, one};
  return success();
}

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value query, Value key, Value value, Type output) {
  state.addOperands({query, key, value});
  state.addTypes(output);
  state.addRegion();
  state.addRegion();
  state.getOrAddProperties<Properties>().operandSegmentSizes = {1, 1, 1, 0, 0};
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
  Value inputs[] = {getQuery(), getKey(), getValue()};
  p << ' ' << ValueRange(inputs);
  if (FloatAttr scale = getScaleAttr()) {
    p << " scale(";
    scale.getType().isF64() ? p.printAttributeWithoutType(scale)
                            : p.printAttribute(scale); // a bare number reads as f64
    p << ')';
  }
  if (getAlign() != Align::TopLeft)
    p << " align(" << stringifyAlign(getAlign()) << ')';
  if (Value output = getJoinedOutput())
    p << " join(" << output << ", " << getJoinedLse() << " : " << output.getType() << ", " << getJoinedLse().getType()
      << ')';
  printScore(p, getScore());
  printMask(p, getMask());
  if (ScheduleAttr schedule = getScheduleAttr())
    p << " schedule(" << schedule << ')';
  p.printOptionalAttrDict((*this)->getAttrs(), {"scale", "align", "schedule", getOperandSegmentSizeAttr()});
  p << " : " << ValueRange(inputs).getTypes() << " -> " << getResultTypes();
}

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
