//===- AttnSugarParse.cpp - Parse the short form of masks ----------------===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

static std::string knownNames() {
  std::string names;
  for (const PredicateForm &form : predicateForms)
    names += form.name.str() + ", ";
  for (const PredicateForm &form : setForms)
    names += form.name.str() + ", ";
  return names + "blocked";
}

namespace {
/// The arguments in the parentheses of a predicate.
struct Arguments {
  NamedAttrList attributes;
  Value captured;
};

class SugarParser {
public:
  SugarParser(OpAsmParser &parser, Block *block) : parser(parser), builder(parser.getContext()), block(block) {
    builder.setInsertionPointToEnd(block);
  }

  ParseResult parseMask(Value &mask) { return parseChain<arith::OrIOp>("or", &SugarParser::parseAndTerm, mask); }

private:
  using Rule = ParseResult (SugarParser::*)(Value &);

  /// Operands joined by a keyword, from left to right.
  template <typename OpTy>
  ParseResult parseChain(StringRef keyword, Rule operand, Value &result) {
    if ((this->*operand)(result))
      return failure();
    Location loc = here();
    while (succeeded(parser.parseOptionalKeyword(keyword))) {
      Value next;
      if ((this->*operand)(next))
        return failure();
      result = OpTy::create(builder, loc, result, next);
    }
    return success();
  }

  ParseResult parseAndTerm(Value &mask) { return parseChain<arith::AndIOp>("and", &SugarParser::parseTerm, mask); }

  ParseResult parseTerm(Value &mask);
  ParseResult parseNot(Value &mask);
  ParseResult parseBlocked(Value &mask);
  ParseResult parsePredicate(const PredicateForm &form, SMLoc loc, Value &mask);
  ParseResult parseSet(const PredicateForm &form, SMLoc loc, Value &mask);
  ParseResult parseArguments(const PredicateForm &form, SMLoc loc, Arguments &arguments);
  ParseResult parseArgument(const PredicateForm &form, unsigned &position, Arguments &arguments);
  ParseResult parseCaptured(const PredicateForm &form, OpAsmParser::UnresolvedOperand operand, Value &captured);
  ParseResult parseValue(const Parameter &parameter, Arguments &arguments);

  /// The value of a letter: a block argument, or inside blocked() a block number, made when first asked for.
  Value place(char letter);

  Location here() { return parser.getEncodedSourceLoc(parser.getCurrentLocation()); }

  OpAsmParser &parser;
  OpBuilder builder;
  Block *block;
  int64_t blockSize = 0; // 0: outside blocked()
  Value blockNumbers[2];
};
} // namespace

ParseResult SugarParser::parseTerm(Value &mask) {
  if (succeeded(parser.parseOptionalKeyword("not")))
    return parseNot(mask);
  if (succeeded(parser.parseOptionalLParen()))
    return failure(parseMask(mask) || parser.parseRParen());
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("blocked")))
    return parseBlocked(mask);
  StringRef name;
  if (parser.parseOptionalKeyword(&name))
    return parser.emitError(loc) << "expected a predicate; known are " << knownNames();
  if (const PredicateForm *form = findForm(predicateForms, name))
    return parsePredicate(*form, loc, mask);
  if (const PredicateForm *form = findForm(setForms, name))
    return parseSet(*form, loc, mask);
  return parser.emitError(loc) << "unknown predicate '" << name << "'; known are " << knownNames();
}

ParseResult SugarParser::parseNot(Value &mask) {
  Location loc = here();
  if (parseTerm(mask))
    return failure();
  Value all = arith::ConstantIntOp::create(builder, loc, 1, 1);
  mask = arith::XOrIOp::create(builder, loc, mask, all);
  return success();
}

ParseResult SugarParser::parseBlocked(Value &mask) {
  SMLoc loc = parser.getCurrentLocation();
  if (blockSize != 0)
    return parser.emitError(loc, "blocked() does not nest; write the product of the sizes");
  if (parser.parseLParen() || parser.parseInteger(blockSize))
    return failure();
  if (blockSize < 1)
    return parser.emitError(loc) << "block size must be at least 1, not " << blockSize;
  if (parser.parseComma() || parseMask(mask) || parser.parseRParen())
    return failure();
  blockSize = 0;
  blockNumbers[0] = blockNumbers[1] = Value();
  return success();
}

Value SugarParser::place(char letter) {
  Value argument = block->getArgument(StringRef("bhij").find(letter));
  if (blockSize == 0 || letter == 'b' || letter == 'h')
    return argument;
  Value &number = blockNumbers[letter - 'i'];
  if (!number) {
    Value size = arith::ConstantIndexOp::create(builder, here(), blockSize);
    number = arith::FloorDivSIOp::create(builder, here(), argument, size);
  }
  return number;
}

ParseResult SugarParser::parsePredicate(const PredicateForm &form, SMLoc loc, Value &mask) {
  if (form.readsNumKeys && blockSize != 0)
    return parser.emitError(loc) << form.name << " needs token positions; move it out of blocked()";
  Arguments arguments;
  if (parseArguments(form, loc, arguments))
    return failure();
  OperationState state(parser.getEncodedSourceLoc(loc), (AttnDialect::getDialectNamespace() + "." + form.name).str());
  for (char letter : form.places)
    state.operands.push_back(place(letter));
  if (form.captures)
    state.operands.push_back(arguments.captured);
  state.attributes = arguments.attributes;
  state.types.push_back(builder.getI1Type());
  mask = builder.create(state)->getResult(0);
  return success();
}

