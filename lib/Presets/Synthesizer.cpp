//===- Synthesizer.cpp - Scores that are no products of queries and keys ----===//
#include "Systems.h"

namespace attn::presets {

/// An element of `tensor` as %NAME, an f32.
static std::string read(const Settings &set, const std::string &name, llvm::StringRef element) {
  bool wide = set.is("dtype", "f32");
  std::string text = "    %" + name + (wide ? "" : "_narrow") + " = tensor.extract " + element.str() + "\n";
  return text + (wide ? "" : set.fill("    %$n = arith.extf %${n}_narrow : $dtype to f32\n", {{"n", name}}));
}

static std::string region(llvm::StringRef body) {
  return ("score {\n  ^bb0(%s: f32, %b: index, %h: index, %i: index, %j: index):\n" + body +
          "    attn.yield %sum : f32\n  } ")
      .str();
}

/// %row: that of the query in a table of rows for the last tokens alone.
static std::string findRow(const Settings &set, llvm::StringRef table, llvm::StringRef type, int64_t dim) {
  return set.fill(R"(    %of_keys = arith.constant 2 : index
    %of_queries = arith.constant $dim : index
    %m = tensor.dim %v, %of_keys : !t
    %n = tensor.dim %$table, %of_queries : $type
    %earlier = arith.subi %m, %n : index
    %row = arith.subi %i, %earlier : index
)",
                  {{"table", table.str()}, {"type", type.str()}, {"dim", std::to_string(dim)}});
}

/// Adds a score of every head to %s.
static std::string addTable(const Settings &set) {
  return region(findRow(set, "table", "!r", 1) + read(set, "x", "%table[%h, %row, %j] : !r") +
                "    %sum = arith.addf %s, %x : f32\n");
}

/// Two matrices for each head, of all tokens, whose products are the scores.
static std::string writeFactors(const Settings &set) {
  return set.fill("!r = tensor<?x?x${rank}x$dtype>    // [heads, tokens, rank]\n!z = tensor<?x?x?x${rank}x$dtype>\n\n"
                  "func.func @synthesizer(%v: !t, %of_queries: !r, %of_keys: !r) -> !t {\n") +
         spread("queries", "of_queries", "!r", "v", "!t", "!z") + spread("keys", "of_keys", "!r", "v", "!t", "!z") +
         "  %out = attn.attention %queries, %keys, %v scale(1.0) align(bottom_right) $mask: !z, !z, !t -> !t\n";
}

/// The second layer of a token's network is products of its hidden numbers with a row of %w2 for each key.
static std::string writeNetwork(const Settings &set) {
  return set.fill("!r = tensor<?x?x${head_dim}x$dtype>    // [heads, keys, hidden]\n!b = tensor<?x?x$dtype>    // "
                  "[heads, keys]\n\n// Hidden numbers come before their relu.\n"
                  "func.func @synthesizer(%hidden: !t, %v: !t, %w2: !r, %b2: !b) -> !t {\n") +
         compute("queries", {"hidden", "b, h, n, d", "", "", "b, h, n, d", "b, h, n, d", "!t", "", "!t"},
                 "    %zero = arith.constant 0.0 : f32\n    %most = arith.maximumf %x, %zero : f32\n"
                 "    attn.result %most : f32\n") +
         spread("keys", "w2", "!r", "v", "!t", "!t") +
         "  %out = attn.attention %queries, %keys, %v scale(1.0) align(bottom_right) " +
         region(read(set, "x", "%b2[%h, %j] : !b") + "    %sum = arith.addf %s, %x : f32\n") +
         "$mask: !t, !t, !t -> !t\n";
}

/// Two short rows for each token. There are no queries and keys: one 0 of each stands for them.
static std::string writeTiles(const Settings &set) {
  auto zeros = [](llvm::StringRef result, const char *like, const char *type) {
    return compute(result, {like, "b, h, n, 0", "", "", "b, h, n, d", "b, h, n, d", type, "", "!z"},
                   "    %zero = arith.constant 0.0 : f32\n    attn.result %zero : f32\n");
  };
  return set.fill(
             "!a = tensor<?x?x?x${rank}x$dtype>    // [batch, heads, queries, rank]\n!c = tensor<?x?x?x?x$dtype>    "
             "// [batch, heads, queries, keys / rank]\n!z = tensor<?x?x?x1x$dtype>\n\n"
             "func.func @synthesizer(%v: !t, %a: !a, %c: !c) -> !t {\n") +
         zeros("queries", "a", "!a") + zeros("keys", "v", "!t") +
         "  %out = attn.attention %queries, %keys, %v align(bottom_right) " +
         region(findRow(set, "a", "!a", 2) + set.fill(R"(    %rank = arith.constant $rank : index
    %place = arith.remui %j, %rank : index
    %tile = arith.divui %j, %rank : index
)") + read(set, "x", "%a[%b, %h, %row, %place] : !a") +
                read(set, "y", "%c[%b, %h, %row, %tile] : !c") +
                "    %xy = arith.mulf %x, %y : f32\n    %sum = arith.addf %s, %xy : f32\n") +
         "$mask: !z, !z, !t -> !t\n";
}

/// Scores as operands, or such a table added to products of queries and keys.
static std::string writeGiven(const Settings &set) {
  bool products = set.is("scores", "plus"), random = set.is("scores", "random");
  bool both = products || set.is("scores", "mixture");
  std::string types =
      std::string(products || random ? "" : "!s = tensor<?x?x?x?x$dtype>  // [batch, heads, queries, keys]\n") +
      (both || random ? "!r = tensor<?x?x?x$dtype>    // [heads, queries, keys]\n" : "");
  std::string arguments = products ? "%q: !t, %k: !t, %v: !t, %table: !r"
                          : random ? "%v: !t, %table: !r"
                                   : std::string("%v: !t, %scores: !s") + (both ? ", %table: !r" : "");
  std::string of = products ? "%q, %k, %v" : random ? "scores(%table), %v" : "scores(%scores), %v";
  return set.fill(types + "\n// Queries are the last tokens; there are rows of scores for them alone.\n") +
         "func.func @synthesizer(" + arguments + ") -> !t {\n  %out = attn.attention " + of + " align(bottom_right) " +
         (both ? addTable(set) : "") + "$mask: " +
         (products ? "!t, !t"
          : random ? "!r"
                   : "!s") +
         ", !t -> !t\n";
}

Preset synthesizer() {
  return {"synthesizer",
          "Tay et al., Synthesizer (2020)",
          "low rank, learnable",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::word(
               "scores", {"dense", "network", "factorised_dense", "random", "factorised_random", "mixture", "plus"},
               "of every batch and head (from the input); these from the hidden layer of a token's network; as "
               "products of two short rows, a[j mod rank] c[j div rank]; of every head; as products of two "
               "matrices; dense and random, added; products of queries and keys, and random"),
           Setting::number("rank", 8, 1, "columns of the factors"), causalSetting("off")},
          [](const Settings &set) -> llvm::Expected<std::string> {
            std::string text = set.is("scores", "network")             ? writeNetwork(set)
                               : set.is("scores", "factorised_dense")  ? writeTiles(set)
                               : set.is("scores", "factorised_random") ? writeFactors(set)
                                                                       : writeGiven(set);
            return set.fill(text, {{"mask", set.isOn("causal") ? "mask(causal) " : ""}}) + "  return %out : !t\n}\n";
          }};
}

} // namespace attn::presets
