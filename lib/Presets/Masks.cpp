//===- Masks.cpp - Masks of today's models -----------------------------------===//
#include "Systems.h"

namespace attn::presets {

using Spec = llvm::Expected<std::string>;

Preset dense() {
  return {"dense", "Vaswani et al., Attention Is All You Need (2017), encoder",    "dense", "O(N^2)", /*decodes=*/true,
          {},      [](const Settings &) -> Spec { return attention("dense", ""); }};
}

Preset causal() {
  return {"causal",
          "Vaswani et al., Attention Is All You Need (2017), decoder",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {Setting::word("align", {"bottom_right", "top_left"},
                         "the last query at the last key, as with a cache; or the first at the first")},
          [](const Settings &set) -> Spec { return attention("causal", set.fill("align($align) mask(causal)")); }};
}

Preset slidingWindow() {
  return {"sliding-window",
          "Jiang et al., Mistral 7B (2023)",
          "fixed",
          "O(N window)",
          /*decodes=*/true,
          {Setting::number("window", 4096, 1, "keys that a query sees, its own among them")},
          [](const Settings &set) -> Spec {
            return attention("sliding_window",
                             "mask(causal and window(left = " + std::to_string(set.number("window") - 1) + "))");
          }};
}

Preset attentionSinks() {
  return {"attention-sinks",
          "Xiao et al., Efficient Streaming Language Models with Attention Sinks (2023)",
          "fixed",
          "O(N (window + sinks))",
          /*decodes=*/true,
          {Setting::number("window", 1024, 1, "keys that a query sees, its own among them"),
           Setting::number("sinks", 4, 1, "first tokens, which all queries see")},
          [](const Settings &set) -> Spec {
            return attention("attention_sinks",
                             set.fill("mask(causal and (window(left = $left) or prefix(length = $sinks)))",
                                      {{"left", std::to_string(set.number("window") - 1)}}));
          }};
}

Preset prefixLM() {
  return {"prefix-lm",
          "Raffel et al., T5 (2020): prefix language model",
          "dense",
          "O(N^2)",
          /*decodes=*/true,
          {},
          [](const Settings &) -> Spec {
            return "!n = tensor<?xi32>        // [batch]: tokens of the prefix, which see each other both ways\n\n" +
                   attention("prefix_lm", "mask(causal or key_length(%prefix : !n))", ", %prefix: !n");
          }};
}

Preset documents() {
  return {
      "documents",
      "Packed sequences, as in FlashAttention's varlen and FlexAttention's document mask",
      "fixed",
      "O(sum of the squares of the documents' lengths)",
      /*decodes=*/true,
      {causalSetting("on"), Setting::number("shared_prefix", 0, 0, "first tokens, which every document sees as well")},
      [](const Settings &set) -> Spec {
        std::string mask = "same_document(%documents : !i)";
        if (set.number("shared_prefix") > 0)
          mask = set.fill("(" + mask + " or prefix(length = $shared_prefix))");
        return "!i = tensor<?x?xi32>      // [batch, tokens]: the document of each token\n\n" +
               attention("documents", "mask(" + causalAnd(set).str() + mask + ")", ", %documents: !i");
      }};
}

Preset chunkedLocal() {
  return {
      "chunked-local",
      "Meta, Llama 4 (2025): local layers",
      "fixed",
      "O(N chunk)",
      /*decodes=*/true,
      {Setting::number("chunk", 8192, 1, "tokens of a chunk, which attend to each other only"), causalSetting("on")},
      [](const Settings &set) -> Spec {
        return attention("chunked_local",
                         set.fill("mask(${causally}same_block(size = $chunk))", {{"causally", causalAnd(set).str()}}));
      }};
}

Preset neighborhood1D() {
  return {"neighborhood-1d",
          "Hassani et al., Neighborhood Attention Transformer (2023)",
          "fixed",
          "O(N size)",
          /*decodes=*/false,
          {Setting::number("size", 33, 1, "nearest keys; at the borders the window is moved, not cut")},
          [](const Settings &set) -> Spec {
            return attention("neighborhood_1d", set.fill("mask(neighborhood(size = $size))"));
          }};
}

Preset neighborhood2D() {
  return {"neighborhood-2d",
          "Hassani et al., Neighborhood Attention Transformer (2023)",
          "fixed",
          "O(N rows columns)",
          /*decodes=*/false,
          {Setting::number("width", 64, 1, "columns of the grid, whose tokens lie in raster order"),
           Setting::number("rows", 7, 1, "nearest rows"), Setting::number("columns", 7, 1, "nearest columns")},
          [](const Settings &set) -> Spec {
            return attention("neighborhood_2d",
                             set.fill("mask(neighborhood_2d(width = $width, size = [$rows, $columns]))"));
          }};
}

Preset tree() {
  return {"tree",
          "Miao et al., SpecInfer (2024): tokens of a tree of drafts behind a cache",
          "dense",
          "O(N M)",
          /*decodes=*/true,
          {},
          [](const Settings &) -> Spec {
            return "!a = tensor<?x?x?xi8>     // [batch, query, query]: 1 where the second is the first or an ancestor "
                   "of it\n\n" +
                   attention("tree", R"(align(bottom_right) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %m = attn.num_keys
    %n = attn.num_queries
    %cached = arith.subi %m, %n : index
    %zero = arith.constant 0 : i8
    %query = arith.subi %i, %cached : index
    %draft = arith.subi %j, %cached : index
    %entry = tensor.extract %ancestors[%b, %query, %draft] : !a
    %ancestor = arith.cmpi ne, %entry, %zero : i8
    %in_cache = arith.cmpi slt, %j, %cached : index
    %keep = arith.ori %in_cache, %ancestor : i1
    attn.yield %keep : i1
  })",
                             ", %ancestors: !a");
          }};
}

} // namespace attn::presets
