//===- Options.h - What the command lines of the tools share ----------------===//
#ifndef ATTN_TOOLS_OPTIONS_H
#define ATTN_TOOLS_OPTIONS_H

#include "attn/Schedule/Schedule.h"
#include "attn/Support/Errors.h"
#include "llvm/Support/CommandLine.h"

namespace attn::tools {

enum class Switch { Off, On };

inline llvm::cl::ValuesClass switchValues() {
  return llvm::cl::values(clEnumValN(Switch::On, "on", ""), clEnumValN(Switch::Off, "off", ""));
}

/// The options that override choices of the schedule, as those of attn-select-schedule.
struct ScheduleOptions {
  explicit ScheduleOptions(llvm::cl::OptionCategory &category) : category(category) {}

  /// What was given; an error where the target cannot have it.
  llvm::Expected<ScheduleOverrides> read(const TargetModel &target) const {
    for (const llvm::cl::opt<int64_t> *option : {&queryTile, &keyTile, &group, &split})
      if (option->getNumOccurrences() && *option < 1)
        return makeError("--", option->ArgStr, "=", option->getValue(), " should be at least 1");
    if (queryTile % target.lanes != 0)
      return makeError("--query-tile=", queryTile.getValue(), " should be a multiple of ", target.lanes,
                       ", the floats of a vector of ", target.cpu);
    return ScheduleOverrides{queryTile, keyTile, group, split, reindex == Switch::On};
  }

private:
  llvm::cl::OptionCategory &category;
  llvm::cl::opt<int64_t> queryTile{"query-tile", llvm::cl::desc("Query rows of a tile (chosen)"),
                                   llvm::cl::value_desc("ROWS"), llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> keyTile{"key-tile", llvm::cl::desc("Key rows of a tile (chosen)"),
                                 llvm::cl::value_desc("ROWS"), llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> group{"group", llvm::cl::desc("Query tiles of a task (chosen)"), llvm::cl::value_desc("TILES"),
                               llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> split{"split", llvm::cl::desc("Least keys of a part where keys are split (chosen)"),
                               llvm::cl::value_desc("KEYS"), llvm::cl::cat(category)};
  llvm::cl::opt<Switch> reindex{"reindex",
                                llvm::cl::desc("Run strided and blocked masks as smaller dense problems (on)"),
                                llvm::cl::init(Switch::On), llvm::cl::cat(category), switchValues()};
};

/// An option, or one value of it, that the command line keeps a place for and that has no code yet.
struct Missing {
  llvm::StringLiteral option, value, why;
};

constexpr Missing kMissing[] = {
    {"preset", "", "there are no presets yet; give a SPEC.mlir, as those in examples/"},
    {"set", "", "is for presets, and there are none yet; write the parameter in a SPEC.mlir"},
    {"list-presets", "", "there are no presets yet; give a SPEC.mlir, as those in examples/"},
    {"dtype", "", "is for presets, and there are none yet; write the element type in a SPEC.mlir"},
    {"head-dim", "", "is for presets, and there are none yet; write head_dim in a SPEC.mlir"},
};

/// Refuses the first option that has no code yet.
inline llvm::Error checkMissing(llvm::ArrayRef<const char *> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef text = arguments[i];
    if (!text.consume_front("-"))
      continue;
    text.consume_front("-");
    auto [name, value] = text.split('=');
    if (!text.contains('=') && i + 1 < arguments.size())
      value = arguments[i + 1];
    for (const Missing &missing : kMissing)
      if (missing.option == name && (missing.value.empty() || missing.value == value))
        return makeError("--", name, missing.value.empty() ? "" : "=", missing.value, ": ", missing.why);
  }
  return llvm::Error::success();
}

} // namespace attn::tools

#endif // ATTN_TOOLS_OPTIONS_H
