//===- ScalarOps.cpp - Scalar ops of upstream dialects, one line each -------===//
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace attn::reference {
namespace {

using C = const Call &;
using Table = llvm::StringMap<InstructionFunction>;

bool isBadDivision(int64_t a, int64_t b) { return b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()); }
int64_t divide(int64_t a, int64_t b) { return isBadDivision(a, b) ? 0 : a / b; }
int64_t remainder(int64_t a, int64_t b) { return isBadDivision(a, b) ? 0 : a % b; }
int64_t ceilDivide(int64_t a, int64_t b) {
  return isBadDivision(a, b) ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}
uint64_t divide(uint64_t a, uint64_t b) { return b ? a / b : 0; }
uint64_t ceilDivide(uint64_t a, uint64_t b) { return b ? a / b + (a % b != 0) : 0; }
uint64_t remainder(uint64_t a, uint64_t b) { return b ? a % b : 0; }

/// The least number of a narrow type by -1: its quotient is not in the type.
bool isTooLarge(C c) { return c.s(1) == -1 && c.s(0) == std::numeric_limits<int64_t>::min() >> (64 - c.op.width); }

int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0)
    return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = uint64_t(base) * base)
    if (exponent & 1)
      result *= base;
  return result;
}

/// Saturating, so that it is defined for every float.
int64_t toInteger(double value, unsigned width, bool isSigned) {
  if (std::isnan(value))
    return 0;
  double most = std::ldexp(1.0, isSigned ? width - 1 : width), least = isSigned ? -most : 0;
  if (value >= most)
    return isSigned ? int64_t((uint64_t(1) << (width - 1)) - 1) : -1;
  value = std::max(value, least);
  return value >= 0x1p63 ? int64_t(uint64_t(value)) : int64_t(value);
}

// NaN wins in maximum and minimum and loses in maxnum and minnum; +0 is larger than -0.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
double minimum(double a, double b) { return -maximum(-a, -b); }

bool compareIntegers(int64_t predicate, int64_t a, int64_t b, uint64_t ua, uint64_t ub) {
  switch (static_cast<arith::CmpIPredicate>(predicate)) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return ua < ub;
  case arith::CmpIPredicate::ule:
    return ua <= ub;
  case arith::CmpIPredicate::ugt:
    return ua > ub;
  case arith::CmpIPredicate::uge:
    return ua >= ub;
  }
  llvm_unreachable("unknown integer predicate");
}

/// A float predicate is the set of relations that make it true: params are equal, greater, less, unordered.
Slot compareFloats(C c) {
  double a = c.f(0), b = c.f(1);
  return c.boolean(c.param(std::isnan(a) || std::isnan(b) ? 3 : a == b ? 0 : a > b ? 1 : 2));
}

void describeFloatPredicate(StringRef name, Instruction &instruction) {
  bool unordered = name.consume_front("u"), ordered = !unordered && name.consume_front("o");
  if (name == "no" || name == "rd") { // uno, ord
    instruction.params = {ordered, ordered, ordered, unordered};
    return;
  }
  if (name == "true" || name == "false") {
    instruction.params.assign(4, name == "true");
    return;
  }
  bool equal = name == "eq" || name == "ge" || name == "le", greater = name == "gt" || name == "ge" || name == "ne",
       less = name == "lt" || name == "le" || name == "ne";
  instruction.params = {equal, greater, less, unordered};
}

Slot extract(C c) {
  llvm::SmallVector<int64_t, 8> indices;
  for (unsigned d = 0; d < c.op.operands.size(); ++d)
    indices.push_back(c.s(d));
  return readNearest(*c.op.tensor, indices);
}

Slot extent(C c) {
  int64_t d = c.s(0);
  return Slot{d >= 0 && d < c.op.tensor->getRank() ? c.op.tensor->shape[d] : 0};
}

void addIntegerOps(Table &table, StringRef dialect, llvm::ArrayRef<std::pair<StringRef, InstructionFunction>> ops) {
  for (auto [name, function] : ops)
    table[(dialect + "." + name).str()] = function;
}

#define INTEGER(EXPRESSION) [](C c) -> Slot { return c.integer(EXPRESSION); }
#define NUMBER(EXPRESSION) [](C c) -> Slot { return c.number(EXPRESSION); }
#define BOOLEAN(EXPRESSION) [](C c) -> Slot { return c.boolean(EXPRESSION); }

