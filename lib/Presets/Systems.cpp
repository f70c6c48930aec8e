//===- Systems.cpp - The presets of this library ----------------------------===//
#include "Systems.h"
#include "llvm/ADT/Twine.h"

namespace attn {
namespace presets {

std::string attention(llvm::StringRef name, llvm::StringRef clauses, llvm::StringRef arguments) {
  return ("func.func @" + name + "(%q: !t, %k: !t, %v: !t" + arguments +
          ") -> !t {\n  %out = attn.attention %q, %k, %v " + clauses + (clauses.empty() ? "" : " ") +
          ": !t, !t, !t -> !t\n  return %out : !t\n}\n")
      .str();
}

Setting causalSetting(llvm::StringRef initial) {
  bool on = initial == "on";
  return Setting::word("causal", {on ? "on" : "off", on ? "off" : "on"}, "no key after the query");
}

llvm::StringRef causalAnd(const Settings &set) { return set.isOn("causal") ? "causal and " : ""; }

std::string byHead(llvm::ArrayRef<std::string> masks) {
  if (masks.size() == 1)
    return masks.front();
  std::string text;
  for (auto [index, mask] : llvm::enumerate(masks))
    text += (llvm::Twine(index ? " or " : "") + "(heads(period = " + llvm::Twine(masks.size()) +
             ", index = " + llvm::Twine(index) + ") and " + mask + ")")
                .str();
  return "(" + text + ")";
}

} // namespace presets

void registerAllPresets() {
  using namespace presets;
  if (!getPresets().empty() && getPresets().count("dense"))
    return;
  for (auto make :
       {memoryCompressed, image1D,        image2D,        setTransformer, sparseStrided, sparseFixed, axial,
        longformer,       bigBird,        routing,        linear,         performer,     gla,         mamba2,
        retnet,           alibi,          attentionSinks, causal,         chunkedLocal,  dense,       documents,
        neighborhood1D,   neighborhood2D, prefixLM,       slidingWindow,  softCap,       t5,          tree})
    registerPreset(make());
}

} // namespace attn
