//===- Report.cpp - What was decided, and why -----------------------------===//
#include "attn/Target/Report.h"

#include "TileMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace attn {

static constexpr int64_t kMapBlocks = 32;
static constexpr int64_t kLooks = int64_t(1) << 21; // at the mask, to count pairs: a second or two

static std::string describeLocation(Location loc) {
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    return (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ":" + Twine(place.getColumn())).str();
  return "";
}

FailureOr<ScheduleChoice> getSchedule(AttentionOp op, const ReportTarget &target) {
  ScheduleAttr given = op.getScheduleAttr();
  if (given && failed(target.gpu ? checkGPUSchedule(op, *target.gpu, given) : checkSchedule(op, target.cpu, given)))
    return failure();
  if (given)
    return ScheduleChoice{given, {"all of it stands in the spec"}};
  if (target.gpu)
    return chooseGPUSchedule(op, *target.gpu, target.overrides);
  return chooseSchedule(op, target.cpu, target.overrides);
}

std::vector<Fallback> findFallbacks(AttentionOp op, ScheduleAttr schedule, const ReportTarget &target) {
  std::vector<Fallback> fallbacks = findFallbacks(op, {schedule.getReindex(), schedule.getReindexSize()});
  if (target.gpu)
    llvm::append_range(fallbacks, findGPUFallbacks(op, *target.gpu));
  return fallbacks;
}

static void addTraffic(const AttentionProblem &problem, AttentionReport &report) {
  AttentionOp op = problem.op;
  const Extents &e = problem.extents;
  int64_t bytes = op.getQueryType().getElementTypeBitWidth() / 8, rows = e.batches * e.heads * e.queries;
  report.bytesRead =
      bytes * (rows * problem.headDim + e.batches * e.keyHeads * e.keys * (problem.headDim + problem.valueDim)) +
      problem.operandBytes;
  report.bytesWritten = bytes * rows * problem.valueDim + (op.getLse() ? 4 * rows : 0);
}

static void addPlan(const AttentionProblem &problem, AttentionReport &report) {
  ScheduleAttr schedule = report.schedule.schedule;
  MaskEvaluator evaluator(problem.op, problem.extents, problem.captured,
                          {schedule.getReindex(), schedule.getReindexSize()});
  MaskPlan plan(evaluator,
                {schedule.getQueryTile() / schedule.getPack(), schedule.getKeyTile(), schedule.getGranule()});
  report.tiles = plan.countTiles();
  report.pairs = plan.countPairs();
  report.computed = plan.countComputedPairs();
  report.kept = plan.countKeptPairs(kLooks);
  int64_t products = AttentionOp(problem.op).getTable() ? 2 : 1; // with a key, and with a distance
  report.flops = plan.countFlops(products * problem.headDim, problem.valueDim);
  const AttnPlan &lists = plan.getPlan();
  report.problems = lists.classes;
  report.tableBytes = evaluator.getTableBytes();
  if (AttentionOp(problem.op).getMaskBlock())
    report.planBytes = lists.num_runs * sizeof(AttnRun) +
                       (lists.batches * lists.heads * lists.classes * lists.tiles + 1) * sizeof(int64_t);
}

static void addMap(const AttentionProblem &problem, AttentionReport &report) {
  MaskEvaluator evaluator(problem.op, problem.extents, problem.captured);
  TileMap map(evaluator, 0, 0, kMapBlocks);
  report.mapQueries = map.queryTokens;
  report.mapKeys = map.keyTokens;
  for (int64_t row = 0; row < map.rows; ++row) {
    std::string &line = report.map.emplace_back();
    for (int64_t column = 0; column < map.columns; ++column)
      line += map.get(row, column) == kEmpty ? '.' : map.get(row, column) == kFull ? 'F' : 'P';
  }
}

FailureOr<AttentionReport> makeReport(const AttentionProblem &problem, const ReportTarget &target) {
  AttentionOp op = problem.op;
  FailureOr<ScheduleChoice> choice = getSchedule(op, target);
  if (failed(choice))
    return failure();
  AttentionReport report;
  if (auto func = op->getParentOfType<func::FuncOp>())
    report.function = func.getName();
  report.location = describeLocation(op.getLoc());
  report.mask = describeMask(op);
  llvm::raw_string_ostream(report.elementType) << op.getQueryType().getElementType();
  report.hasScore = op.getScoreBlock();
  report.extents = problem.extents;
  report.headDim = problem.headDim;
  report.valueDim = problem.valueDim;
  report.align = op.getAlign();
  report.schedule = std::move(*choice);
  ScheduleAttr schedule = report.schedule.schedule;
  if (target.gpu) {
    report.resources = estimateResources(op, *target.gpu, schedule);
    report.tensorCores = usesTensorCores(op, *target.gpu);
  } else {
    report.products = getTileUse(op, target.cpu, schedule.getKeyTile(), schedule.getGranule()).form;
  }
  Reindexing reindexing = {schedule.getReindex(), schedule.getReindexSize()};
  report.dependence = getMaskDependence(op);
  report.parts = explainMask(op, reindexing);
  report.fallbacks = findFallbacks(op, schedule, target);
  addTraffic(problem, report);
  addPlan(problem, report);
  addMap(problem, report);
  return report;
}

FunctionReport makeReport(func::FuncOp func, ArrayRef<AttentionReport> attentions, ArrayRef<StepWork> steps) {
  FunctionReport report{func.getName().str(), {}};
  for (CompiledOpInterface op : func.getOps<CompiledOpInterface>()) {
    StepWork work;
    if (isa<AttentionOp>(op)) {
      const AttentionReport &attention = attentions.front();
      work = {attention.flops, attention.bytesRead, attention.bytesWritten};
      attentions = attentions.drop_front();
    } else {
      work = steps.front();
      steps = steps.drop_front();
    }
    report.steps.push_back({op->getName().stripDialect().str(), describeLocation(op.getLoc()), work});
  }
  return report;
}

StepWork FunctionReport::getTotal() const {
  StepWork total;
  for (const Step &step : steps)
    total += step.work;
  return total;
}

} // namespace attn
