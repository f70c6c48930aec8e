//===- SetTransformer.cpp - Set Transformer ----------------------------------===//
#include "Systems.h"
#include <cmath>

namespace attn::presets {

/// %result of the rows of all heads that points have gathered, times the weights to each head of %q.
static std::string project(const std::string &result, const std::string &weights) {
  return "  %" + result + " = attn.compute(%h, %" + weights +
         R"(, %q) maps([affine_map<(b, h, n, d, g, e) -> (b, g, n, e)>,
      affine_map<(b, h, n, d, g, e) -> (g, e, h, d)>, affine_map<(b, h, n, d, g, e) -> (b, h, 0, 0)>,
      affine_map<(b, h, n, d, g, e) -> (b, h, n, d)>]) initial(0.0) {
  ^bb0(%x: f32, %y: f32, %z: f32, %total: f32):
    %xy = arith.mulf %x, %y : f32
    %sum = arith.addf %total, %xy : f32
    attn.result %sum : f32
  } : !t, !w, !t -> !t
)";
}

// The tokens of a set are keys and values of learnt points; in ISAB they attend to what these have gathered.
static std::string write(const Settings &set) {
  bool padded = set.isOn("padding");
  std::string lengths = padded ? ", %lengths: !n" : "", scale;
  std::string types = padded ? "!n = tensor<?xi32>        // [batch]: tokens, padding behind them\n" : "";
  if (set.is("scale", "model"))
    scale = "scale(" + std::to_string(1 / std::sqrt(double(set.number("heads") * set.number("head_dim")))) + ") ";
  std::string clauses = scale + (padded ? "mask(key_length(%lengths : !n)) " : "");
  if (set.is("block", "mab"))
    return types + "\n// X attends to Y.\n" + attention("mab", llvm::StringRef(clauses).rtrim(), lengths);
  types += set.fill("!p = tensor<?x?x${head_dim}x$dtype>  // [heads, points, head_dim]\n");
  if (set.is("block", "pma"))
    return types + "\nfunc.func @pma(%seeds: !p, %k: !t, %v: !t" + lengths + ") -> !t {\n" +
           spread("q", "seeds", "!p", "k", "!t", "!t") + "  %out = attn.attention %q, %k, %v " + clauses +
           ": !t, !t, !t -> !t\n  return %out : !t\n}\n";
  return types +
         set.fill("!w = tensor<?x${head_dim}x?x${head_dim}x$dtype>  // [from head, from, to head, to]\n\n"
                  "// Between the two attentions stands what makes keys and values of the points' rows.\n"
                  "func.func @isab(%points: !p, %k: !t, %v: !t, %q: !t, %wk: !w, %wv: !w") +
         lengths + ") -> !t {\n" + spread("qp", "points", "!p", "k", "!t", "!t") +
         "  %h = attn.attention %qp, %k, %v " + clauses + ": !t, !t, !t -> !t\n" + project("kp", "wk") +
         project("vp", "wv") + "  %out = attn.attention %q, %kp, %vp " + scale +
         ": !t, !t, !t -> !t\n  return %out : !t\n}\n";
}

Preset setTransformer() {
  return {
      "set",
      "Lee et al., Set Transformer (2019): the attention of MAB, ISAB and PMA",
      "memory",
      "O(N points)",
      /*decodes=*/false,
      {Setting::word("block", {"mab", "isab", "pma"},
                     "one set attends to another; inducing points to the set, and the set to these; seeds to the set"),
       Setting::word("scale", {"head_dim", "model"},
                     "scores over sqrt(head_dim); or over sqrt(heads * head_dim), as the authors' code does"),
       Setting::number("heads", 8, 1, "query heads, for scale=model"),
       Setting::word("padding", {"off", "on"}, "batches have lengths; the rows behind them are none")},
      [](const Settings &set) -> llvm::Expected<std::string> { return write(set); },
      /*whyNotCausal=*/"points and seeds gather all tokens of a set, which has no order"};
}

} // namespace attn::presets
