//===- Report.h - What was decided, and why ---------------------*- C++ -*-===//
#ifndef ATTN_TARGET_REPORT_H
#define ATTN_TARGET_REPORT_H

#include "attn/Pattern/Explain.h"
#include "attn/Pattern/Plan.h"
#include "attn/Schedule/Schedule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/raw_ostream.h"

namespace attn {

/// What a report of one attention op is asked for.
struct AttentionProblem {
  AttentionOp op;
  Extents extents;
  int64_t headDim = 64, valueDim = 64;
  std::vector<CapturedData> captured; // as MaskEvaluator takes it
  int64_t operandBytes = 0;           // of sink, table, bias and scores
};

/// What a report speaks of: a CPU, or a GPU and its host.
struct ReportTarget {
  TargetModel cpu; // the best, where there are levels
  std::optional<GPUModel> gpu;
  ScheduleOverrides overrides;
  std::vector<TargetModel> levels = {}; // of an object with code for several CPUs, the best first
};

/// The schedule of an op: the one it carries, else the one that is chosen for the target. Fails, with a located
/// message, where a GPU has no code for it.
mlir::FailureOr<ScheduleChoice> getSchedule(AttentionOp op, const ReportTarget &target);

/// What of an op runs slower with that schedule than its pattern and the target allow.
std::vector<Fallback> findFallbacks(AttentionOp op, ScheduleAttr schedule, const ReportTarget &target);

struct AttentionReport {
  std::string function, location, mask, elementType;
  bool hasScore = false;
  Extents extents;
  int64_t headDim, valueDim;
  Align align;
  ScheduleChoice schedule;
  std::optional<GPUResources> resources; // on a GPU
  bool tensorCores = false;
  TileUse::Form products = TileUse::None; // of bf16, on a CPU
  MaskDependence dependence;
  std::vector<MaskPart> parts;
  std::vector<Fallback> fallbacks;
  MaskPlan::TileCounts tiles;      // of query_tile x key_tile of the schedule
  int64_t pairs = 0, computed = 0; // of a query and a key: all, and those in tiles that are not empty
  std::optional<int64_t> kept;     // that attend; none where counting takes too long
  int64_t flops = 0, bytesRead = 0, bytesWritten = 0, planBytes = 0, tableBytes = 0, problems = 1;
  std::vector<std::string> map;        // lines of F, P and . for blocks of pairs of batch 0, head 0
  int64_t mapQueries = 0, mapKeys = 0; // tokens in such a block
};

/// Plans the mask of a problem and looks at what comes out.
mlir::FailureOr<AttentionReport> makeReport(const AttentionProblem &problem, const ReportTarget &target);

/// What a function does, op by op, where it is more than one attention.
struct FunctionReport {
  struct Step {
    std::string op, location;
    StepWork work;
  };
  std::string function;
  std::vector<Step> steps;

  StepWork getTotal() const;
};

struct CompileReport {
  ReportTarget target;
  bool threads = true;
  std::vector<AttentionReport> attentions;
  std::vector<FunctionReport> functions;
  std::vector<std::string> notes;
};

/// Of attentions that have their reports in `attentions`, in order, and of steps around them.
FunctionReport makeReport(mlir::func::FuncOp func, llvm::ArrayRef<AttentionReport> attentions,
                          llvm::ArrayRef<StepWork> steps);

/// Short lines for a person, or one line of JSON.
void printReport(const CompileReport &report, llvm::raw_ostream &os);
void printReportAsJSON(const CompileReport &report, llvm::raw_ostream &os);

} // namespace attn

#endif // ATTN_TARGET_REPORT_H
