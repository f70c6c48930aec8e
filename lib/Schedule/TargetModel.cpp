//===- TargetModel.cpp - What a CPU can do --------------------------------===//
#include "attn/Schedule/TargetModel.h"

#include "attn/Runtime/Amx.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace attn {

static constexpr const char *kAVX512 = "+avx512f,+avx512dq,+avx512vl,+avx512bw";
static constexpr const char *kAVX2 = "+avx2,+fma";
static constexpr const char *kAMX = "+amx-tile,+amx-bf16";

// The host's CPU name may be wrong or unknown to LLVM; its feature bits are what counts.
static void setNative(TargetModel &model) {
  llvm::SubtargetFeatures features;
  llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  auto has = [&](const char *name) { return host.lookup(name); };
  for (const auto &feature : host)
    features.AddFeature(feature.first(),
                        feature.second && (!feature.first().starts_with("amx-") || attn_amx_granted()));
  model.features = features.getString();
  if (!llvm::Triple(model.triple).isX86())
    model.cpu = llvm::sys::getHostCPUName().str();
  else if (has("avx512f") && has("avx512dq") && has("avx512vl") && has("avx512bw"))
    model.cpu = "x86-64-v4";
  else
    model.cpu = has("avx2") && has("fma") ? "x86-64-v3" : "x86-64";
}

namespace {
/// What LLVM does not know of a core.
struct Core {
  StringRef name;
  int64_t l1KiB, l2KiB;
  bool oneFMA; // of 512 bits a cycle: a load for each does not hold it up
};
} // namespace

static constexpr Core kCores[] = {
    {"skylake-avx512", 32, 1024, false}, {"cascadelake", 32, 1024, false},    {"cooperlake", 32, 1024, false},
    {"icelake-server", 48, 1280, false}, {"sapphirerapids", 48, 2048, false}, {"emeraldrapids", 48, 2048, false},
    {"graniterapids", 48, 2048, false},  {"znver4", 32, 1024, true},          {"znver5", 48, 1024, false},
    {"haswell", 32, 256, false},         {"broadwell", 32, 256, false},       {"skylake", 32, 256, false},
    {"neoverse-n1", 64, 1024, false},    {"neoverse-v1", 64, 1024, false},    {"neoverse-v2", 64, 2048, false}};

static void setCore(TargetModel &model, StringRef name) {
  for (const Core &core : kCores)
    if (core.name == name) {
      model.l1Bytes = core.l1KiB << 10;
      model.l2Bytes = core.l2KiB << 10;
      if (core.oneFMA && model.lanes == 16)
        model.costs.pair[0] = 1.02;
    }
}

// AArch64 has them all; of another architecture nothing is taken for granted.
static void setInstructions(TargetModel &model, const llvm::MCSubtargetInfo &info) {
  llvm::Triple triple(model.triple);
  auto has = [&](const char *feature) { return triple.isAArch64() || (triple.isX86() && info.checkFeatures(feature)); };
  model.fma = has("+fma");
  model.rounding = has("+sse4.1");
  model.f16Conversions = has("+f16c");
}

// Costs of widths are measured: AVX-512 on Sapphire Rapids (0.71 of peak with 16 queries, 0.87 with 32 or 48), and
// AVX2.
static void setForm(TargetModel &model, const llvm::MCSubtargetInfo &info) {
  llvm::Triple triple(model.triple);
  if (triple.isX86() && info.checkFeatures(kAVX512)) {
    model.form = "AVX-512";
    model.lanes = 16, model.rows = 8, model.avx512Exp = true;
    model.l2Bytes = 1 << 20;
    // Other systems grant it in other ways. Without a vendor the system is found in a triple's normal form only.
    model.amx = llvm::Triple(llvm::Triple::normalize(model.triple)).isOSLinux() && info.checkFeatures(kAMX);
    model.bf16Pairs = info.checkFeatures("+avx512bf16");
  } else if (triple.isX86() && info.checkFeatures(kAVX2)) {
    model.form = "AVX2 and FMA";
    model.lanes = 8, model.rows = 4;
    model.costs.pair = {2.05, 1.02, 1, 1.05};
  } else {
    model.form = "portable, 4 lanes";
    model.lanes = 4, model.rows = triple.isAArch64() ? 8 : 4; // 32 or 16 vector registers
    if (model.rows == 4)
      model.costs.pair = {2.05, 1.02, 1, 1.05};
  }
}

