//===- BigBird.cpp - BigBird --------------------------------------------------===//
#include "Systems.h"

namespace attn::presets {

Preset bigBird() {
  return {"bigbird",
          "Zaheer et al., BigBird (2020): internal globals, set semantics",
          "fixed, memory",
          "O(N block (2 window + 1 + 2 globals + random))",
          /*decodes=*/false,
          {Setting::number("block", 64, 1, "tokens of a block"),
           Setting::number("window", 1, 0, "blocks on each side of the query's own"),
           Setting::number("random", 3, 1, "random blocks for each query block, from the table; -1: none"),
           Setting::number("tokens", 4096, 1, "N, whose last block is global as the first is")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            int64_t last = (set.number("tokens") - 1) / set.number("block");
            std::string globals = last == 0 ? "0" : "0, " + std::to_string(last);
            return set.fill("!r = tensor<?x${random}xi32>      // [query blocks, random key blocks]\n\n") +
                   attention("bigbird",
                             set.fill("mask(blocked($block, window(left = $window, right = $window) or "
                                      "global(tokens = [$globals]) or in_table(%random : !r)))",
                                      {{"globals", globals}}),
                             ", %random: !r");
          },
          /*whyNotCausal=*/
          "global tokens read all tokens, later ones too, and every token reads them in the next layer; use longformer "
          "with "
          "causal=on for windows and globals that look back only"};
}

} // namespace attn::presets
