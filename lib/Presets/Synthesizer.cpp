//===- Synthesizer.cpp - Scores that are no products of queries and keys ----===//
#include "Systems.h"

namespace attn::presets {

// Scores in place of products; of two kinds, one is added in the score region.
Preset synthesizer() {
  return {"synthesizer",
          "Tay et al., Synthesizer (2020)",
          "low rank, learnable",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::word("scores", {"dense", "random", "mixture"},
                         "of every batch and head (from the input, or factorised), of every head, or of both, added"),
           causalSetting("off")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            bool dense = !set.is("scores", "random"), random = !set.is("scores", "dense");
            std::string text = set.fill(
                std::string(dense ? "!s = tensor<?x?x?x?x$dtype>  // [batch, heads, queries, keys]\n" : "") +
                (random ? "!r = tensor<?x?x?x$dtype>    // [heads, queries, keys]\n" : "") +
                "\n// Queries are the last tokens; there are rows of scores for them alone.\nfunc.func "
                "@synthesizer(%v: !t" +
                (dense ? ", %scores: !s" : "") + (random ? ", %table: !r" : "") + ") -> !t {\n" +
                "  %out = attn.attention scores(" + (dense ? "%scores" : "%table") + "), %v align(bottom_right)");
            bool wide = set.is("dtype", "f32");
            if (dense && random)
              text +=
                  set.fill(std::string(R"( score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_queries = arith.constant 1 : index
    %of_keys = arith.constant 2 : index
    %n = tensor.dim %table, %of_queries : !r
    %m = tensor.dim %table, %of_keys : !r
    %earlier = arith.subi %m, %n : index
    %row = arith.subi %i, %earlier : index
    %x = tensor.extract %table[%h, %row, %j] : !r
)") + (wide ? "" : "    %y = arith.extf %x : $dtype to f32\n") +
                           "    %z = arith.addf %s, %" + (wide ? "x" : "y") + " : f32\n    attn.yield %z : f32\n  }");
            return text + (set.isOn("causal") ? " mask(causal)" : "") + " : " + (dense ? "!s" : "!r") +
                   ", !t -> !t\n  return %out : !t\n}\n";
          }};
}

} // namespace attn::presets
