//===- ReportText.cpp - Reports for people and programs -------------------===//
#include "attn/Target/Report.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using llvm::formatv;
namespace json = llvm::json;

namespace attn {
namespace {

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

/// "134,217,728"
std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t at = int64_t(text.size()) - 3; at > 0; at -= 3)
    text.insert(at, ",");
  return text;
}

std::string percent(int64_t part, int64_t whole) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g %%", whole ? 100.0 * part / whole : 0.0);
  return text;
}

/// "25.2 MB": three digits and a power of 1000.
std::string scaled(double value, StringRef unit) {
  static const char *const powers[] = {"", "k", "M", "G", "T", "P"};
  unsigned power = 0;
  for (; value >= 999.5 && power < 5; ++power)
    value /= 1000;
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g ", value) << powers[power] << unit;
  return text;
}

std::string join(ArrayRef<int64_t> extents) {
  std::string text;
  for (int64_t extent : extents)
    text += (text.empty() ? "" : " x ") + std::to_string(extent);
  return text;
}

std::string describeTarget(const CompileReport &report) {
  const TargetModel &target = report.target.cpu;
  if (const auto &gpu = report.target.gpu)
    return formatv("{0} ({1} multiprocessors, {2} KiB of shared memory a block); host {3} ({4})", gpu->chip,
                   gpu->multiprocessors, gpu->sharedBytes / 1024, target.cpu, target.triple);
  return formatv("{0} ({1}); {2}", target.cpu, target.triple, report.threads ? "all OpenMP threads" : "one thread");
}

std::string describeLevels(const ReportTarget &target) {
  auto names = llvm::map_range(target.levels, [](const TargetModel &level) {
    return formatv("{0} ({1}{2})", level.name, level.form,
                   level.amx         ? ", AMX"
                   : level.bf16Pairs ? ", vdpbf16ps"
                                     : "")
        .str();
  });
  return llvm::join(names, ", ") +
         "; the first that a machine has all features of is run, and what follows is of the first";
}

std::string describeKernel(const TargetModel &target, ScheduleAttr schedule) {
  return formatv("{0}: {1} floats a vector, blocks of {2} queries x {3} keys in registers, the last rows by {4}",
                 target.form, target.lanes, schedule.getQueryTile(),
                 getBlockRows(target.rows, schedule.getQueryTile() / target.lanes), schedule.getTailTile());
}

std::string describeTileKernel(const AttentionReport &report, const TargetModel &target) {
  ScheduleAttr schedule = report.schedule.schedule;
  return formatv("{0}, {1} queries x {2} keys at a time; softmax in {3}",
                 report.products == TileUse::AMX ? "AMX: tdpbf16ps on tiles of 16 x 16" : "AVX512-BF16: vdpbf16ps",
                 schedule.getQueryTile(), schedule.getKeyTile(), target.form);
}

std::string describeGPUKernel(const AttentionReport &report) {
  ScheduleAttr schedule = report.schedule.schedule;
  std::string rows = Twine(schedule.getQueryTile() / schedule.getPack()).str() + " queries";
  if (schedule.getPack() > 1)
    rows += " of " + std::to_string(schedule.getPack()) + " heads";
  return formatv("{0}: {1} in {2} warps x {3} keys, {4} tiles of keys in shared memory",
                 report.tensorCores ? "mma.sync m16n8k16" : "plain FMAs", rows, schedule.getWarps(),
                 schedule.getKeyTile(), schedule.getStages());
}

std::string describeResources(const GPUResources &r) {
  return formatv("an estimated {0} registers a thread, {1} bytes of shared memory a block; a multiprocessor has {2} of "
                 "them, {3} warps",
                 r.registers, grouped(r.sharedBytes), r.blocks, r.warps);
}

std::string describeExp(const TargetModel &target) {
  return target.avx512Exp ? "a polynomial, with vreduceps and vscalefps" : "a polynomial, with integer exponents";
}

