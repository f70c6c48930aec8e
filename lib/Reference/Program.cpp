//===- Program.cpp - A region as a list of scalar instructions --------------===//
#include "Program.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"

using namespace mlir;

namespace attn::reference {
namespace {

unsigned getIntegerWidth(Type type) {
  if (type.isIndex())
    return 64;
  auto integer = dyn_cast<IntegerType>(type);
  return integer ? integer.getWidth() : 0;
}

bool isScalar(Type type) {
  unsigned width = getIntegerWidth(type);
  return width ? width <= 64 : isa<FloatType>(type) && HostTensor::isSupported(type);
}

Slot makeInteger(int64_t value, Type type) { return Slot{type.isInteger(1) ? value & 1 : value}; }

} // namespace

std::optional<Slot> getConstant(Operation *op) {
  if (auto constant = dyn_cast<index::ConstantOp>(op))
    return Slot{constant.getValue().getSExtValue()};
  if (auto constant = dyn_cast<index::BoolConstantOp>(op))
    return Slot{constant.getValue()};
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (!constant || !isScalar(constant.getType()))
    return std::nullopt;
  if (auto value = dyn_cast<IntegerAttr>(constant.getValue()))
    return makeInteger(value.getType().isInteger(1) ? value.getValue().getZExtValue() : value.getValue().getSExtValue(),
                       constant.getType());
  Slot slot;
  slot.f = cast<FloatAttr>(constant.getValue()).getValueAsDouble();
  return slot;
}

/// Translates ops one after the other and keeps track of where values live and of what they depend on.
class Compiler {
public:
  Compiler(const Environment &outside, const Extents &extents, Rounding rounding)
      : outside(outside), extents(extents), rounding(rounding) {}

  void addArgument(BlockArgument argument, bool varies) { define(argument, Slot{0}, varies); }

  LogicalResult add(Operation *op) {
    if (std::optional<Slot> constant = getConstant(op)) {
      define(op->getResult(0), *constant, /*varies=*/false);
      return success();
    }
    Instruction instruction;
    if (op->getNumResults() != 1 || !isScalar(op->getResult(0).getType()) || op->getNumRegions() != 0)
      return refuse(op);
    describeResult(op->getResult(0).getType(), instruction);
    bool varies = false;
    if (failed(describeOperands(op, instruction, varies)))
      return failure();
    if (failed(translateScalarOp(op, instruction)) && failed(translatePredicate(op, instruction)))
      return refuse(op);
    define(op->getResult(0), Slot{0}, varies);
    instruction.result = slotOf.lookup(op->getResult(0));
    (varies ? program.perPair : program.once).push_back(std::move(instruction));
    return success();
  }

  LogicalResult finish(Value result) {
    unsigned slot;
    bool varies = false;
    if (failed(find(result, slot, varies)))
      return failure();
    program.yielded = slot;
    return success();
  }

  Program take() { return std::move(program); }

private:
  LogicalResult refuse(Operation *op) {
    return op->emitOpError("is not an op that the reference can interpret; use scalar arith, index and math ops, "
                           "tensor.extract, tensor.dim and the predicates of attn");
  }

  void define(Value value, Slot slot, bool varies) {
    slotOf[value] = program.slots.size();
    program.slots.push_back(slot);
    if (varies)
      varying.insert(value);
  }

  /// The slot of a value; values from outside get a constant one at first sight.
  LogicalResult find(Value value, unsigned &slot, bool &varies) {
    if (!slotOf.contains(value)) {
      auto known = outside.scalars.find(value);
      if (known == outside.scalars.end())
        return emitError(value.getLoc(), "the reference does not know this value inside the region");
      define(value, known->second, /*varies=*/false);
    }
    slot = slotOf.lookup(value);
    varies |= varying.contains(value);
    return success();
  }

  void describeResult(Type type, Instruction &instruction) {
    instruction.extents = extents;
    instruction.width = getIntegerWidth(type);
    if (rounding == Rounding::Typed && isa<FloatType>(type) && !type.isF64())
      instruction.roundTo = type;
  }

  LogicalResult describeOperands(Operation *op, Instruction &instruction, bool &varies) {
    for (Value operand : op->getOperands()) {
      if (isa<TensorType>(operand.getType())) {
        instruction.tensor = outside.tensors.lookup(operand);
        if (!instruction.tensor)
          return op->emitOpError("reads a tensor that the reference does not know");
        continue;
      }
      unsigned slot;
      if (failed(find(operand, slot, varies)))
        return failure();
      instruction.operands.push_back(slot);
      instruction.widths.push_back(getIntegerWidth(operand.getType()));
    }
    return success();
  }

  const Environment &outside;
  Extents extents;
  Rounding rounding;
  Program program;
  DenseMap<Value, unsigned> slotOf;
  DenseSet<Value> varying;
};

FailureOr<Program> Program::compile(Block &block, const Environment &outside, const Extents &extents, Rounding rounding,
                                    ArrayRef<unsigned> varying, unsigned result) {
  Compiler compiler(outside, extents, rounding);
  for (BlockArgument argument : block.getArguments())
    compiler.addArgument(argument, llvm::is_contained(varying, argument.getArgNumber()));
  for (Operation &op : block.without_terminator())
    if (failed(compiler.add(&op)))
      return failure();
  if (failed(compiler.finish(block.getTerminator()->getOperand(result))))
    return failure();
  return compiler.take();
}

FailureOr<Slot> Program::evaluate(Operation *op, const Environment &environment) {
  Compiler compiler(environment, Extents(), Rounding::Typed);
  if (failed(compiler.add(op)) || failed(compiler.finish(op->getResult(0))))
    return failure();
  Program program = compiler.take();
  program.runOnce();
  return program.runVarying();
}

void Program::run(const std::vector<Instruction> &instructions) {
  for (const Instruction &instruction : instructions) {
    Slot value = instruction.run(Call{instruction, slots.data()});
    if (instruction.roundTo)
      value.f = roundToType(value.f, instruction.roundTo);
    slots[instruction.result] = value;
  }
}

} // namespace attn::reference
