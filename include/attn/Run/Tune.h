//===- Tune.h - Search tile sizes by timing them ----------------*- C++ -*-===//
#ifndef ATTN_RUN_TUNE_H
#define ATTN_RUN_TUNE_H

#include "attn/Run/Run.h"

namespace attn {

/// A choice that was tried: its time over that of the best before it.
struct TuneStep {
  std::string choice;
  int64_t value = 0;
  double ratio = 1;
  bool taken = false;
};

struct TuneResult {
  ScheduleOverrides choices;
  double overDefault = 1; // the time of the best over that of what is chosen without tuning
  /// What attn-compile and attn-run take for these choices, one to a line: a tuning file, read as @FILE.
  std::string flags() const;
};

/// Times one function of `module` on the first of the inputs, with one choice of the schedule after the other changed;
/// each candidate runs in turn with the best so far for `seconds`.
llvm::Expected<TuneResult> tuneSpec(mlir::ModuleOp module, const RunOptions &options, double seconds,
                                    llvm::function_ref<void(const TuneStep &)> told);

} // namespace attn

#endif // ATTN_RUN_TUNE_H
