//===- AttnSugarParse.cpp - Parse the short form of masks ----------------===//

#include "AttnSugar.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace attn;

static SmallVector<StringRef> knownNames() {
  SmallVector<StringRef> names;
  for (ArrayRef<PredicateForm> forms : {predicateForms, setForms})
    for (const PredicateForm &form : forms)
      names.push_back(form.name);
  names.push_back("blocked");
  return names;
}

/// The known name that differs from `name` by a slip, or nothing.
static StringRef nearestName(StringRef name) {
  SmallVector<StringRef> names = knownNames();
  auto distance = [&](StringRef known) { return known.edit_distance(name.lower()); };
  StringRef *nearest = llvm::min_element(names, [&](StringRef a, StringRef b) { return distance(a) < distance(b); });
  return distance(*nearest) <= 1 + name.size() / 4 ? *nearest : StringRef();
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

  /// A mask and the parenthesis that closes it.
  ParseResult parseToClose(Value &mask);
  /// The same, each part of an `or` for itself.
  ParseResult parseMembersToClose(SmallVectorImpl<Value> &members);

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

  ParseResult close();
  ParseResult parseMask(Value &mask) { return parseChain<arith::OrIOp>("or", &SugarParser::parseAndTerm, mask); }
  ParseResult parseAndTerm(Value &mask) { return parseChain<arith::AndIOp>("and", &SugarParser::parseTerm, mask); }

  ParseResult parseTerm(Value &mask);
  ParseResult parseNot(Value &mask);
  ParseResult parseBlocked(Value &mask);
  ParseResult parsePredicate(const PredicateForm &form, SMLoc loc, Value &mask);
  ParseResult parseSet(const PredicateForm &form, SMLoc loc, Value &mask);
  ParseResult parseArguments(const PredicateForm &form, SMLoc loc, Arguments &arguments);
  ParseResult parseArgument(const PredicateForm &form, unsigned &position, Arguments &arguments);
  ParseResult parseCaptured(const PredicateForm &form, OpAsmParser::UnresolvedOperand operand, Value &captured);
  ParseResult parseValue(const PredicateForm &form, const Parameter &parameter, Arguments &arguments);
  ParseResult parseNumber(const Twine &requirement, int64_t &value);
  ParseResult parseList(const Twine &requirement, SmallVectorImpl<int64_t> &values);
  ParseResult checkComplete(const PredicateForm &form, SMLoc loc, const Arguments &arguments);

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

ParseResult SugarParser::parseToClose(Value &mask) { return failure(parseMask(mask) || close()); }

ParseResult SugarParser::parseMembersToClose(SmallVectorImpl<Value> &members) {
  do {
    if (parseAndTerm(members.emplace_back()))
      return failure();
  } while (succeeded(parser.parseOptionalKeyword("or")));
  return close();
}

ParseResult SugarParser::close() {
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalRParen()))
    return success();
  InFlightDiagnostic error = parser.emitError(loc, "expected 'and', 'or' or ')' after a predicate");
  StringRef word;
  if (succeeded(parser.parseOptionalKeyword(&word)))
    error << ", not '" << word << "'";
  if (word == "xor")
    error << "; write (a and not b) or (b and not a)";
  return error;
}

ParseResult SugarParser::parseTerm(Value &mask) {
  if (succeeded(parser.parseOptionalKeyword("not")))
    return parseNot(mask);
  if (succeeded(parser.parseOptionalLParen()))
    return parseToClose(mask);
  SMLoc loc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("blocked")))
    return parseBlocked(mask);
  StringRef name;
  bool isWord = succeeded(parser.parseOptionalKeyword(&name));
  if (const PredicateForm *form = findForm(predicateForms, name))
    return parsePredicate(*form, loc, mask);
  if (const PredicateForm *form = findForm(setForms, name))
    return parseSet(*form, loc, mask);
  InFlightDiagnostic error = parser.emitError(loc);
  if (!isWord || name == "and" || name == "or")
    error << "expected a predicate";
  else
    error << "unknown predicate '" << name << "'";
  StringRef nearest = nearestName(name);
  if (nearest.empty())
    error << "; known are ";
  else
    error << ", did you mean " << nearest << "? known are ";
  llvm::interleaveComma(knownNames(), error);
  return error;
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
  StringRef example = ", as in blocked(64, causal)";
  if (parser.parseOptionalLParen())
    return parser.emitError(parser.getCurrentLocation()) << "blocked needs a block size and a mask" << example;
  loc = parser.getCurrentLocation();
  int64_t size = 0;
  if (parseNumber("the block size must be an integer" + example, size))
    return failure();
  if (size < 1 || !llvm::isUInt<31>(size))
    return parser.emitError(loc) << "block size must be at least 1 and below 2^31, not " << size;
  if (parser.parseOptionalComma())
    return parser.emitError(parser.getCurrentLocation()) << "expected ',' and a mask after the block size" << example;
  blockSize = size;
  if (parseToClose(mask))
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
  if (failed(parser.parseOptionalLParen()) || succeeded(parser.parseOptionalRParen()))
    return checkComplete(form, loc, arguments);
  if (parser.parseCommaSeparatedList(one))
    return failure();
  if (parser.parseOptionalRParen())
    return parser.emitError(parser.getCurrentLocation()) << "expected ',' or ')' after an argument of " << form.name;
  return checkComplete(form, loc, arguments);
}

