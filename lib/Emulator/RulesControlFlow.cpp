//===- RulesControlFlow.cpp - scf.if, scf.for and scf.while -----------------===//
//
// Under a condition on which the lanes agree an op stays what it is. Else its regions run under a mask while any lane
// is active, and each value that they hand on is taken by the active lanes alone.
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attn::emulator {
namespace {

/// Values of the kernel that a region takes or hands on, as one flat list of components.
class Carried {
public:
  Carried(WarpBuilder &b, ValueRange values) : b(b), values(values) {}

  /// The components of `source`, as lanes where these values vary.
  SmallVector<Value> collect(ValueRange source) const {
    SmallVector<Value> components;
    for (auto [from, to] : llvm::zip_equal(source, values))
      for (Value component : b.get(from)) {
        assert((b.isVaryingInKernel(to) || !b.isVarying(component)) && "a rule broke its promise of agreement");
        components.push_back(b.isVaryingInKernel(to) ? b.splat(component) : component);
      }
    return components;
  }

  void bind(ValueRange components) const {
    for (Value value : values) {
      size_t count = componentTypes(value.getType())->size();
      b.set(value, Components(components.take_front(count)));
      components = components.drop_front(count);
    }
  }

  SmallVector<Type> types() const {
    SmallVector<Type> all;
    for (Value value : values) {
      SmallVector<Type> components = *componentTypes(value.getType());
      for (Type type : components)
        all.push_back(b.likeLanes(type, b.isVaryingInKernel(value)));
    }
    return all;
  }

  /// Zeros, for who has no value yet.
  SmallVector<Value> zeros() const {
    SmallVector<Value> all;
    for (Type type : types()) {
      Value zero = b.constantLike(getElementTypeOrSelf(type), 0);
      all.push_back(isa<VectorType>(type) ? b.splat(zero) : zero);
    }
    return all;
  }

private:
  WarpBuilder &b;
  ValueRange values;
};

SmallVector<Value> selectAll(WarpBuilder &b, Value mask, ValueRange yes, ValueRange no) {
  SmallVector<Value> all;
  for (auto [a, c] : llvm::zip_equal(yes, no))
    all.push_back(arith::SelectOp::create(b, b.loc, mask, b.splat(a), b.splat(c)));
  return all;
}

LogicalResult checkTypes(Operation *op, ValueRange values) {
  for (Value value : values)
    if (failed(componentTypes(value.getType())))
      return op->emitError("the emulator does not know values of type ") << value.getType();
  return success();
}

/// An scf.if whose blocks are empty.
scf::IfOp createIf(WarpBuilder &b, TypeRange types, Value condition, bool hasElse) {
  auto branch = scf::IfOp::create(b, b.loc, types, condition, hasElse);
  for (Region *side : branch.getRegions())
    if (!side->empty())
      side->front().clear();
  return branch;
}

/// Runs one side of a branch under `mask` if any lane is active; `values` are what it yields.
FailureOr<SmallVector<Value>> runMasked(WarpBuilder &b, Block *side, Value mask, const Carried &results) {
  auto branch = createIf(b, results.types(), b.isAnyActive(mask), /*hasElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  if (failed(b.rewriteBlock(*side, mask)))
    return failure();
  SmallVector<Value> yielded;
  if (auto yield = dyn_cast<scf::YieldOp>(side->getTerminator()))
    yielded = results.collect(yield.getOperands());
  scf::YieldOp::create(b, b.loc, yielded);
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, b.loc, results.zeros());
  return SmallVector<Value>(branch.getResults());
}

LogicalResult rewriteDivergentIf(WarpBuilder &b, scf::IfOp op, Value condition) {
  Carried results(b, op.getResults());
  Value yes = b.andMask(condition);
  Value allTrue = b.splat(b.constantInt(1, 1));
  Value no = b.andMask(arith::XOrIOp::create(b, b.loc, condition, allTrue));
  auto thenValues = runMasked(b, op.thenBlock(), yes, results);
  if (failed(thenValues))
    return failure();
  if (!op.elseBlock())
    return success();
  auto elseValues = runMasked(b, op.elseBlock(), no, results);
  if (failed(elseValues))
    return failure();
  results.bind(selectAll(b, condition, *thenValues, *elseValues));
  return success();
}

LogicalResult runSide(WarpBuilder &b, Block *from, Block *to, const Carried &results) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(to);
  if (failed(b.rewriteBlock(*from, b.getMask())))
    return failure();
  scf::YieldOp::create(b, b.loc, results.collect(from->getTerminator()->getOperands()));
  return success();
}

LogicalResult rewriteIf(WarpBuilder &b, Operation *op) {
  auto branch = cast<scf::IfOp>(op);
  Value condition = b.getOne(branch.getCondition());
  if (failed(checkTypes(op, op->getResults())))
    return failure();
  if (WarpBuilder::isVarying(condition))
    return rewriteDivergentIf(b, branch, condition);
  Carried results(b, branch.getResults());
  bool hasElse = branch.elseBlock();
  auto copy = createIf(b, results.types(), condition, hasElse);
  if (failed(runSide(b, branch.thenBlock(), copy.thenBlock(), results)) ||
      (hasElse && failed(runSide(b, branch.elseBlock(), copy.elseBlock(), results))))
    return failure();
  results.bind(copy.getResults());
  return success();
}

LogicalResult rewriteUniformFor(WarpBuilder &b, scf::ForOp op) {
  Carried args(b, op.getRegionIterArgs());
  auto copy = scf::ForOp::create(b, b.loc, b.getOne(op.getLowerBound()), b.getOne(op.getUpperBound()),
                                 b.getOne(op.getStep()), args.collect(op.getInitArgs()), nullptr, op.getUnsignedCmp());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = copy.getBody();
    body->clear();
    b.setInsertionPointToStart(body);
    b.set(op.getInductionVar(), {copy.getInductionVar()});
    args.bind(copy.getRegionIterArgs());
    if (failed(b.rewriteBlock(*op.getBody(), b.getMask())))
      return failure();
    scf::YieldOp::create(b, b.loc, args.collect(op.getYieldedValues()));
  }
  Carried(b, op.getResults()).bind(copy.getResults());
  return success();
}

/// A loop over (mask, values...) while any lane is active. `body` gets the values under the mask and returns the next.
using Step = llvm::function_ref<FailureOr<SmallVector<Value>>(Value mask, ValueRange values)>;

FailureOr<SmallVector<Value>> loopWhileActive(WarpBuilder &b, Value mask, ArrayRef<Value> inits, Step body) {
  SmallVector<Value> all{mask};
  all.append(inits.begin(), inits.end());
  SmallVector<Type> types(ValueRange(all).getTypes());
  SmallVector<Location> locations(all.size(), b.loc);
  auto loop = scf::WhileOp::create(b, b.loc, types, all);
  OpBuilder::InsertionGuard guard(b);
  Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
  scf::ConditionOp::create(b, b.loc, b.isAnyActive(before->getArgument(0)), before->getArguments());
  Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
  auto next = body(after->getArgument(0), after->getArguments().drop_front());
  if (failed(next))
    return failure();
  scf::YieldOp::create(b, b.loc, *next);
  return SmallVector<Value>(ValueRange(loop.getResults()).drop_front());
}

LogicalResult rewriteDivergentFor(WarpBuilder &b, scf::ForOp op) {
  Carried args(b, op.getRegionIterArgs());
  Value upper = b.splat(b.getOne(op.getUpperBound())), step = b.splat(b.getOne(op.getStep()));
  auto less = op.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  SmallVector<Value> inits{b.splat(b.getOne(op.getLowerBound()))};
  llvm::append_range(inits, args.collect(op.getInitArgs()));
  Value first = b.andMask(arith::CmpIOp::create(b, b.loc, less, inits[0], upper));
  auto results = loopWhileActive(b, first, inits, [&](Value mask, ValueRange values) -> FailureOr<SmallVector<Value>> {
    b.set(op.getInductionVar(), {values[0]});
    args.bind(values.drop_front());
    if (failed(b.rewriteBlock(*op.getBody(), mask)))
      return failure();
    Value next = arith::AddIOp::create(b, b.loc, values[0], step);
    Value inside = arith::CmpIOp::create(b, b.loc, less, next, upper);
    SmallVector<Value> all{arith::AndIOp::create(b, b.loc, mask, inside), next};
    llvm::append_range(all, selectAll(b, mask, args.collect(op.getYieldedValues()), values.drop_front()));
    return all;
  });
  if (failed(results))
    return failure();
  Carried(b, op.getResults()).bind(ValueRange(*results).drop_front());
  return success();
}

LogicalResult rewriteFor(WarpBuilder &b, Operation *op) {
  auto loop = cast<scf::ForOp>(op);
  if (failed(checkTypes(op, loop.getRegionIterArgs())))
    return failure();
  bool diverges = llvm::any_of(ValueRange{loop.getLowerBound(), loop.getUpperBound(), loop.getStep()},
                               [&](Value bound) { return b.isVaryingInKernel(bound); });
  return diverges ? rewriteDivergentFor(b, loop) : rewriteUniformFor(b, loop);
}

LogicalResult rewriteUniformWhile(WarpBuilder &b, scf::WhileOp op) {
  Carried before(b, op.getBeforeArguments()), after(b, op.getAfterArguments());
  SmallVector<Type> beforeTypes = before.types(), afterTypes = after.types();
  auto copy = scf::WhileOp::create(b, b.loc, afterTypes, before.collect(op.getInits()));
  {
    OpBuilder::InsertionGuard guard(b);
    Block *head = b.createBlock(&copy.getBefore(), {}, beforeTypes, SmallVector<Location>(beforeTypes.size(), b.loc));
    before.bind(head->getArguments());
    if (failed(b.rewriteBlock(*op.getBeforeBody(), b.getMask())))
      return failure();
    scf::ConditionOp condition = op.getConditionOp();
    scf::ConditionOp::create(b, b.loc, b.getOne(condition.getCondition()), after.collect(condition.getArgs()));
    Block *body = b.createBlock(&copy.getAfter(), {}, afterTypes, SmallVector<Location>(afterTypes.size(), b.loc));
    after.bind(body->getArguments());
    if (failed(b.rewriteBlock(*op.getAfterBody(), b.getMask())))
      return failure();
    scf::YieldOp::create(b, b.loc, before.collect(op.getYieldOp().getOperands()));
  }
  Carried(b, op.getResults()).bind(copy.getResults());
  return success();
}

// Carries (mask, inputs of the condition, results so far). A lane that leaves keeps the results it left with.
LogicalResult rewriteDivergentWhile(WarpBuilder &b, scf::WhileOp op) {
  Carried before(b, op.getBeforeArguments()), after(b, op.getAfterArguments());
  SmallVector<Value> inits = before.collect(op.getInits());
  size_t numInputs = inits.size();
  llvm::append_range(inits, after.zeros());
  Value all = b.splat(b.constantInt(1, 1));
  auto results =
      loopWhileActive(b, b.andMask(all), inits, [&](Value mask, ValueRange values) -> FailureOr<SmallVector<Value>> {
        before.bind(values.take_front(numInputs));
        if (failed(b.rewriteBlock(*op.getBeforeBody(), mask)))
          return failure();
        scf::ConditionOp condition = op.getConditionOp();
        SmallVector<Value> left = selectAll(b, mask, after.collect(condition.getArgs()), values.drop_front(numInputs));
        Value goesOn = arith::AndIOp::create(b, b.loc, mask, b.splat(b.getOne(condition.getCondition())));
        after.bind(left);
        auto next = runMasked(b, op.getAfterBody(), goesOn, before);
        if (failed(next))
          return failure();
        SmallVector<Value> carried{goesOn};
        llvm::append_range(carried, *next);
        llvm::append_range(carried, left);
        return carried;
      });
  if (failed(results))
    return failure();
  Carried(b, op.getResults()).bind(ValueRange(*results).drop_front(numInputs));
  return success();
}

LogicalResult rewriteWhile(WarpBuilder &b, Operation *op) {
  auto loop = cast<scf::WhileOp>(op);
  if (failed(checkTypes(op, loop.getBeforeArguments())) || failed(checkTypes(op, loop.getAfterArguments())))
    return failure();
  bool diverges = b.isVaryingInKernel(loop.getConditionOp().getCondition());
  return diverges ? rewriteDivergentWhile(b, loop) : rewriteUniformWhile(b, loop);
}

} // namespace

void addControlFlowRules(RuleTable &rules) {
  rules["scf.if"] = {rewriteIf, Agreement::Operands, /*counted=*/false};
  rules["scf.for"] = {rewriteFor, Agreement::Operands, /*counted=*/false};
  rules["scf.while"] = {rewriteWhile, Agreement::Operands, /*counted=*/false};
}

} // namespace attn::emulator
