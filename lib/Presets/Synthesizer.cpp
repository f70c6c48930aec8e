//===- Synthesizer.cpp - Scores that are no products of queries and keys ----===//
#include "Systems.h"

namespace attn::presets {

/// Two matrices for each head, of all tokens, whose products are the scores.
static std::string writeFactors(const Settings &set) {
  auto spread = [&](llvm::StringRef result, const char *from) {
    Product p{from, "h, n, r", "v", "b, h, 0, 0", "b, h, n, r", "b, h, n, r", "!r", "!t", "!z"};
    return compute(result, p, "    attn.result %x : f32\n");
  };
  return set.fill("!r = tensor<?x?x${rank}x$dtype>    // [heads, tokens, rank]\n!z = tensor<?x?x?x${rank}x$dtype>\n\n"
                  "func.func @synthesizer(%v: !t, %of_queries: !r, %of_keys: !r) -> !t {\n") +
         spread("queries", "of_queries") + spread("keys", "of_keys") +
         "  %out = attn.attention %queries, %keys, %v scale(1.0) align(bottom_right)" +
         (set.isOn("causal") ? " mask(causal)" : "") + " : !z, !z, !t -> !t\n  return %out : !t\n}\n";
}

// Scores in place of products; of two kinds, one is added in the score region.
Preset synthesizer() {
  return {"synthesizer",
          "Tay et al., Synthesizer (2020)",
          "low rank, learnable",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::word("scores", {"dense", "random", "mixture", "factorised"},
                         "of every batch and head (from the input), of every head, of both, added, or of every head "
                         "as the product of two matrices"),
           Setting::number("rank", 8, 1, "columns of the matrices of factorised"), causalSetting("off")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            if (set.is("scores", "factorised"))
              return writeFactors(set);
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
