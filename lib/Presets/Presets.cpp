//===- Presets.cpp - Settings, text and the list of presets ---------------===//
#include "attn/Presets/Presets.h"
#include "attn/Support/Errors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using llvm::StringRef;

namespace attn {
namespace {

std::map<std::string, Preset> &registry() {
  static std::map<std::string, Preset> presets;
  return presets;
}

template <typename Range>
std::string listNames(const Range &range) {
  std::string text;
  for (auto &entry : range)
    text += (text.empty() ? "" : ", ") + entry;
  return text.empty() ? "none" : text;
}

std::vector<std::string> settingNames(const Preset &preset) {
  std::vector<std::string> names;
  for (const Setting &setting : preset.settings)
    names.push_back(setting.name);
  return names;
}

llvm::Error checkSettings(const Preset &preset, const PresetRequest &request) {
  for (auto &[name, value] : request.settings) {
    auto found =
        llvm::find_if(preset.settings, [key = StringRef(name)](const Setting &setting) { return setting.name == key; });
    if (found == preset.settings.end() && name == "causal" && !preset.whyNotCausal.empty())
      return makeError("--set=causal: ", preset.name, " has no causal form and does not decode: ", preset.whyNotCausal);
    if (found == preset.settings.end())
      return makeError("--set=", name, ": ", preset.name, " has no such setting; it has ",
                       listNames(settingNames(preset)));
    if (std::string wrong = found->check(value); !wrong.empty())
      return makeError("--set=", name, "=", value, ": ", wrong, " (", found->meaning, ")");
  }
  return llvm::Error::success();
}

} // namespace

Setting Setting::number(StringRef name, int64_t initial, int64_t least, StringRef meaning) {
  return {name.str(), llvm::itostr(initial), meaning.str(), /*isList=*/false, least, {}};
}

Setting Setting::list(StringRef name, StringRef initial, int64_t least, StringRef meaning) {
  return {name.str(), initial.str(), meaning.str(), /*isList=*/true, least, {}};
}

Setting Setting::word(StringRef name, std::vector<std::string> words, StringRef meaning) {
  return {name.str(), words.front(), meaning.str(), /*isList=*/false, 0, words};
}

std::string Setting::check(StringRef text) const {
  if (!words.empty())
    return llvm::is_contained(words, text) ? "" : "should be one of " + listNames(words);
  llvm::SmallVector<StringRef> parts{text};
  if (isList)
    llvm::SplitString(text, parts = {}, ",");
  for (StringRef part : parts)
    if (int64_t value; part.getAsInteger(10, value) || value < least || value > INT32_MAX)
      return std::string(isList ? "should be numbers with commas between them, each" : "should be a number") +
             " from " + llvm::itostr(least) + " to 2^31 - 1";
  return parts.empty() ? "should have at least one number" : "";
}

int64_t Settings::number(StringRef name) const {
  int64_t value = 0;
  word(name).getAsInteger(10, value);
  return value;
}

llvm::SmallVector<int64_t> Settings::list(StringRef name) const {
  llvm::SmallVector<StringRef> parts;
  llvm::SplitString(word(name), parts, ",");
  llvm::SmallVector<int64_t> numbers(parts.size());
  for (auto [part, number] : llvm::zip_equal(parts, numbers))
    part.getAsInteger(10, number);
  return numbers;
}

StringRef Settings::word(StringRef name) const {
  auto found = values.find(name.str());
  assert(found != values.end() && "a preset asks for a setting that it does not have");
  return found->second;
}

std::string Settings::fill(StringRef text, const std::map<std::string, std::string> &more) const {
  std::string filled;
  for (size_t at; (at = text.find('$')) != StringRef::npos;) {
    filled += text.take_front(at);
    text = text.drop_front(at + 1);
    bool braced = text.consume_front("{");
    StringRef name = text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    text = text.drop_front(name.size() + braced);
    auto found = more.find(name.str());
    filled += found == more.end() ? word(name) : StringRef(found->second);
  }
  return filled + text.str();
}

void registerPreset(Preset preset) {
  std::string name = preset.name;
  [[maybe_unused]] bool added = registry().emplace(name, std::move(preset)).second;
  assert(added && "two presets have one name");
}

const std::map<std::string, Preset> &getPresets() { return registry(); }

llvm::Expected<std::string> writePreset(const PresetRequest &request) {
  auto found = registry().find(request.preset);
  if (found == registry().end())
    return makeError("--preset=", request.preset, ": there is no such preset; --list-presets tells them: ",
                     listNames(llvm::make_first_range(registry())));
  if (!llvm::is_contained({"f32", "f16", "bf16"}, request.dtype))
    return makeError("--dtype=", request.dtype, " should be f32, f16 or bf16");
  if (request.headDim < 1 || request.headDim > 576)
    return makeError("--head-dim=", request.headDim, " should be from 1 to 576");
  const Preset &preset = found->second;
  if (llvm::Error error = checkSettings(preset, request))
    return error;
  Settings settings;
  for (const Setting &setting : preset.settings)
    settings.values[setting.name] = setting.initial;
  for (auto &[name, value] : request.settings)
    settings.values[name] = value;
  settings.values["dtype"] = request.dtype;
  settings.values["head_dim"] = llvm::itostr(request.headDim);
  llvm::Expected<std::string> functions = preset.write(settings);
  if (!functions)
    return makeError(preset.name, ": ", llvm::toString(functions.takeError()));
  return "// " + preset.source + "\n" +
         settings.fill("!t = tensor<?x?x?x${head_dim}x$dtype> // [batch, heads, tokens, head_dim]\n\n") + *functions;
}

} // namespace attn
