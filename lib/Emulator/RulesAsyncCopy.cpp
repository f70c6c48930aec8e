//===- RulesAsyncCopy.cpp - cp.async and its groups -------------------------===//
#include "WarpBuilder.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace attn::emulator {
namespace {

LogicalResult rewriteCopy(WarpBuilder &b, Operation *op) {
  auto copy = cast<NVVM::CpAsyncOp>(op);
  Value size = b.constantInt(copy.getSize());
  Value targets = b.putLanes(b.getOne(copy.getDst())), sources = b.putLanes(b.getOne(copy.getSrc()));
  Value read = b.putLanes(copy.getCpSize() ? b.getOne(copy.getCpSize()) : size);
  b.call("attn_emu_cp_async", Type(), {b.getWarp(), b.site(op), b.maskBits(), targets, sources, size, read});
  return success();
}

LogicalResult rewriteCommit(WarpBuilder &b, Operation *op) {
  b.call("attn_emu_commit_group", Type(), {b.getWarp()});
  return success();
}

LogicalResult rewriteWait(WarpBuilder &b, Operation *op) {
  Value pending = b.constantInt(cast<NVVM::CpAsyncWaitGroupOp>(op).getN());
  b.call("attn_emu_wait_group", Type(), {b.getWarp(), b.maskBits(), pending});
  return success();
}

} // namespace

void addAsyncCopyRules(RuleTable &rules) {
  auto add = [&](StringRef name, auto rewrite) {
    rules[name] = {rewrite, Agreement::Operands, /*counted=*/true, /*chip=*/80};
  };
  add("nvvm.cp.async.shared.global", rewriteCopy);
  add("nvvm.cp.async.commit.group", rewriteCommit);
  add("nvvm.cp.async.wait.group", rewriteWait);
}

} // namespace attn::emulator
