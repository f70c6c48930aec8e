//===- DrawArithmetic.cpp - Random numbers in regions ---------------------===//
#include "Draw.h"

namespace attn::fuzz {
namespace {

int bitsOf(const std::string &type) { return type == "index" ? 64 : std::stoi(type.substr(1)); }

Expression make(std::string text, const std::string &type, std::vector<Expression> operands = {}) {
  return {std::move(text), type, std::move(operands), "", 0};
}

} // namespace

Expression Generator::constant(const std::string &type) {
  int64_t value = chance(80) ? between(-3, 70) : pick<int64_t>({0, 1, -1, 2, 64, 100, 127, -128, 1000, -1000});
  if (chance(3) && bitsOf(type) >= 32)
    value = pick<int64_t>({INT32_MAX, INT32_MIN, 1 << 30});
  if (chance(2) && bitsOf(type) == 64)
    value = pick<int64_t>({INT64_MAX, INT64_MIN, int64_t(1) << 40, UINT32_MAX});
  if (type == "i8")
    value = int8_t(value);
  return make("arith.constant " + text(value) + " : " + type, type);
}

/// Reads a tensor at places, or at anything.
Expression Generator::extract(const std::string &element, int depth) {
  bool isFloat = element[0] == 'f' || element[0] == 'b';
  std::string letters = pick({"", "b", "h", "i", "j", "ij", "bi", "bj", "hj", "hi", "bij", "hij", "bhij", "ji"});
  std::vector<Extent> dims;
  std::vector<Expression> operands;
  std::string at;
  for (char letter : letters) {
    dims.push_back(covering(letter));
    at += (at.empty() ? "$" : ", $") + text(int64_t(operands.size()));
    operands.push_back(depth > 0 && chance(25) ? integer("index", depth - 1) : place(letter));
  }
  Filling filling = isFloat     ? (chance(30) ? Filling::Special : Filling::Normal)
                    : chance(6) ? Filling::Extreme
                                : Filling::Uniform;
  int64_t most = element == "i1" ? 1 : pick<int64_t>({1, 3, 9, 60, 120});
  std::string t =
      capture(element, dims, filling, element == "i1" || chance(50) ? 0 : -5, most, pick({1.0, 0.1, 5.0, 60.0}));
  return make("tensor.extract %" + t + "[" + at + "] : !" + t, element, std::move(operands));
}

Expression Generator::integerLeaf(const std::string &type) {
  if (type != "index")
    return chance(40) ? constant(type) : chance(50) ? extract(type, 0) : castTo(type, 0);
  switch (below(12)) {
  case 0:
  case 1:
    return constant(type);
  case 2:
    return place('b');
  case 3:
    return place('h');
  case 4:
    if (inMask)
      return make(pick({"attn.num_keys", "attn.num_queries"}), "index");
    return make("tensor.dim %" + current->key + ", $0 : !" + current->key, "index",
                {make("arith.constant 2 : index", "index")});
  case 5:
    return extract("index", 0);
  default:
    return place(chance(50) ? 'i' : 'j');
  }
}

Expression Generator::castTo(const std::string &type, int depth) {
  // An i1 counts as 0 and -1 where it is signed.
  if (depth > 0 && chance(20)) {
    bool index = type == "index";
    std::string op = index ? pick({"arith.index_cast", "arith.index_castui", "index.casts", "index.castu"})
                           : pick({"arith.extsi", "arith.extui"});
    return make(op + " $0 : i1 to " + type, type, {comparison(depth - 1)});
  }
  if (type == "index") {
    std::string from = pick({"i8", "i16", "i32", "i64", "i32"});
    std::string op = pick({"arith.index_cast", "arith.index_castui", "index.casts", "index.castu"});
    return make(op + " $0 : " + from + " to index", type, {integer(from, depth)});
  }
  std::string from = pick({"index", "i8", "i16", "i32", "i64"});
  if (from == type || depth == 0)
    from = "index";
  // Upstream folds arith.index_cast there and back although it may have cut bits off: only where it cuts none.
  if (from == "index")
    return make(
        std::string(bitsOf(type) >= 32 && chance(50) ? "arith.index_cast" : pick({"index.casts", "index.castu"})) +
            " $0 : index to " + type,
        type, {depth == 0 ? place(chance(50) ? 'i' : 'j') : integer("index", depth)});
  std::string op = bitsOf(from) > bitsOf(type) ? "arith.trunci" : pick({"arith.extsi", "arith.extui"});
  return make(op + " $0 : " + from + " to " + type, type, {integer(from, depth)});
}

Expression Generator::division(const std::string &type, int depth) {
  Expression divisor =
      chance(60)   ? make("arith.constant " + text(chance(90) ? between(1, 40) : -between(1, 9)) + " : " + type, type)
      : chance(50) ? extract(type, 0)
                   : integer(type, depth - 1);
  std::string op = pick({"arith.floordivsi", "arith.remsi", "arith.divsi", "arith.ceildivsi", "arith.divui",
                         "arith.remui", "arith.ceildivui", "arith.floordivsi", "arith.remui"});
  if (type == "index" && chance(30))
    return make(std::string("index.") + pick({"floordivs", "ceildivs", "divs", "rems", "divu", "remu", "ceildivu"}) +
                    " $0, $1",
                type, {integer(type, depth - 1), divisor});
  return make(op + " $0, $1 : " + type, type, {integer(type, depth - 1), divisor});
}

Expression Generator::shift(const std::string &type, int depth) {
  Expression amount = make("arith.constant " + text(between(0, std::min(bitsOf(type) - 1, 7))) + " : " + type, type);
  if (type == "index" && chance(30))
    return make(std::string("index.") + pick({"shl", "shrs", "shru"}) + " $0, $1", type,
                {integer(type, depth - 1), amount});
  return make(std::string("arith.") + pick({"shli", "shrsi", "shrui"}) + " $0, $1 : " + type, type,
              {integer(type, depth - 1), amount});
}

Expression Generator::binary(const std::string &type, int depth) {
  std::string op = pick({"add", "sub", "add", "sub", "mul", "min", "max", "and", "or", "xor"});
  if (type == "index" && chance(20)) {
    if (op == "min" || op == "max")
      op += pick({"s", "u"});
    return make("index." + op + " $0, $1", type, {integer(type, depth - 1), integer(type, depth - 1)});
  }
  op += op == "min" || op == "max" ? pick({"si", "ui"}) : "i";
  Expression right = op == "muli" && chance(70) ? constant(type) : integer(type, depth - 1);
  return make("arith." + op + " $0, $1 : " + type, type, {integer(type, depth - 1), right});
}

Expression Generator::integer(const std::string &type, int depth) {
  if (depth <= 0)
    return integerLeaf(type);
  switch (below(10)) {
  case 0:
  case 1:
  case 2:
  case 3:
    return binary(type, depth);
  case 4:
  case 5:
    return division(type, depth);
  case 6:
    return chance(50) ? shift(type, depth) : castTo(type, depth - 1);
  case 7:
    return make("arith.select $0, $1, $2 : " + type, type,
                {comparison(depth - 1), integer(type, depth - 1), integer(type, depth - 1)});
  case 8:
    return chance(30) ? make("math.absi $0 : " + type, type, {integer(type, depth - 1)}) : castTo(type, depth - 1);
  default:
    return extract(type, depth);
  }
}

Expression Generator::comparison(int depth) {
  if (chance(6)) { // floats: exact operations only, since a rounding decides
    std::string predicate = pick({"olt", "ole", "ogt", "une", "ult", "oeq", "uno"});
    Expression factor = make("arith.constant 0.37 : f32", "f32");
    Expression left = make("arith.mulf $0, $1 : f32", "f32", {extract("f32", 0), factor});
    return make(
        "arith.cmpf " + predicate + ", $0, $1 : f32", "i1",
        {chance(50) ? left : make("arith.addf $0, $1 : f32", "f32", {left, extract("f32", 0)}), extract("f32", 0)});
  }
  std::string type = chance(70) ? "index" : pick({"i8", "i16", "i32", "i64"});
  std::string predicate =
      pick({"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", "slt", "sle", "sge"});
  if (type == "index" && chance(15))
    return make("index.cmp " + predicate + "($0, $1)", "i1", {integer(type, depth), integer(type, depth - 1)});
  return make("arith.cmpi " + predicate + ", $0, $1 : " + type, "i1", {integer(type, depth), integer(type, depth - 1)});
}

Expression Generator::numberLeaf() {
  switch (below(8)) {
  case 0:
    return make("arith.constant " +
                    std::string(pick({"0.0", "1.0", "-1.0", "0.37", "-20.0", "80.0", "1.0e-3", "-1.0e4"})) + " : f32",
                "f32");
  case 1: {
    std::string type = pick({"i1", "i8", "i16", "i32", "i64"});
    return make("arith." + std::string(pick({"sitofp", "uitofp"})) + " $0 : " + type + " to f32", "f32",
                {type == "i1" ? comparison(1) : integer(type, 1)});
  }
  case 2: {
    std::string type = pick({"f16", "bf16", "f64"});
    return make("arith." + std::string(type == "f64" ? "truncf" : "extf") + " $0 : " + type + " to f32", "f32",
                {extract(type, 1)});
  }
  case 3:
  case 4:
    return extract("f32", 1);
  default:
    return make("@s", "f32");
  }
}

/// Smooth functions; those of a part of the axis get an argument from there.
Expression Generator::function(int depth) {
  auto f32 = [](const std::string &op, std::vector<Expression> operands) {
    return make(op, "f32", std::move(operands));
  };
  auto one = [&] { return make("arith.constant 1.0 : f32", "f32"); };
  Expression inner = number(depth - 1);
  Expression size = f32("math.absf $0 : f32", {inner});
  switch (below(6)) {
  case 0:
  case 1: { // soft cap
    Expression cap = make("arith.constant " + std::string(pick({"5.0", "30.0", "1.0"})) + " : f32", "f32");
    Expression part = f32("arith.divf $0, $1 : f32", {inner, cap});
    return f32("arith.mulf $0, $1 : f32", {f32("math.tanh $0 : f32", {part}), cap});
  }
  case 2:
    return f32(std::string("math.") + pick({"exp", "exp2", "expm1"}) + " $0 : f32",
               {f32("arith.negf $0 : f32", {size})});
  case 3:
    return f32(std::string("math.") + pick({"sqrt", "log1p"}) + " $0 : f32",
               {f32("arith.addf $0, $1 : f32", {size, one()})});
  case 4:
    return f32("math.erf $0 : f32", {inner});
  default:
    return size;
  }
}

Expression Generator::number(int depth) {
  if (depth <= 0)
    return numberLeaf();
  auto f32 = [](const std::string &op, std::vector<Expression> operands) {
    return make(op, "f32", std::move(operands));
  };
  switch (below(12)) {
  case 0:
  case 1:
  case 2:
    return f32("arith.addf $0, $1 : f32", {make("@s", "f32"), number(depth - 1)});
  case 3:
    return f32("arith.addf $0, $1 : f32", {number(depth - 1), number(depth - 1)});
  case 4:
    return f32("arith.subf $0, $1 : f32", {number(depth - 1), number(depth - 1)});
  case 5:
    return f32("arith.mulf $0, $1 : f32", {number(depth - 1), number(depth - 1)});
  case 6:
    return f32(std::string("arith.") + pick({"maximumf", "minimumf", "maxnumf", "minnumf"}) + " $0, $1 : f32",
               {number(depth - 1), number(depth - 1)});
  case 7:
    return f32("arith.select $0, $1, $2 : f32", {comparison(depth - 1), number(depth - 1), number(depth - 1)});
  case 8: // a slope by head, as ALiBi
    return f32("arith.addf $0, $1 : f32",
               {make("@s", "f32"), f32("arith.mulf $0, $1 : f32",
                                       {extract("f32", 0), f32("arith.sitofp $0 : i32 to f32", {integer("i32", 1)})})});
  case 9:
    return f32("arith.negf $0 : f32", {number(depth - 1)});
  default:
    return function(depth);
  }
}

} // namespace attn::fuzz
