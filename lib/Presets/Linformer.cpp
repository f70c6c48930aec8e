//===- Linformer.cpp - Keys and values projected along the tokens -----------===//
#include "Systems.h"

namespace attn::presets {

// The projections are of one length of N: a shorter sequence takes their first columns, as a view.
Preset linformer() {
  return {
      "linformer",
      "Wang et al., Linformer (2020)",
      "low rank",
      "O(N features)",
      /*decodes=*/false,
      {Setting::number("features", 256, 1, "rows of a projection: keys that are left"),
       Setting::word("sharing", {"heads", "none", "key_value"},
                     "one projection for all heads, one for each, one for keys and values of all heads"),
       paddingSetting()},
      [](const Settings &set) -> llvm::Expected<std::string> {
        bool own = set.is("sharing", "none"), one = set.is("sharing", "key_value");
        bool padded = set.isOn("padding");
        auto project = [&](llvm::StringRef result, const char *from, const char *projection) {
          std::string tokens = padded ? std::string(from) + "_there" : from;
          return (padded ? dropPadding(tokens, from, "!t") : "") +
                 product(result, {projection, own ? "h, n, m" : "n, m", tokens, "b, h, m, d", "b, h, n, d, m",
                                  "b, h, n, d", "!p", "!t", "!c"});
        };
        return set.fill("!p = tensor<$heads${features}x?x${dtype}>  // [$shape features, tokens]\n"
                        "!c = tensor<?x?x${features}x${head_dim}x${dtype}>\n$there\n"
                        "func.func @linformer(%q: !t, %k: !t, %v: !t, %e: !p$f) -> !t {\n",
                        {{"there", padded ? set.fill(kThere) : ""},
                         {"heads", own ? "?x" : ""},
                         {"shape", own ? "heads," : ""},
                         {"f", std::string(one ? "" : ", %f: !p") + (padded ? ", %there: !there" : "")}}) +
               project("kp", "k", "e") + project("vp", "v", one ? "e" : "f") +
               "  %out = attn.attention %q, %kp, %vp : !t, !c, !c -> !t\n  return %out : !t\n}\n";
      },
      /*whyNotCausal=*/"each projected key is a sum over all tokens, later ones too, so no mask can leave these out"};
}

} // namespace attn::presets
