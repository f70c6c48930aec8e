//===- Report.cpp - What a run did, for a person or a program ---------------===//
#include "attn/Run/Run.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace llvm;

namespace attn {
namespace {

/// "3.21 ms": three digits and a unit.
std::string formatTime(double seconds) {
  static const std::pair<double, const char *> units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}};
  auto unit = seconds >= 1 ? units[0] : seconds >= 1e-3 ? units[1] : units[2];
  double value = seconds / unit.first;
  std::string text;
  raw_string_ostream(text) << format(value >= 100 ? "%.0f " : value >= 10 ? "%.1f " : "%.2f ", value) << unit.second;
  return text;
}

/// "16.8 million": three digits and a word.
std::string formatCount(double count) {
  std::string text;
  raw_string_ostream os(text);
  if (count >= 1e9)
    os << format("%.3g billion", count / 1e9);
  else if (count >= 1e6)
    os << format("%.3g million", count / 1e6);
  else
    os << format("%.0f", count);
  return text;
}

void printCheck(const CheckReport &check, raw_ostream &os) {
  os << "  check  " << check.name << ": " << (check.passed ? "ok" : "WRONG") << ", ";
  if (check.rows == check.totalRows)
    os << "all " << check.rows << " rows";
  else
    os << check.rows << " of " << check.totalRows << " rows";
  os << format(", max error %.2g, allowed %.2g (plain %s: %.2g)\n", check.maxError, check.bound, check.type.c_str(),
               check.plainError);
  if (!check.passed)
    os << "         largest error at " << check.worst << "\n";
}

void printBench(const RunReport &report, raw_ostream &os) {
  const BenchReport &bench = *report.bench;
  os << "  time   " << formatTime(bench.median) << " a call (median of " << bench.runs << "; " << formatTime(bench.low)
     << " to " << formatTime(bench.high) << "), of which plan " << formatTime(bench.plan) << "; " << bench.threads
     << (bench.threads == 1 ? " thread\n" : " threads\n");
  if (!report.work)
    return;
  const WorkReport &work = *report.work;
  os << "  work   " << (work.sampled ? "about " : "");
  if (work.pairs > 0)
    os << format("%.3g %% of ", 100 * work.kept / work.pairs) << formatCount(work.pairs) << " pairs, ";
  os << format("%.3g GFLOP, %.4g GFLOP/s\n", work.flops / 1e9, work.flops / 1e9 / bench.median);
}

double ratio(uint64_t real, uint64_t ideal) { return ideal ? double(real) / double(ideal) : 1; }

std::string describeTiles(const EmulationReport &emulation) {
  double tiles = emulation.tilesPerSecond();
  return tiles ? formatv(" ({0} tiles of 64 x 64, head_dim 64, a second)", formatCount(tiles)).str() : "";
}

void printEmulation(const EmulationReport &emulation, raw_ostream &os) {
  os << "  GPU    " << emulation.launches << (emulation.launches == 1 ? " launch, " : " launches, ")
     << formatCount(emulation.blocks) << " blocks, " << formatCount(emulation.multiplies) << " mma.sync in "
     << formatTime(emulation.seconds) << " of emulation" << describeTiles(emulation) << "; shared memory "
     << format("%.2f x and global memory %.2f x the least traffic\n",
               ratio(emulation.sharedPasses, emulation.idealSharedPasses),
               ratio(emulation.sectors, emulation.idealSectors));
}

json::Object toObject(ArrayRef<std::pair<std::string, std::string>> tensors) {
  json::Object object;
  for (auto &[name, type] : tensors)
    object[name] = type;
  return object;
}

/// JSON has no infinity.
json::Value toValue(double number) { return std::isfinite(number) ? json::Value(number) : json::Value("inf"); }

json::Value toValue(const CheckReport &check) {
  return json::Object{{"result", check.name},
                      {"type", check.type},
                      {"passed", check.passed},
                      {"rows", check.rows},
                      {"total_rows", check.totalRows},
                      {"max_error", toValue(check.maxError)},
                      {"plain_error", toValue(check.plainError)},
                      {"bound", check.bound},
                      {"worst", check.worst}};
}

json::Value toValue(const BenchReport &bench) {
  return json::Object{{"runs", bench.runs},  {"median_s", bench.median}, {"p10_s", bench.low},
                      {"p90_s", bench.high}, {"plan_s", bench.plan},     {"threads", bench.threads}};
}

} // namespace

void EmulationReport::add(const emulator::LaunchReport &launch) {
  emulator::MemoryCounts total = launch.total();
  ++launches;
  blocks += launch.blocks;
  multiplies += launch.count("nvvm.mma.sync");
  for (const auto &[op, times] : launch.instructions)
    instructions += times;
  sharedPasses += total.passes;
  idealSharedPasses += total.idealPasses;
  sectors += total.sectors;
  idealSectors += total.idealSectors;
}

void printReport(const RunReport &report, raw_ostream &os) {
  os << report.function << ":";
  for (auto &[name, type] : report.inputs)
    os << " " << name << " " << type;
  os << " ->";
  for (auto &[name, type] : report.results)
    os << " " << name << " " << type;
  os << "\n";
  for (const CheckReport &check : report.checks)
    printCheck(check, os);
  if (report.emulation)
    printEmulation(*report.emulation, os);
  if (report.bench)
    printBench(report, os);
}

void printReportAsJSON(const RunReport &report, raw_ostream &os) {
  json::Object object{{"function", report.function},
                      {"inputs", toObject(report.inputs)},
                      {"results", toObject(report.results)},
                      {"compile_s", report.compileSeconds}};
  if (!report.checks.empty()) {
    json::Array checks;
    for (const CheckReport &check : report.checks)
      checks.push_back(toValue(check));
    object["check"] = std::move(checks);
    object["passed"] = report.passed();
  }
  if (report.emulation) {
    const EmulationReport &e = *report.emulation;
    object["emulation"] = json::Object{{"launches", e.launches},
                                       {"blocks", e.blocks},
                                       {"mma", e.multiplies},
                                       {"instructions", e.instructions},
                                       {"seconds", e.seconds},
                                       {"tiles_per_second", e.tilesPerSecond()},
                                       {"shared_passes", e.sharedPasses},
                                       {"ideal_shared_passes", e.idealSharedPasses},
                                       {"sectors", e.sectors},
                                       {"ideal_sectors", e.idealSectors}};
  }
  if (report.bench)
    object["bench"] = toValue(*report.bench);
  if (report.work) {
    const WorkReport &work = *report.work;
    object["work"] = json::Object{{"pairs", work.pairs}, {"kept", work.kept}, {"flops", work.flops}};
    if (report.bench)
      object["gflops"] = work.flops / 1e9 / report.bench->median;
  }
  os << json::Value(std::move(object)) << "\n";
}

} // namespace attn