std::string describeReading(const MaskPart &part) {
  switch (part.reading) {
  case MaskPart::Reading::Positions:
    return "from positions";
  case MaskPart::Reading::Tables:
    return "from positions and ranges of " + part.why;
  case MaskPart::Reading::Classes:
    return "holds for all pairs of a smaller problem";
  case MaskPart::Reading::Partly:
    return "in part unknown: " + part.why;
  case MaskPart::Reading::Unknown:
    return "unknown: " + part.why;
  }
  llvm_unreachable("unknown reading");
}

StringRef nameReading(MaskPart::Reading reading) {
  static const char *const names[] = {"positions", "tables", "classes", "partly", "unknown"};
  return names[int(reading)];
}

std::string describePlan(const AttentionReport &report) {
  if (report.mask.empty())
    return "none: without a mask every tile is full";
  std::string whose = report.dependence.batch && report.dependence.head ? "one for each batch and head"
                      : report.dependence.batch                         ? "one for each batch"
                      : report.dependence.head                          ? "one for each head"
                                                                        : "one for all batches and heads";
  std::string problems =
      report.problems == 1 ? "" : formatv(", of {0} smaller problems", grouped(report.problems)).str();
  std::string tables =
      report.tableBytes ? formatv(" and {0} of tables of captured data", scaled(report.tableBytes, "B")).str() : "";
  return formatv("{0}{1}, {2}{3}", scaled(report.planBytes, "B"), tables, whose, problems);
}

std::string printSchedule(ScheduleAttr schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << Attribute(schedule);
  return text;
}

