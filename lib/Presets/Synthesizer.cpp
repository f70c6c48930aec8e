//===- Synthesizer.cpp - Scores that are no products of queries and keys ----===//
#include "Systems.h"

namespace attn::presets {

// Scores in place of products: of a query and a key of one 0 each, replaced in the score region.
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
            // Queries are the last tokens; a table has rows for them alone.
            std::string region = set.fill(R"(align(bottom_right) score {
  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):
    %of_queries = arith.constant $q : index
    %of_keys = arith.constant $k : index
    %n = tensor.dim $table, %of_queries : $type
    %m = tensor.dim $table, %of_keys : $type
    %earlier = arith.subi %m, %n : index
    %row = arith.subi %i, %earlier : index
)",
                                          {{"q", dense ? "2" : "1"},
                                           {"k", dense ? "3" : "2"},
                                           {"table", dense ? "%scores" : "%table"},
                                           {"type", dense ? "!s" : "!r"}});
            auto read = [&](llvm::StringRef result, llvm::StringRef from) {
              std::string element = set.fill("    %$result = tensor.extract $from\n",
                                             {{"result", (result + "0").str()}, {"from", from.str()}});
              bool wide = set.is("dtype", "f32");
              return element + set.fill(wide ? "    %$r = arith.addf %${r}0, %s : f32\n"
                                             : "    %${r}1 = arith.extf %${r}0 : $dtype to f32\n"
                                               "    %$r = arith.addf %${r}1, %s : f32\n",
                                        {{"r", result.str()}});
            };
            if (dense)
              region += read("x", "%scores[%b, %h, %row, %j] : !s");
            if (random)
              region += read("y", "%table[%h, %row, %j] : !r");
            if (dense && random)
              region += "    %z = arith.addf %x, %y : f32\n";
            region += set.fill("    attn.yield %$result : f32\n  }", {{"result", dense && random ? "z"
                                                                                 : dense         ? "x"
                                                                                                 : "y"}});
            // Two tensors, so that both agree in extents.
            auto zeros = [&](llvm::StringRef result, const char *values, const char *of) {
              Product p{"v",          values, dense ? "scores" : "table", of,  "b, h, n, d",
                        "b, h, n, d", "!t",   dense ? "!s" : "!r",        "!z"};
              return compute(result, p, "    %zero = arith.constant 0.0 : f32\n    attn.result %zero : f32\n");
            };
            std::string arguments =
                std::string("%v: !t") + (dense ? ", %scores: !s" : "") + (random ? ", %table: !r" : "");
            std::string text =
                set.fill(std::string(dense ? "!s = tensor<?x?x?x?x$dtype>  // [batch, heads, queries, keys]\n" : "") +
                         (random ? "!r = tensor<?x?x?x$dtype>    // [heads, queries, keys]\n" : "") +
                         "!z = tensor<?x?x?x1x$dtype>\n\nfunc.func @synthesizer(" + arguments + ") -> !t {\n");
            text += zeros("keys", "b, h, n, 0", dense ? "b, h, 0, n" : "h, 0, n");
            text += zeros("queries", "b, h, 0, 0", dense ? "b, h, n, 0" : "h, n, 0");
            return text + "  %out = attn.attention %queries, %keys, %v " + region +
                   (set.isOn("causal") ? " mask(causal)" : "") + " : !z, !z, !t -> !t\n  return %out : !t\n}\n";
          }};
}

} // namespace attn::presets