void addIntegers(Table &table) {
  InstructionFunction add = INTEGER(c.u(0) + c.u(1)), sub = INTEGER(c.u(0) - c.u(1)), mul = INTEGER(c.u(0) * c.u(1)),
                      divs = INTEGER(isTooLarge(c) ? 0 : divide(c.s(0), c.s(1))),
                      divu = INTEGER(divide(c.u(0), c.u(1))),
                      floordivs = INTEGER(isTooLarge(c) ? 0 : floorDivide(c.s(0), c.s(1))),
                      ceildivs = INTEGER(isTooLarge(c) ? 0 : ceilDivide(c.s(0), c.s(1))),
                      ceildivu = INTEGER(ceilDivide(c.u(0), c.u(1))), rems = INTEGER(remainder(c.s(0), c.s(1))),
                      remu = INTEGER(remainder(c.u(0), c.u(1))), conjunction = INTEGER(c.u(0) & c.u(1)),
                      disjunction = INTEGER(c.u(0) | c.u(1)), exclusive = INTEGER(c.u(0) ^ c.u(1)),
                      shl = INTEGER(c.u(1) < c.op.width ? c.u(0) << c.u(1) : 0),
                      shru = INTEGER(c.u(1) < c.op.width ? c.u(0) >> c.u(1) : 0),
                      shrs = INTEGER(c.u(1) < c.op.width ? c.s(0) >> c.u(1) : 0),
                      maxs = INTEGER(std::max(c.s(0), c.s(1))), mins = INTEGER(std::min(c.s(0), c.s(1))),
                      maxu = INTEGER(std::max(c.u(0), c.u(1))), minu = INTEGER(std::min(c.u(0), c.u(1)));
  addIntegerOps(table, "arith", {{"addi", add},           {"subi", sub},           {"muli", mul},
                                 {"divsi", divs},         {"divui", divu},         {"floordivsi", floordivs},
                                 {"ceildivsi", ceildivs}, {"ceildivui", ceildivu}, {"remsi", rems},
                                 {"remui", remu},         {"andi", conjunction},   {"ori", disjunction},
                                 {"xori", exclusive},     {"shli", shl},           {"shrui", shru},
                                 {"shrsi", shrs},         {"maxsi", maxs},         {"minsi", mins},
                                 {"maxui", maxu},         {"minui", minu}});
  addIntegerOps(table, "index", {{"add", add},           {"sub", sub},           {"mul", mul},
                                 {"divs", divs},         {"divu", divu},         {"floordivs", floordivs},
                                 {"ceildivs", ceildivs}, {"ceildivu", ceildivu}, {"rems", rems},
                                 {"remu", remu},         {"and", conjunction},   {"or", disjunction},
                                 {"xor", exclusive},     {"shl", shl},           {"shru", shru},
                                 {"shrs", shrs},         {"maxs", maxs},         {"mins", mins},
                                 {"maxu", maxu},         {"minu", minu}});
  InstructionFunction compare = BOOLEAN(compareIntegers(c.param(0), c.s(0), c.s(1), c.u(0), c.u(1)));
  table["arith.cmpi"] = table["index.cmp"] = compare;
  table["math.absi"] = INTEGER(c.s(0) < 0 ? -uint64_t(c.s(0)) : c.s(0));
  table["math.ipowi"] = INTEGER(power(c.s(0), c.s(1)));
  table["math.ctpop"] = INTEGER(llvm::popcount(c.u(0)));
  table["math.ctlz"] = INTEGER(llvm::countl_zero(c.u(0)) - (64 - c.op.width));
  table["math.cttz"] = INTEGER(std::min<uint64_t>(llvm::countr_zero(c.u(0)), c.op.width));
}

void addCasts(Table &table) {
  InstructionFunction signExtend = INTEGER(c.s(0)), zeroExtend = INTEGER(c.u(0)), keep = NUMBER(c.f(0));
  table["arith.index_cast"] = table["index.casts"] = table["arith.extsi"] = signExtend;
  table["arith.index_castui"] = table["index.castu"] = table["arith.extui"] = table["arith.trunci"] = zeroExtend;
  table["arith.extf"] = table["arith.truncf"] = keep;
  table["arith.sitofp"] = NUMBER(c.s(0));
  table["arith.uitofp"] = NUMBER(c.u(0));
  table["arith.fptosi"] = INTEGER(toInteger(c.f(0), c.op.width, /*isSigned=*/true));
  table["arith.fptoui"] = INTEGER(toInteger(c.f(0), c.op.width, /*isSigned=*/false));
  table["arith.select"] = [](C c) -> Slot { return c.slots[c.op.operands[c.u(0) ? 1 : 2]]; };
}

