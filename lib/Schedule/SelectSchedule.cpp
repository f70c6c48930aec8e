//===- SelectSchedule.cpp - Choose tile sizes, reindexing, splits ---------===//
#include "attn/Pattern/Mask.h"
#include "attn/Schedule/Passes.h"
#include "attn/Schedule/Schedule.h"
#include "llvm/Support/FormatVariadic.h"

namespace attn {
#define GEN_PASS_DEF_SELECTSCHEDULE
#include "attn/Schedule/Passes.h.inc"

using namespace mlir;
using llvm::formatv;

namespace {

class Chooser {
public:
  Chooser(AttentionOp op, const TargetModel &target, const ScheduleOverrides &overrides)
      : op(op), target(target), overrides(overrides) {}

  ScheduleChoice choose();

private:
  void because(std::string reason) { reasons.push_back(std::move(reason)); }
  void chooseReindexing();
  void chooseQueryTile();
  void chooseKeys();
  int64_t headDim() {
    int64_t d = op.getQueryType().getShape().back();
    return d >= 0 ? d : 128;
  }

  AttentionOp op;
  const TargetModel &target;
  const ScheduleOverrides &overrides;
  std::vector<std::string> reasons;
  Reindexing reindexing;
  int64_t queryTile = 0, keyTile = 0, group = 0, span = 0, split = 0, granule = 16;
};

void Chooser::chooseReindexing() {
  if (!overrides.reindex)
    return because("reindexing off by option");
  reindexing = findReindexing(op);
  if (reindexing.kind == ReindexKind::Residue)
    because(
        formatv("the mask keeps pairs of one residue modulo {0}: {0} dense problems of N / {0} rows", reindexing.size));
  else if (reindexing.kind == ReindexKind::Block)
    because(formatv("the mask keeps pairs of one block of {0}: one dense problem per block", reindexing.size));
}

// Three vectors of queries need the fewest loads per FMA. Where boundaries of the mask fall at multiples of a block, a
// tile that divides the block leaves no partial tiles there.
void Chooser::chooseQueryTile() {
  if (overrides.queryTile) {
    queryTile = overrides.queryTile;
    return because(formatv("query tile of {0} by option", queryTile));
  }
  SmallVector<int64_t> sizes = blockSizes(op);
  if (reindexing.kind == ReindexKind::Block)
    sizes = {reindexing.size};
  else if (reindexing.kind == ReindexKind::Residue)
    sizes.clear();
  for (int64_t vectors : {3, 4, 2})
    if (!sizes.empty() && llvm::all_of(sizes, [&](int64_t s) { return s % (vectors * target.lanes) == 0; })) {
      queryTile = vectors * target.lanes;
      return because(formatv("query tile of {0}, {1} vectors: it divides the mask's block of {2}", queryTile, vectors,
                             sizes.front()));
    }
  queryTile = 3 * target.lanes;
  because(formatv("query tile of {0}: 3 vectors of {1} lanes by {2} key rows fill the registers", queryTile,
                  target.lanes, target.rows));
}

void Chooser::chooseKeys() {
  keyTile = overrides.keyTile ? overrides.keyTile : 128;
  granule = keyTile % 16 == 0 ? 16 : 1;
  group = overrides.group ? overrides.group : 8;
  int64_t dims = headDim();
  span = std::max(keyTile, target.l2Bytes / 4 / (4 * dims) / keyTile * keyTile);
  split = overrides.split ? overrides.split : 1024;
  because(formatv("key tile of {0}: its weights ({1} KiB) stay in the first-level cache", keyTile,
                  keyTile * queryTile * 4 / 1024));
  because(formatv("{0} query tiles share spans of {1} keys: {2} KiB of K and as much of V in the second-level cache",
                  group, span, span * dims * 4 / 1024));
}

ScheduleChoice Chooser::choose() {
  chooseReindexing();
  chooseQueryTile();
  chooseKeys();
  auto schedule = ScheduleAttr::get(op.getContext(), queryTile, keyTile, /*tail_tile=*/target.lanes, granule, group,
                                    span, split, reindexing.kind, reindexing.size, target.lanes, target.rows);
  return {schedule, std::move(reasons)};
}

struct SelectSchedule : impl::SelectScheduleBase<SelectSchedule> {
  using Base::Base;

  void runOnOperation() override {
    TargetModel target;
    target.lanes = lanes;
    target.rows = rows;
    target.l2Bytes = l2Bytes;
    ScheduleOverrides overrides{queryTile, keyTile, group, split, reindex};
    getOperation().walk([&](AttentionOp op) {
      if (!op.getScheduleAttr())
        op.setScheduleAttr(chooseSchedule(op, target, overrides).schedule);
    });
  }
};

} // namespace

ScheduleChoice chooseSchedule(AttentionOp op, const TargetModel &target, const ScheduleOverrides &overrides) {
  return Chooser(op, target, overrides).choose();
}

} // namespace attn