ParseResult SugarParser::parseSet(const PredicateForm &form, SMLoc loc, Value &mask) {
  Arguments arguments;
  if (parseArguments(form, loc, arguments))
    return failure();
  Value set = arguments.captured;
  int64_t rank = cast<RankedTensorType>(set.getType()).getRank();
  std::optional<StringRef> places = leadingPlaces(form, rank);
  if (!places)
    return parser.emitError(loc) << form.name << " takes a set of rank "
                                 << (form.name == "in_table" ? "2 to 4" : "1 to 3") << ", but " << set.getType()
                                 << " has rank " << rank;
  SmallVector<Value> indices;
  for (char letter : *places)
    indices.push_back(place(letter));
  Value value = place(form.places.back());
  mask = ContainsOp::create(builder, parser.getEncodedSourceLoc(loc), builder.getI1Type(), set, indices, value);
  return success();
}

ParseResult SugarParser::parseArguments(const PredicateForm &form, SMLoc loc, Arguments &arguments) {
  unsigned position = 0;
  auto one = [&] { return parseArgument(form, position, arguments); };
  if (succeeded(parser.parseOptionalLParen()))
    if (parser.parseCommaSeparatedList(one) || parser.parseRParen())
      return failure();
  if (form.captures && !arguments.captured)
    return parser.emitError(loc) << form.name << " needs a captured tensor: write " << form.name
                                 << "(%tensor : type), with a tensor from outside";
  return success();
}

ParseResult SugarParser::parseArgument(const PredicateForm &form, unsigned &position, Arguments &arguments) {
  OpAsmParser::UnresolvedOperand operand;
  OptionalParseResult isOperand = parser.parseOptionalOperand(operand);
  if (isOperand.has_value())
    return failure(failed(*isOperand) || parseCaptured(form, operand, arguments.captured));
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Parameter> parameters = parametersOf(form);
  auto fail = [&](StringRef what) {
    InFlightDiagnostic error = parser.emitError(loc) << form.name << ' ' << what;
    if (parameters.empty()) {
      error << "; it takes no parameters";
      return error;
    }
    error << "; its parameters are: ";
    llvm::interleaveComma(parameters, error, [&](const Parameter &p) { error << p.name; });
    return error;
  };
  StringRef key;
  if (failed(parser.parseOptionalKeyword(&key))) {
    if (position >= parameters.size())
      return fail("has too many arguments");
    return parseValue(parameters[position++], arguments);
  }
  const Parameter *parameter = llvm::find_if(parameters, [&](const Parameter &p) { return p.name == key; });
  if (parameter == parameters.end())
    return fail(("has no parameter '" + key + "'").str());
  return failure(parser.parseEqual() || parseValue(*parameter, arguments));
}

ParseResult SugarParser::parseCaptured(const PredicateForm &form, OpAsmParser::UnresolvedOperand operand,
                                       Value &captured) {
  SMLoc loc = operand.location;
  if (!form.captures || captured)
    return parser.emitError(loc) << form.name
                                 << (captured ? " takes one captured tensor" : " takes no captured tensor");
  Type type;
  SMLoc typeLoc;
  SmallVector<Value, 1> resolved;
  if (parser.parseColon() || parser.getCurrentLocation(&typeLoc) || parser.parseType(type))
    return failure();
  if (!isa<RankedTensorType>(type))
    return parser.emitError(typeLoc) << form.name << " needs a ranked tensor, not " << type;
  if (parser.resolveOperand(operand, type, resolved))
    return failure();
  captured = resolved.front();
  return success();
}

ParseResult SugarParser::parseValue(const Parameter &parameter, Arguments &arguments) {
  SMLoc loc = parser.getCurrentLocation();
  if (arguments.attributes.get(parameter.name))
    return parser.emitError(loc) << "'" << parameter.name << "' is given twice";
  SmallVector<int64_t> values;
  auto one = [&] { return parser.parseInteger(values.emplace_back()); };
  if (!parameter.isList) {
    if (one())
      return failure();
    arguments.attributes.set(parameter.name, builder.getI64IntegerAttr(values.front()));
    return success();
  }
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, one))
    return failure();
  arguments.attributes.set(parameter.name, builder.getDenseI64ArrayAttr(values));
  return success();
}

ParseResult attn::parseMaskSugar(OpAsmParser &parser, Region &region) {
  Location loc = parser.getEncodedSourceLoc(parser.getCurrentLocation());
  Block *block = &region.emplaceBlock();
  for (int i = 0; i < 4; ++i)
    block->addArgument(parser.getBuilder().getIndexType(), loc);
  Value mask;
  if (SugarParser(parser, block).parseMask(mask))
    return failure();
  OpBuilder builder(parser.getContext());
  builder.setInsertionPointToEnd(block);
  YieldOp::create(builder, loc, mask);
  return success();
}
