//===- BigBird.cpp - BigBird --------------------------------------------------===//
#include "Systems.h"

namespace attn::presets {

/// Each random block is a set of its own, and counts once more where another set has it; global rows see all once.
static std::string countedMask(const Settings &set, llvm::StringRef globals) {
  std::string text = set.fill(R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %size = arith.constant $block : index
    %rows = arith.floordivsi %i, %size : index
    %keys = arith.floordivsi %j, %size : index
    %window = attn.window %rows, %keys {left = $window, right = $window}
    %global = attn.global %rows, %keys {tokens = array<i64: $globals>}
    %near = arith.ori %window, %global : i1
    %all = attn.global %rows, %rows {tokens = array<i64: $globals>}
    %yes = arith.constant true
    %local = arith.xori %all, %yes : i1
)",
                              {{"globals", globals.str()}});
  std::string members = "%near", types = "i1";
  for (int64_t k = 0; k < set.number("random"); ++k) {
    text += set.fill("    %place$k = arith.constant $k : index\n"
                     "    %entry$k = tensor.extract %random[$head%rows, %place$k] : !r\n"
                     "    %block$k = arith.index_cast %entry$k : i32 to index\n"
                     "    %named$k = arith.cmpi eq, %keys, %block$k : index\n"
                     "    %random$k = arith.andi %named$k, %local : i1\n",
                     {{"k", std::to_string(k)}, {"head", set.is("tables", "per_head") ? "%h, " : ""}});
    members += ", %random" + std::to_string(k);
    types += ", i1";
  }
  return text + "    attn.yield " + members + " : " + types + "\n  }";
}

Preset bigBird() {
  return {"bigbird",
          "Zaheer et al., BigBird (2020): internal globals, set semantics",
          "fixed, memory",
          "O(N block (2 window + 1 + 2 globals + random))",
          /*decodes=*/false,
          {Setting::number("block", 64, 1, "tokens of a block"),
           Setting::number("window", 1, 0, "blocks on each side of the query's own"),
           Setting::number("random", 3, 1, "random blocks for each query block, from the table; -1: none"),
           Setting::number("tokens", 4096, 1, "N, whose last block is global as the first is"),
           Setting::word("tables", {"shared", "per_head"}, "one table for all heads, or one for each"),
           Setting::word("counted", {"off", "on"}, "a key counts as often as sets and table name it, as in the code")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            int64_t last = (set.number("tokens") - 1) / set.number("block");
            std::string globals = last == 0 ? "0" : "0, " + std::to_string(last);
            std::string mask = set.isOn("counted")
                                   ? countedMask(set, globals)
                                   : set.fill("mask(blocked($block, window(left = $window, right = $window) or "
                                              "global(tokens = [$globals]) or in_table(%random : !r)))",
                                              {{"globals", globals}});
            bool own = set.is("tables", "per_head");
            return set.fill(
                       "!r = tensor<$heads?x${random}xi32>      // [${of_heads}query blocks, random key blocks]\n\n",
                       {{"heads", own ? "?x" : ""}, {"of_heads", own ? "heads, " : ""}}) +
                   attention("bigbird", mask, ", %random: !r");
          },
          /*whyNotCausal=*/
          "global tokens read all tokens, later ones too, and every token reads them in the next layer; use longformer "
          "with "
          "causal=on for windows and globals that look back only"};
}

} // namespace attn::presets
