//===- ScalarTest.cpp - Scalar ops mean what MLIR's own folders say ---------===//
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using attn::reference::Environment;
using attn::reference::Program;
using attn::reference::Slot;

namespace {

/// Ops on %a, %b: `type`, %c: i1; every pair of `values` is tried.
struct Scalar : testing::TestWithParam<const char *> {};

/// The op's value by MLIR's folder; null where it does not fold.
Attribute fold(Operation *op) {
  llvm::SmallVector<Attribute> operands;
  for (Value operand : op->getOperands())
    operands.push_back(cast<arith::ConstantOp>(operand.getDefiningOp()).getValue());
  llvm::SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.empty())
    return {};
  if (auto attribute = dyn_cast<Attribute>(results.front()))
    return attribute;
  return cast<arith::ConstantOp>(cast<Value>(results.front()).getDefiningOp()).getValue();
}

void expectEqual(Attribute folded, Slot slot, llvm::StringRef text) {
  if (auto integer = dyn_cast<IntegerAttr>(folded)) {
    int64_t want =
        integer.getType().isInteger(1) ? integer.getValue().getZExtValue() : integer.getValue().getSExtValue();
    EXPECT_EQ(slot.i, want) << text.str();
    return;
  }
  double want = cast<FloatAttr>(folded).getValueAsDouble();
  if (std::isnan(want))
    EXPECT_TRUE(std::isnan(slot.f)) << text.str();
  else if (std::isinf(want) || want == 0)
    EXPECT_EQ(slot.f, want) << text.str();
  else
    EXPECT_NEAR(slot.f, want, 1e-6 * std::abs(want)) << text.str();
}

/// Runs the op of `text` on constants; answers whether MLIR folded it, so that there was something to compare.
bool compareWithFolder(MLIRContext &context, const std::string &text) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
  EXPECT_TRUE(bool(module)) << text;
  if (!module)
    return false;
  Environment environment;
  for (Operation &op : *module->getBody()) {
    if (auto constant = attn::reference::getConstant(&op)) {
      environment.scalars[op.getResult(0)] = *constant;
      continue;
    }
    FailureOr<Slot> slot = Program::evaluate(&op, environment);
    EXPECT_TRUE(succeeded(slot)) << text;
    Attribute folded = fold(&op);
    if (failed(slot) || !folded)
      return false;
    expectEqual(folded, *slot, text);
  }
  return true;
}

std::string makeText(llvm::StringRef op, llvm::StringRef type, llvm::StringRef a, llvm::StringRef b) {
  std::string text;
  llvm::raw_string_ostream(text) << "%a = arith.constant " << a << " : " << type << "\n%b = arith.constant " << b
                                 << " : " << type << "\n%c = " << op << "\n";
  return text;
}

void tryAll(const char *op, llvm::StringRef type, llvm::ArrayRef<const char *> values) {
  DialectRegistry registry;
  registry.insert<arith::ArithDialect, index::IndexDialect, math::MathDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  int compared = 0;
  for (const char *a : values)
    for (const char *b : values)
      compared += compareWithFolder(context, makeText(op, type, a, b));
  EXPECT_GT(compared, 0) << op << " was never folded";
}