void addFloats(Table &table) {
  table["arith.addf"] = NUMBER(c.f(0) + c.f(1));
  table["arith.subf"] = NUMBER(c.f(0) - c.f(1));
  table["arith.mulf"] = NUMBER(c.f(0) * c.f(1));
  table["arith.divf"] = NUMBER(c.f(0) / c.f(1));
  table["arith.remf"] = NUMBER(std::fmod(c.f(0), c.f(1)));
  table["arith.negf"] = NUMBER(-c.f(0));
  table["arith.maximumf"] = NUMBER(maximum(c.f(0), c.f(1)));
  table["arith.minimumf"] = NUMBER(minimum(c.f(0), c.f(1)));
  table["arith.maxnumf"] = NUMBER(std::fmax(c.f(0), c.f(1)));
  table["arith.minnumf"] = NUMBER(std::fmin(c.f(0), c.f(1)));
  table["arith.cmpf"] = compareFloats;
  table["math.isfinite"] = BOOLEAN(std::isfinite(c.f(0)));
  table["math.isinf"] = BOOLEAN(std::isinf(c.f(0)));
  table["math.isnan"] = BOOLEAN(std::isnan(c.f(0)));
  table["math.fma"] = NUMBER(std::fma(c.f(0), c.f(1), c.f(2)));
  table["math.clampf"] = NUMBER(minimum(maximum(c.f(0), c.f(1)), c.f(2)));
  table["math.powf"] = NUMBER(std::pow(c.f(0), c.f(1)));
  table["math.fpowi"] = NUMBER(std::pow(c.f(0), c.s(1)));
  table["math.atan2"] = NUMBER(std::atan2(c.f(0), c.f(1)));
  table["math.copysign"] = NUMBER(std::copysign(c.f(0), c.f(1)));
  table["math.rsqrt"] = NUMBER(1 / std::sqrt(c.f(0)));
}

#define UNARY(NAME, FUNCTION) table["math." NAME] = NUMBER(std::FUNCTION(c.f(0)))

void addFunctions(Table &table) {
  UNARY("absf", fabs);
  UNARY("acos", acos);
  UNARY("acosh", acosh);
  UNARY("asin", asin);
  UNARY("asinh", asinh);
  UNARY("atan", atan);
  UNARY("atanh", atanh);
  UNARY("cbrt", cbrt);
  UNARY("ceil", ceil);
  UNARY("cos", cos);
  UNARY("cosh", cosh);
  UNARY("erf", erf);
  UNARY("erfc", erfc);
  UNARY("exp", exp);
  UNARY("exp2", exp2);
  UNARY("expm1", expm1);
  UNARY("floor", floor);
  UNARY("log", log);
  UNARY("log10", log10);
  UNARY("log1p", log1p);
  UNARY("log2", log2);
  UNARY("round", round);
  UNARY("roundeven", nearbyint);
  UNARY("sin", sin);
  UNARY("sinh", sinh);
  UNARY("sqrt", sqrt);
  UNARY("tan", tan);
  UNARY("tanh", tanh);
  UNARY("trunc", trunc);
}

#undef UNARY
#undef BOOLEAN
#undef NUMBER
#undef INTEGER

const Table &getTable() {
  static const Table table = [] {
    Table table;
    addIntegers(table);
    addCasts(table);
    addFloats(table);
    addFunctions(table);
    table["tensor.extract"] = extract;
    table["tensor.dim"] = extent;
    return table;
  }();
  return table;
}

int64_t getIntegerPredicate(StringRef name) { return static_cast<int64_t>(*arith::symbolizeCmpIPredicate(name)); }

} // namespace

int64_t floorDivide(int64_t a, int64_t b) {
  return isBadDivision(a, b) ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t floorModulo(int64_t a, int64_t b) { return isBadDivision(a, b) ? 0 : a - floorDivide(a, b) * b; }

Slot readNearest(const HostTensor &tensor, llvm::ArrayRef<int64_t> indices) {
  int64_t flat = 0;
  for (auto [index, extent] : llvm::zip_equal(indices, tensor.shape)) {
    if (extent == 0)
      return Slot{0};
    flat = flat * extent + std::clamp<int64_t>(index, 0, extent - 1);
  }
  Slot slot;
  if (tensor.isFloat())
    slot.f = tensor.getDouble(flat);
  else
    slot.i = tensor.getInt(flat);
  return slot;
}

LogicalResult translateScalarOp(Operation *op, Instruction &instruction) {
  auto found = getTable().find(op->getName().getStringRef());
  if (found == getTable().end())
    return failure();
  instruction.run = found->second;
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    instruction.params.push_back(getIntegerPredicate(arith::stringifyCmpIPredicate(compare.getPredicate())));
  else if (auto compare = dyn_cast<index::CmpOp>(op))
    instruction.params.push_back(getIntegerPredicate(index::stringifyIndexCmpPredicate(compare.getPred())));
  else if (auto compare = dyn_cast<arith::CmpFOp>(op))
    describeFloatPredicate(arith::stringifyCmpFPredicate(compare.getPredicate()), instruction);
  return success();
}

} // namespace attn::reference