/// Adds "+feature" and "-feature" to the model; fails for what LLVM does not know.
static LogicalResult addFeatures(TargetModel &model, const llvm::MCSubtargetInfo &known, ArrayRef<StringRef> more,
                                 std::string &error) {
  for (StringRef feature : more) {
    StringRef name = feature.drop_while([](char c) { return c == '+' || c == '-'; });
    auto isIt = [&](const llvm::SubtargetFeatureKV &entry) { return name == entry.Key; };
    if (name.size() + 1 != feature.size() || llvm::none_of(known.getAllProcessorFeatures(), isIt)) {
      error = "'" + feature.str() + "' behind the name of a CPU should be a feature that LLVM knows with + or - in " +
              "front, as -amx-tile (llc -mattr=help lists all)";
      return failure();
    }
    model.features += (model.features.empty() ? "" : ",") + feature.str();
  }
  return success();
}

FailureOr<TargetModel> TargetModel::get(StringRef given, StringRef triple, std::string &error) {
  SmallVector<StringRef> parts = llvm::to_vector(llvm::split(given, ','));
  StringRef cpu = parts.front();
  llvm::InitializeAllTargetInfos();
  llvm::InitializeAllTargets();
  llvm::InitializeAllTargetMCs();
  llvm::InitializeAllAsmPrinters();
  llvm::InitializeAllAsmParsers(); // micro-kernels have inline assembly
  TargetModel model;
  model.name = given.str();
  model.triple = triple.empty() ? llvm::sys::getDefaultTargetTriple() : triple.str();
  llvm::Triple parsed(model.triple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(parsed, error);
  if (!target)
    return failure();
  if (!parsed.isArch64Bit() || !parsed.isLittleEndian()) {
    error = "kernels are for 64-bit little-endian machines, which " + parsed.getArchName().str() + " is not";
    return failure();
  }
  std::unique_ptr<llvm::MCSubtargetInfo> neutral(target->createMCSubtargetInfo(parsed, "", ""));
  if (cpu == "native") {
    if (parsed.getArch() != llvm::Triple(llvm::sys::getProcessTriple()).getArch()) {
      error = "native is the CPU of this machine, which is not of the architecture " + parsed.getArchName().str() +
              "; name a CPU with --cpu";
      return failure();
    }
    setNative(model);
  } else {
    model.cpu = cpu.str();
    // LLVM prints to stderr and goes on with a name that it does not know: ask a neutral subtarget first.
    if (!neutral->isCPUStringValid(cpu)) {
      error = "unknown CPU '" + cpu.str() + "' for " + parsed.getArchName().str() +
              "; use native or a name of LLVM, as x86-64-v3, x86-64-v4, sapphirerapids (llc -mcpu=help lists all)";
      return failure();
    }
  }
  if (failed(addFeatures(model, *neutral, ArrayRef(parts).drop_front(), error)))
    return failure();
  std::unique_ptr<llvm::MCSubtargetInfo> info(target->createMCSubtargetInfo(parsed, model.cpu, model.features));
  if (parsed.isX86() && !info->checkFeatures("+64bit")) {
    error = "'" + model.cpu + "' has no 64-bit mode; kernels are for 64-bit machines, from --cpu=x86-64 on";
    return failure();
  }
  setForm(model, *info);
  setInstructions(model, *info);
  setCore(model, cpu == "native" ? llvm::sys::getHostCPUName() : cpu);
  return model;
}

static bool isFeature(StringRef part) { return part.starts_with("+") || part.starts_with("-"); }

FailureOr<std::vector<TargetModel>> getLevels(StringRef cpus, StringRef triple, std::string &error) {
  SmallVector<std::string> names;
  for (StringRef part : llvm::split(cpus, ','))
    if (isFeature(part) && !names.empty())
      names.back() += "," + part.str();
    else
      names.push_back(part.str());
  std::vector<TargetModel> levels;
  for (StringRef name : names) {
    FailureOr<TargetModel> level = TargetModel::get(name, triple, error);
    if (failed(level))
      return failure();
    levels.push_back(std::move(*level));
  }
  if (levels.size() > 1 && !llvm::Triple(levels.front().triple).isX86()) {
    error = "code for several CPUs in one object is for x86-64, not for " + levels.front().triple + "; name one CPU";
    return failure();
  }
  return std::move(levels);
}

} // namespace attn