std::string describeLine(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  return place ? formatv("line {0}: ", place.getLine()).str() : "";
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Lines with a word in front; a word that repeats is left out.
class Lines {
public:
  explicit Lines(raw_ostream &os) : os(os) {}
  void add(StringRef word, const Twine &text) {
    os << "  " << llvm::left_justify(word == last ? "" : word, 11) << text << "\n";
    last = word;
  }

private:
  raw_ostream &os;
  StringRef last;
};

void printKernel(const AttentionReport &report, const TargetModel &target, Lines &lines) {
  if (!report.resources) {
    lines.add("kernel", report.products == TileUse::None ? describeKernel(target, report.schedule.schedule)
                                                         : describeTileKernel(report, target));
    lines.add("exp", describeExp(target));
    return;
  }
  lines.add("kernel", describeGPUKernel(report));
  lines.add("resources", describeResources(*report.resources));
  lines.add("exp", "ex2.approx");
}

void printAttention(const AttentionReport &report, const TargetModel &target, raw_ostream &os) {
  const Extents &e = report.extents;
  ScheduleAttr schedule = report.schedule.schedule;
  os << "\n@" << report.function << (report.location.empty() ? "" : ", " + report.location) << "\n";
  Lines lines(os);
  lines.add("mask", report.mask.empty() ? "none" : report.mask);
  if (report.hasScore)
    lines.add("score", "a function of the spec, in every tile");
  std::string products = "q " + join({e.batches, e.heads, e.queries, report.headDim}) + ", k " +
                         join({e.batches, e.keyHeads, e.keys, report.headDim});
  if (report.headDim == 0)
    products = "scores of " + join({e.heads, e.queries, e.keys});
  lines.add("shape", products + ", v " + join({e.batches, e.keyHeads, e.keys, report.valueDim}) + ", " +
                         report.elementType +
                         (report.align == Align::BottomRight ? ", the last query stands at the last key" : ""));
  lines.add("density",
            (report.kept ? percent(*report.kept, report.pairs) + " of " + grouped(report.pairs) + " pairs attend, "
                         : "of " + grouped(report.pairs) + " pairs ") +
                percent(report.computed, report.pairs) + " are computed");
  lines.add("tiles", grouped(report.tiles.full) + " full, " + grouped(report.tiles.partial) + " partial, " +
                         grouped(report.tiles.empty) + " empty; " + Twine(schedule.getQueryTile()) + " queries x " +
                         Twine(schedule.getKeyTile()) + " keys");
  lines.add("work", scaled(report.flops, "FLOP") + "; reads " + scaled(report.bytesRead, "B") + ", writes " +
                        scaled(report.bytesWritten, "B"));
  lines.add("plan", describePlan(report));
  printKernel(report, target, lines);
  lines.add("schedule", printSchedule(schedule));
  for (const std::string &reason : report.schedule.reasons)
    lines.add("why", reason);
  for (const MaskPart &part : report.parts)
    lines.add("reading", part.text + ": " + describeReading(part));
  if (report.fallbacks.empty())
    lines.add("fallbacks", "none");
  for (const Fallback &fallback : report.fallbacks) {
    lines.add("fallbacks", describeLine(fallback.loc) + fallback.what);
    lines.add("fallbacks", "  " + fallback.advice);
  }
  lines.add("map", "blocks of " + Twine(report.mapQueries) + " queries x " + Twine(report.mapKeys) +
                       " keys: F full, P partial, . empty");
  for (const std::string &line : report.map)
    lines.add("map", line);
}

std::string describeWork(const StepWork &work) {
  return formatv("{0,12}; reads {1,8}, writes {2,8}", scaled(double(work.operations), "FLOP"),
                 scaled(double(work.bytesRead), "B"), scaled(double(work.bytesWritten), "B"));
}

/// An op a line, and where it stands.
void printFunction(const FunctionReport &report, raw_ostream &os) {
  os << "\n@" << report.function << ", op by op\n";
  for (const FunctionReport::Step &step : report.steps)
    os << "  " << llvm::left_justify(step.op, 18) << describeWork(step.work)
       << (step.location.empty() ? "" : "  " + step.location) << "\n";
  os << "  " << llvm::left_justify("all", 18) << describeWork(report.getTotal()) << "\n";
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

json::Object toObject(ScheduleAttr s) {
  return json::Object{{"query_tile", s.getQueryTile()},
                      {"key_tile", s.getKeyTile()},
                      {"tail_tile", s.getTailTile()},
                      {"granule", s.getGranule()},
                      {"group", s.getGroup()},
                      {"span", s.getSpan()},
                      {"split", s.getSplit()},
                      {"tasks", s.getTasks()},
                      {"reindex", stringifyReindexKind(s.getReindex())},
                      {"reindex_size", s.getReindexSize()},
                      {"warps", s.getWarps()},
                      {"stages", s.getStages()},
                      {"pack", s.getPack()}};
}

json::Value toValue(const AttentionReport &report) {
  if (!report.resources)
    return nullptr;
  const GPUResources &r = *report.resources;
  return json::Object{{"registers", r.registers},
                      {"shared_bytes", r.sharedBytes},
                      {"blocks_per_multiprocessor", r.blocks},
                      {"warps_per_multiprocessor", r.warps},
                      {"tensor_cores", report.tensorCores}};
}

json::Object toObject(const ReportTarget &target, bool threads) {
  const TargetModel &cpu = target.cpu;
  if (const auto &gpu = target.gpu)
    return json::Object{{"chip", gpu->chip},
                        {"multiprocessors", gpu->multiprocessors},
                        {"shared_bytes", gpu->sharedBytes},
                        {"cpu", cpu.cpu},
                        {"triple", cpu.triple}};
  json::Array levels;
  for (const TargetModel &level : target.levels)
    levels.push_back(json::Object{{"name", level.name}, {"form", level.form}});
  return json::Object{{"cpu", cpu.cpu},     {"triple", cpu.triple},       {"form", cpu.form},
                      {"lanes", cpu.lanes}, {"rows", cpu.rows},           {"vscalefps", cpu.avx512Exp},
                      {"threads", threads}, {"levels", std::move(levels)}};
}

json::Object toObject(const AttentionReport &report) {
  const Extents &e = report.extents;
  json::Array parts, fallbacks;
  for (const MaskPart &part : report.parts)
    parts.push_back(json::Object{{"text", part.text}, {"reading", nameReading(part.reading)}, {"why", part.why}});
  for (const Fallback &fallback : report.fallbacks)
    fallbacks.push_back(
        json::Object{{"what", describeLine(fallback.loc) + fallback.what}, {"advice", fallback.advice}});
  return json::Object{
      {"function", report.function},
      {"location", report.location},
      {"mask", report.mask},
      {"score", report.hasScore},
      {"element_type", report.elementType},
      {"extents", json::Object{{"B", e.batches},
                               {"H", e.heads},
                               {"Hkv", e.keyHeads},
                               {"N", e.queries},
                               {"M", e.keys},
                               {"D", report.headDim},
                               {"Dv", report.valueDim}}},
      {"align", stringifyAlign(report.align)},
      {"pairs", report.pairs},
      {"kept", report.kept ? json::Value(*report.kept) : json::Value(nullptr)},
      {"computed", report.computed},
      {"density", report.pairs ? double(report.kept.value_or(report.computed)) / report.pairs : 0.0},
      {"tiles",
       json::Object{{"full", report.tiles.full}, {"partial", report.tiles.partial}, {"empty", report.tiles.empty}}},
      {"flops", report.flops},
      {"bytes_read", report.bytesRead},
      {"bytes_written", report.bytesWritten},
      {"plan_bytes", report.planBytes},
      {"table_bytes", report.tableBytes},
      {"plan_per_batch", report.dependence.batch},
      {"plan_per_head", report.dependence.head},
      {"problems", report.problems},
      {"schedule", toObject(report.schedule.schedule)},
      {"amx", report.products == TileUse::AMX},
      {"bf16_pairs", report.products == TileUse::Pairs},
      {"resources", toValue(report)},
      {"reasons", json::Array(report.schedule.reasons)},
      {"readings", std::move(parts)},
      {"fallbacks", std::move(fallbacks)},
      {"map", json::Array(report.map)}};
}

json::Object toObject(const StepWork &work) {
  return json::Object{
      {"operations", work.operations}, {"bytes_read", work.bytesRead}, {"bytes_written", work.bytesWritten}};
}

json::Object toObject(const FunctionReport &report) {
  json::Array steps;
  for (const FunctionReport::Step &step : report.steps) {
    json::Object object = toObject(step.work);
    object["op"] = step.op;
    object["location"] = step.location;
    steps.push_back(std::move(object));
  }
  json::Object object = toObject(report.getTotal());
  object["function"] = report.function;
  object["steps"] = std::move(steps);
  return object;
}

} // namespace

void printReport(const CompileReport &report, raw_ostream &os) {
  os << "target: " << describeTarget(report) << "\n";
  if (!report.target.levels.empty())
    os << "levels: " << describeLevels(report.target) << "\n";
  for (const AttentionReport &attention : report.attentions)
    printAttention(attention, report.target.cpu, os);
  for (const FunctionReport &function : report.functions)
    if (function.steps.size() > 1 || (function.steps.size() == 1 && function.steps.front().op != "attention"))
      printFunction(function, os);
  if (!report.notes.empty())
    os << "\n";
  for (const std::string &note : report.notes)
    os << note << "\n";
}

void printReportAsJSON(const CompileReport &report, raw_ostream &os) {
  json::Array attentions;
  for (const AttentionReport &attention : report.attentions)
    attentions.push_back(toObject(attention));
  json::Array functions;
  for (const FunctionReport &function : report.functions)
    functions.push_back(toObject(function));
  os << json::Value(json::Object{{"target", toObject(report.target, report.threads)},
                                 {"attentions", std::move(attentions)},
                                 {"functions", std::move(functions)},
                                 {"notes", json::Array(report.notes)}})
     << "\n";
}

} // namespace attn