ParseResult SugarParser::checkComplete(const PredicateForm &form, SMLoc loc, const Arguments &arguments) {
  for (const Parameter &parameter : parametersOf(form))
    if (!parameter.isOptional && !arguments.attributes.get(parameter.name))
      return parser.emitError(loc) << form.name << " needs '" << parameter.name << "': write " << exampleOf(form);
  if (form.captures && !arguments.captured)
    return parser.emitError(loc) << form.name << " needs a captured tensor: write " << exampleOf(form)
                                 << ", with a tensor from outside";
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
    return parseValue(form, parameters[position++], arguments);
  }
  const Parameter *parameter = llvm::find_if(parameters, [&](const Parameter &p) { return p.name == key; });
  if (parameter == parameters.end())
    return fail(("has no parameter '" + key + "'").str());
  if (parser.parseOptionalEqual())
    return parser.emitError(parser.getCurrentLocation())
           << "expected '=' after '" << key << "', as in " << exampleOf(form, key);
  return parseValue(form, *parameter, arguments);
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
  if (parser.parseOptionalColon())
    return parser.emitError(parser.getCurrentLocation())
           << "expected ':' and the type of the captured tensor, as in " << exampleOf(form);
  if (parser.getCurrentLocation(&typeLoc) || parser.parseType(type))
    return failure();
  if (!isa<RankedTensorType>(type))
    return parser.emitError(typeLoc) << form.name << " needs a ranked tensor, not " << type;
  if (parser.resolveOperand(operand, type, resolved))
    return failure();
  captured = resolved.front();
  return success();
}

ParseResult SugarParser::parseValue(const PredicateForm &form, const Parameter &parameter, Arguments &arguments) {
  SMLoc loc = parser.getCurrentLocation();
  std::string name = ("'" + parameter.name + "' of " + form.name).str();
  std::string requirement = name + " must be " + (parameter.isList ? "a list of integers" : "an integer") + ", as in " +
                            exampleOf(form, parameter.name);
  SmallVector<int64_t> values;
  if (parameter.isList ? parseList(requirement, values) : parseNumber(requirement, values.emplace_back()))
    return failure();
  if (arguments.attributes.get(parameter.name))
    return parser.emitError(loc) << name << " is given twice; leave one out, or name each argument";
  if (parameter.isList)
    arguments.attributes.set(parameter.name, builder.getDenseI64ArrayAttr(values));
  else
    arguments.attributes.set(parameter.name, builder.getI64IntegerAttr(values.front()));
  return success();
}

ParseResult SugarParser::parseNumber(const Twine &requirement, int64_t &value) {
  SMLoc loc = parser.getCurrentLocation();
  bool isNegative = succeeded(parser.parseOptionalMinus());
  APInt number;
  OptionalParseResult parsed = parser.parseOptionalInteger(number);
  if (parsed.has_value() && failed(*parsed))
    return failure();
  if (!parsed.has_value() || number.isNegative() || number.getActiveBits() > 63)
    return parser.emitError(loc) << requirement;
  value = isNegative ? -number.getSExtValue() : number.getSExtValue();
  return success();
}

ParseResult SugarParser::parseList(const Twine &requirement, SmallVectorImpl<int64_t> &values) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalLSquare())
    return parser.emitError(loc) << requirement;
  if (succeeded(parser.parseOptionalRSquare()))
    return success();
  if (parser.parseCommaSeparatedList([&] { return parseNumber(requirement, values.emplace_back()); }))
    return failure();
  if (parser.parseOptionalRSquare())
    return parser.emitError(parser.getCurrentLocation(), "expected ',' or ']' after a number of a list");
  return success();
}

ParseResult attn::parseMaskSugar(OpAsmParser &parser, Region &region, bool counted) {
  Location loc = parser.getEncodedSourceLoc(parser.getCurrentLocation());
  Block *block = &region.emplaceBlock();
  for (int i = 0; i < 4; ++i)
    block->addArgument(parser.getBuilder().getIndexType(), loc);
  SmallVector<Value, 1> members;
  SugarParser sugar(parser, block);
  if (counted ? sugar.parseMembersToClose(members) : sugar.parseToClose(members.emplace_back()))
    return failure();
  OpBuilder builder(parser.getContext());
  builder.setInsertionPointToEnd(block);
  YieldOp::create(builder, loc, ValueRange(members));
  return success();
}
