//===- Presets.h - Named systems, as specs -----------------------*- C++ -*-===//
//
// A preset writes the spec of a named system, "longformer" say, from a few settings. What it writes is text that a user
// could have written: `attn-compile --preset=NAME --emit=attn` prints it, and nothing behind the parser knows presets.
// One that lives outside this library joins with `registerPreset`.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_PRESETS_PRESETS_H
#define ATTN_PRESETS_PRESETS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace attn {

/// A parameter of a preset: a number, a list of numbers, or one of a few words.
struct Setting {
  static Setting number(llvm::StringRef name, int64_t initial, int64_t least, llvm::StringRef meaning);
  static Setting list(llvm::StringRef name, llvm::StringRef initial, int64_t least, llvm::StringRef meaning);
  /// The first word is the default.
  static Setting word(llvm::StringRef name, std::vector<std::string> words, llvm::StringRef meaning);

  std::string name, initial, meaning;
  bool isList = false;
  int64_t least = 0;              // of a number
  std::vector<std::string> words; // empty: numbers

  /// Nothing where `text` is a value; else what is wrong with it.
  std::string check(llvm::StringRef text) const;
};

/// The values of all settings of a preset, and how it becomes text.
class Settings {
public:
  int64_t number(llvm::StringRef name) const;
  llvm::SmallVector<int64_t> list(llvm::StringRef name) const;
  llvm::StringRef word(llvm::StringRef name) const;
  bool is(llvm::StringRef name, llvm::StringRef value) const { return word(name) == value; }
  bool isOn(llvm::StringRef name) const { return is(name, "on"); }

  /// `text` with every `$name` or `${name}` replaced: a setting, `head_dim`, `dtype`, or one of `more`.
  std::string fill(llvm::StringRef text, const std::map<std::string, std::string> &more = {}) const;

  std::map<std::string, std::string> values; // of settings, head_dim and dtype
};

/// What the survey's Table 1 (arXiv 2009.06732) says of a system, what it takes, and how to write it.
struct Preset {
  std::string name;
  std::string source;     // "Beltagy et al., Longformer (2020)"
  std::string kind;       // the survey's class: fixed, memory, learnable, low rank, kernel, recurrence
  std::string complexity; // "O(N (w + g))"; N tokens, the rest explained by the settings
  bool decodes;           // whether it generates token by token
  std::vector<Setting> settings;
  /// The functions of the spec, behind the alias `!t = tensor<?x?x?x{head_dim}x{dtype}>`; what settings do not allow
  /// together is an error.
  std::function<llvm::Expected<std::string>(const Settings &)> write;
  std::string whyNotCausal = ""; // of a system that has no causal form, to be told who asks for one
};

/// Settings by name, as a user gives them.
struct PresetRequest {
  std::string preset;
  std::map<std::string, std::string> settings;
  std::string dtype = "f32";
  int64_t headDim = 64;
};

/// Adds a preset; its name must be new.
void registerPreset(Preset preset);

/// Adds those of this library. Calling it again does nothing.
void registerAllPresets();

/// All of them, by name.
const std::map<std::string, Preset> &getPresets();

/// Tells all presets: what they are, what their functions take, their settings. `context` knows all our dialects.
llvm::Error printPresets(mlir::MLIRContext *context, llvm::raw_ostream &os);

/// The spec. An error names what is not known or out of range, and what there is.
llvm::Expected<std::string> writePreset(const PresetRequest &request);

} // namespace attn

#endif // ATTN_PRESETS_PRESETS_H
