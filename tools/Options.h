//===- Options.h - What the command lines of the tools share ----------------===//
#ifndef ATTN_TOOLS_OPTIONS_H
#define ATTN_TOOLS_OPTIONS_H

#include "attn/Presets/Presets.h"
#include "attn/Schedule/Schedule.h"
#include "attn/Support/Errors.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace attn::tools {

enum class Switch { Off, On };

inline llvm::cl::ValuesClass switchValues() {
  return llvm::cl::values(clEnumValN(Switch::On, "on", ""), clEnumValN(Switch::Off, "off", ""));
}

/// The options that override choices of the schedule, as those of attn-select-schedule.
struct ScheduleOptions {
  explicit ScheduleOptions(llvm::cl::OptionCategory &category) : category(category) {}

  /// What was given; an error where the target cannot have it.
  llvm::Expected<ScheduleOverrides> read(const TargetModel &target, bool gpu) const {
    if (pack.getNumOccurrences() && !gpu)
      return makeError("--pack is for GPU kernels; use it with --target=cuda");
    for (const llvm::cl::opt<int64_t> *option : {&queryTile, &keyTile, &group, &split, &pack})
      if (option->getNumOccurrences() && *option < 1)
        return makeError("--", option->ArgStr, "=", option->getValue(), " should be at least 1");
    if (queryTile % target.lanes != 0)
      return makeError("--query-tile=", queryTile.getValue(), " should be a multiple of ", target.lanes,
                       ", the floats of a vector of ", target.cpu);
    return ScheduleOverrides{queryTile, keyTile, group, split, reindex == Switch::On, pack};
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
  llvm::cl::opt<int64_t> pack{"pack", llvm::cl::desc("Query heads that share a query tile, on a GPU (chosen)"),
                              llvm::cl::value_desc("HEADS"), llvm::cl::cat(category)};
  llvm::cl::opt<Switch> reindex{"reindex",
                                llvm::cl::desc("Run strided and blocked masks as smaller dense problems (on)"),
                                llvm::cl::init(Switch::On), llvm::cl::cat(category), switchValues()};
};

/// The spec: a file, or a preset with its settings.
struct SpecOptions {
  explicit SpecOptions(llvm::cl::OptionCategory &category) : category(category) {}

  /// The file, or the text of the preset, under the name that its diagnostics show.
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> open() const {
    registerAllPresets();
    if (preset.empty())
      return openFile();
    if (!path.empty())
      return makeError("both a spec, ", path.getValue(), ", and --preset=", preset.getValue(), "; give one of them");
    PresetRequest request{preset, {}, dtype, headDim};
    for (llvm::StringRef entry : settings) {
      auto [name, value] = entry.split('=');
      if (name.empty() || !entry.contains('='))
        return makeError("--set=", entry, " should be SETTING=VALUE");
      request.settings[name.str()] = value.str();
    }
    llvm::Expected<std::string> text = writePreset(request);
    if (!text)
      return text.takeError();
    return llvm::MemoryBuffer::getMemBufferCopy(*text, "preset:" + preset);
  }

  /// The name of the spec, for what is made of it.
  std::string name() const {
    if (!preset.empty())
      return preset;
    return path == "-" ? "spec" : llvm::sys::path::stem(path.getValue()).str();
  }

  bool listPresets() const { return list; }

private:
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> openFile() const {
    for (const llvm::cl::Option *option :
         std::initializer_list<const llvm::cl::Option *>{std::addressof(settings), &dtype, &headDim})
      if (option->getNumOccurrences())
        return makeError("--", option->ArgStr, " is for presets; a SPEC.mlir says it itself");
    if (path.empty())
      return makeError("no spec given; give a SPEC.mlir, - for standard input, or --preset=NAME");
    std::string message;
    std::unique_ptr<llvm::MemoryBuffer> file = mlir::openInputFile(path, &message);
    if (!file)
      return makeError(message);
    return file;
  }

  llvm::cl::OptionCategory &category;
  llvm::cl::opt<std::string> path{llvm::cl::Positional, llvm::cl::desc("SPEC.mlir"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> preset{"preset", llvm::cl::desc("A named system instead of a spec"),
                                    llvm::cl::value_desc("NAME"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> settings{"set", llvm::cl::desc("A setting of the preset; may be repeated"),
                                       llvm::cl::value_desc("SETTING=VALUE"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> dtype{"dtype", llvm::cl::desc("Element type of the preset: f32, f16 or bf16 (f32)"),
                                   llvm::cl::init("f32"), llvm::cl::cat(category)};
  llvm::cl::opt<int64_t> headDim{"head-dim", llvm::cl::desc("head_dim of the preset (64)"), llvm::cl::init(64),
                                 llvm::cl::cat(category)};
  llvm::cl::opt<bool> list{"list-presets", llvm::cl::desc("Tell all presets and their settings"),
                           llvm::cl::cat(category)};
};

} // namespace attn::tools

#endif // ATTN_TOOLS_OPTIONS_H