struct Integers : Scalar {};
TEST_P(Integers, LikeTheFolder) {
  tryAll(GetParam(), "i8", {"0", "1", "2", "3", "7", "100", "127", "-1", "-2", "-3", "-7", "-100", "-128"});
}
INSTANTIATE_TEST_SUITE_P(
    Arith, Integers,
    testing::Values("arith.addi %a, %b : i8", "arith.subi %a, %b : i8", "arith.muli %a, %b : i8",
                    "arith.divsi %a, %b : i8", "arith.divui %a, %b : i8", "arith.floordivsi %a, %b : i8",
                    "arith.ceildivsi %a, %b : i8", "arith.ceildivui %a, %b : i8", "arith.remsi %a, %b : i8",
                    "arith.remui %a, %b : i8", "arith.andi %a, %b : i8", "arith.ori %a, %b : i8",
                    "arith.xori %a, %b : i8", "arith.shli %a, %b : i8", "arith.shrsi %a, %b : i8",
                    "arith.shrui %a, %b : i8", "arith.maxsi %a, %b : i8", "arith.maxui %a, %b : i8",
                    "arith.minsi %a, %b : i8", "arith.minui %a, %b : i8", "arith.cmpi slt, %a, %b : i8",
                    "arith.cmpi sle, %a, %b : i8", "arith.cmpi ult, %a, %b : i8", "arith.cmpi uge, %a, %b : i8",
                    "arith.cmpi eq, %a, %b : i8", "arith.cmpi ne, %a, %b : i8", "arith.extsi %a : i8 to i32",
                    "arith.extui %a : i8 to i32", "arith.trunci %a : i8 to i1", "arith.trunci %a : i8 to i4",
                    "arith.index_cast %a : i8 to index", "arith.index_castui %a : i8 to index",
                    "arith.sitofp %a : i8 to f32", "arith.uitofp %a : i8 to f32", "math.absi %a : i8",
                    "math.ctpop %a : i8", "math.ctlz %a : i8", "math.cttz %a : i8"));

struct Indices : Scalar {};
TEST_P(Indices, LikeTheFolder) {
  tryAll(GetParam(), "index", {"0", "1", "2", "3", "7", "1000", "-1", "-2", "-3", "-7", "-1000"});
}
INSTANTIATE_TEST_SUITE_P(Index, Indices,
                         testing::Values("index.add %a, %b", "index.sub %a, %b", "index.mul %a, %b",
                                         "index.divs %a, %b", "index.divu %a, %b", "index.floordivs %a, %b",
                                         "index.ceildivs %a, %b", "index.ceildivu %a, %b", "index.rems %a, %b",
                                         "index.remu %a, %b", "index.and %a, %b", "index.or %a, %b", "index.xor %a, %b",
                                         "index.shl %a, %b", "index.maxs %a, %b", "index.mins %a, %b",
                                         "index.cmp slt(%a, %b)", "index.cmp ult(%a, %b)", "index.cmp uge(%a, %b)",
                                         "index.cmp sge(%a, %b)", "index.casts %a : index to i32"));

struct Floats : Scalar {};
TEST_P(Floats, LikeTheFolder) {
  tryAll(GetParam(), "f32",
         {"0.0", "-0.0", "0.5", "1.5", "-2.5", "3.0", "1.0e30", "-1.0e30", "0x7F800000", "0x7FC00000"});
}
INSTANTIATE_TEST_SUITE_P(
    Float, Floats,
    testing::Values("arith.addf %a, %b : f32", "arith.subf %a, %b : f32", "arith.mulf %a, %b : f32",
                    "arith.divf %a, %b : f32", "arith.remf %a, %b : f32", "arith.negf %a : f32",
                    "arith.maximumf %a, %b : f32", "arith.minimumf %a, %b : f32", "arith.maxnumf %a, %b : f32",
                    "arith.minnumf %a, %b : f32", "arith.cmpf oeq, %a, %b : f32", "arith.cmpf one, %a, %b : f32",
                    "arith.cmpf olt, %a, %b : f32", "arith.cmpf oge, %a, %b : f32", "arith.cmpf ueq, %a, %b : f32",
                    "arith.cmpf une, %a, %b : f32", "arith.cmpf ult, %a, %b : f32", "arith.cmpf uge, %a, %b : f32",
                    "arith.cmpf ord, %a, %b : f32", "arith.cmpf uno, %a, %b : f32", "arith.extf %a : f32 to f64",
                    "arith.fptosi %a : f32 to i64", "math.absf %a : f32", "math.ceil %a : f32", "math.floor %a : f32",
                    "math.sqrt %a : f32", "math.exp2 %a : f32", "math.exp %a : f32", "math.log2 %a : f32",
                    "math.tanh %a : f32", "math.powf %a, %b : f32", "math.copysign %a, %b : f32",
                    "math.roundeven %a : f32", "math.round %a : f32", "math.trunc %a : f32", "math.erf %a : f32"));

} // namespace
