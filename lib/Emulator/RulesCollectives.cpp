//===- RulesCollectives.cpp - Thread ids, barriers, shuffles and votes ------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <cstddef>

using namespace mlir;

namespace attn::emulator {
namespace {

template <unsigned Offset>
LogicalResult rewriteLaneRegister(WarpBuilder &b, Operation *op) {
  b.set(op->getResult(0), {b.loadFromWarp(b.lanesOf(b.getI32Type()), Offset)});
  return success();
}

template <unsigned Offset>
LogicalResult rewriteRegister(WarpBuilder &b, Operation *op) {
  b.set(op->getResult(0), {b.loadFromWarp(b.getI32Type(), Offset)});
  return success();
}

LogicalResult rewriteLaneId(WarpBuilder &b, Operation *op) {
  b.set(op->getResult(0), {b.laneNumbers()});
  return success();
}

LogicalResult rewriteWarpSize(WarpBuilder &b, Operation *op) {
  b.set(op->getResult(0), {b.constantInt(kLanes)});
  return success();
}

void buildBarrier(WarpBuilder &b, Operation *op, Value id, Value threads, bool waits) {
  Value idComponent = id ? b.anyActiveLane(b.getOne(id)) : b.constantInt(0);
  Value count = threads ? b.anyActiveLane(b.getOne(threads)) : b.constantInt(0);
  b.call("attn_emu_barrier", Type(), {b.getWarp(), b.site(op), b.maskBits(), idComponent, count, b.constantInt(waits)});
}

LogicalResult rewriteBarrier0(WarpBuilder &b, Operation *op) {
  buildBarrier(b, op, Value(), Value(), /*waits=*/true);
  return success();
}

/// The predicate of the lanes that take part, as bits.
Value ballot(WarpBuilder &b, Value predicate) { return b.toBits(b.andMask(predicate)); }

/// Over the predicates of all threads of the block.
LogicalResult rewriteReducingBarrier(WarpBuilder &b, NVVM::BarrierOp op, NVVM::BarrierReduction reduction) {
  if (op.getBarrierId() || op.getNumberOfThreads())
    return op.emitError("the emulator knows reductions at barrier 0 of all threads only");
  static_assert(int(NVVM::BarrierReduction::POPC) == 0 && int(NVVM::BarrierReduction::AND) == 1 &&
                    int(NVVM::BarrierReduction::OR) == 2,
                "the runtime numbers the kinds so");
  Value given = b.splat(b.getOne(op.getReductionPredicate())), none = b.splat(b.constantInt(0));
  Value holds = arith::CmpIOp::create(b, b.loc, arith::CmpIPredicate::ne, given, none);
  b.set(op->getResult(0),
        {b.call("attn_emu_barrier_reduce", b.getI32Type(),
                {b.getWarp(), b.site(op), b.maskBits(), b.constantInt(uint64_t(reduction)), ballot(b, holds)})});
  return success();
}

LogicalResult rewriteBarrier(WarpBuilder &b, Operation *op) {
  auto barrier = cast<NVVM::BarrierOp>(op);
  if (auto reduction = barrier.getReductionOp())
    return rewriteReducingBarrier(b, barrier, *reduction);
  buildBarrier(b, op, barrier.getBarrierId(), barrier.getNumberOfThreads(), /*waits=*/true);
  return success();
}

LogicalResult rewriteBarrierArrive(WarpBuilder &b, Operation *op) {
  auto barrier = cast<NVVM::BarrierArriveOp>(op);
  buildBarrier(b, op, barrier.getBarrierId(), barrier.getNumberOfThreads(), /*waits=*/false);
  return success();
}

/// Memory is in order here; what a barrier orders, a fence alone does not.
LogicalResult rewriteFence(WarpBuilder &, Operation *) { return success(); }

void buildMemberCheck(WarpBuilder &b, Operation *op, Value members) {
  APInt constant;
  if (!b.getMask() && matchPattern(members, m_ConstantInt(&constant)) && constant.isAllOnes())
    return;
  b.call("attn_emu_check_members", Type(), {b.getWarp(), b.site(op), b.maskBits(), b.anyActiveLane(b.getOne(members))});
}

LogicalResult rewriteWarpBarrier(WarpBuilder &b, Operation *op) {
  Value members = b.anyActiveLane(b.getOne(cast<NVVM::SyncWarpOp>(op).getMask()));
  b.call("attn_emu_warp_barrier", Type(), {b.getWarp(), b.site(op), b.maskBits(), members});
  return success();
}

/// The lane that each lane reads from, if all lanes do so and it is known now.
std::optional<SmallVector<int64_t>> knownButterfly(WarpBuilder &b, NVVM::ShflOp op) {
  APInt members, offset, control;
  if (b.getMask() || op.getKind() != NVVM::ShflKind::bfly || op.getReturnValueAndIsValid() ||
      !matchPattern(op.getThreadMask(), m_ConstantInt(&members)) || !members.isAllOnes() ||
      !matchPattern(op.getOffset(), m_ConstantInt(&offset)) ||
      !matchPattern(op.getMaskAndClamp(), m_ConstantInt(&control)) || control != kLanes - 1)
    return std::nullopt;
  SmallVector<int64_t> lanes;
  for (unsigned lane = 0; lane < kLanes; ++lane)
    lanes.push_back(lane ^ (offset.getZExtValue() & (kLanes - 1)));
  return lanes;
}

LogicalResult rewriteShuffle(WarpBuilder &b, Operation *op) {
  auto shuffle = cast<NVVM::ShflOp>(op);
  Value value = b.splat(b.getOne(shuffle.getVal()));
  Type type = WarpBuilder::elementType(value);
  if (auto lanes = knownButterfly(b, shuffle)) {
    b.set(shuffle.getRes(), {vector::ShuffleOp::create(b, b.loc, value, value, *lanes)});
    return success();
  }
  static_assert(int(NVVM::ShflKind::bfly) == 0 && int(NVVM::ShflKind::up) == 1 && int(NVVM::ShflKind::down) == 2 &&
                    int(NVVM::ShflKind::idx) == 3,
                "the runtime numbers the kinds so");
  Value members = b.anyActiveLane(b.getOne(shuffle.getThreadMask()));
  Value values = b.putLanes(value), offsets = b.putLanes(b.getOne(shuffle.getOffset()));
  Value controls = b.putLanes(b.getOne(shuffle.getMaskAndClamp()));
  Value out = b.reserveLanes(4), valid = b.reserveLanes(1);
  b.call("attn_emu_shfl", Type(),
         {b.getWarp(), b.site(op), b.maskBits(), members, b.constantInt(uint64_t(shuffle.getKind())), values, offsets,
          controls, out, valid});
  Components results{b.takeLanes(out, type, 0)};
  if (shuffle.getReturnValueAndIsValid())
    results.push_back(b.takeLanes(valid, b.getI1Type(), 0));
  b.set(shuffle.getRes(), std::move(results));
  return success();
}

LogicalResult rewriteVote(WarpBuilder &b, Operation *op) {
  auto vote = cast<NVVM::VoteSyncOp>(op);
  buildMemberCheck(b, op, vote.getMask());
  Value bits = ballot(b, b.getOne(vote.getPred())), active = b.maskBits(), none = b.constantInt(0);
  auto compare = [&](arith::CmpIPredicate predicate, Value other) -> Value {
    return arith::CmpIOp::create(b, b.loc, predicate, bits, other);
  };
  Value all = compare(arith::CmpIPredicate::eq, active);
  switch (vote.getKind()) {
  case NVVM::VoteSyncKind::ballot:
    b.set(vote.getRes(), {bits});
    break;
  case NVVM::VoteSyncKind::any:
    b.set(vote.getRes(), {compare(arith::CmpIPredicate::ne, none)});
    break;
  case NVVM::VoteSyncKind::all:
    b.set(vote.getRes(), {all});
    break;
  case NVVM::VoteSyncKind::uni:
    b.set(vote.getRes(), {arith::OrIOp::create(b, b.loc, all, compare(arith::CmpIPredicate::eq, none))});
    break;
  }
  return success();
}

std::optional<uint64_t> reductionNumber(NVVM::ReduxKind kind) {
  switch (kind) {
  case NVVM::ReduxKind::ADD:
    return 0;
  case NVVM::ReduxKind::AND:
    return 1;
  case NVVM::ReduxKind::MAX:
    return 2;
  case NVVM::ReduxKind::MIN:
    return 3;
  case NVVM::ReduxKind::OR:
    return 4;
  case NVVM::ReduxKind::UMAX:
    return 5;
  case NVVM::ReduxKind::UMIN:
    return 6;
  case NVVM::ReduxKind::XOR:
    return 7;
  default:
    return std::nullopt;
  }
}

LogicalResult rewriteReduction(WarpBuilder &b, Operation *op) {
  auto redux = cast<NVVM::ReduxOp>(op);
  auto kind = reductionNumber(redux.getKind());
  if (!kind || !redux.getVal().getType().isInteger(32))
    return op->emitError("redux.sync of floats needs sm_100a; reduce with shuffles");
  Value members = b.anyActiveLane(b.getOne(redux.getMaskAndClamp()));
  Value values = b.putLanes(b.getOne(redux.getVal()));
  b.set(redux.getRes(), {b.call("attn_emu_redux", b.getI32Type(),
                                {b.getWarp(), b.site(op), b.maskBits(), members, b.constantInt(*kind), values})});
  return success();
}

template <unsigned Axis>
void addAxis(RuleTable &rules, StringRef axis) {
  auto name = [&](StringRef which) { return ("nvvm.read.ptx.sreg." + which + "." + axis).str(); };
  constexpr unsigned word = Axis * sizeof(int32_t);
  rules[name("tid")] = {rewriteLaneRegister<offsetof(Warp, threadId) + word * kLanes>, Agreement::Never};
  rules[name("ntid")] = {rewriteRegister<offsetof(Warp, blockDim) + word>, Agreement::Always};
  rules[name("ctaid")] = {rewriteRegister<offsetof(Warp, blockId) + word>, Agreement::Always};
  rules[name("nctaid")] = {rewriteRegister<offsetof(Warp, gridDim) + word>, Agreement::Always};
}

} // namespace

void addCollectiveRules(RuleTable &rules) {
  addAxis<0>(rules, "x");
  addAxis<1>(rules, "y");
  addAxis<2>(rules, "z");
  rules["nvvm.read.ptx.sreg.laneid"] = {rewriteLaneId, Agreement::Never};
  rules["nvvm.read.ptx.sreg.warpsize"] = {rewriteWarpSize, Agreement::Always};
  rules["nvvm.barrier0"] = {rewriteBarrier0};
  rules["nvvm.barrier"] = {rewriteBarrier, Agreement::Always};
  rules["nvvm.barrier.arrive"] = {rewriteBarrierArrive};
  rules["nvvm.bar.warp.sync"] = {rewriteWarpBarrier};
  rules["nvvm.shfl.sync"] = {rewriteShuffle, Agreement::Never};
  for (StringRef fence : {"llvm.fence", "nvvm.memory.barrier"})
    rules[fence] = {rewriteFence};
  rules["nvvm.vote.sync"] = {rewriteVote, Agreement::Always};
  rules["nvvm.redux.sync"] = {rewriteReduction, Agreement::Always, /*counted=*/true, /*chip=*/80};
}

} // namespace attn::emulator
