//===- Longformer.cpp - Longformer -------------------------------------------===//
#include "Systems.h"
#include "llvm/ADT/STLExtras.h"

namespace attn::presets {

/// The window of each head; lists of different lengths repeat.
static std::string windows(const Settings &set) {
  llvm::SmallVector<int64_t> window = set.list("window"), dilation = set.list("dilation");
  std::vector<std::string> masks;
  for (size_t head = 0, heads = std::max(window.size(), dilation.size()); head < heads; ++head) {
    std::string w = std::to_string(window[head % window.size()]);
    int64_t d = dilation[head % dilation.size()];
    masks.push_back((d == 1 ? "window(left = " : "dilated_window(left = ") + w + ", right = " + w +
                    (d == 1 ? "" : ", dilation = " + std::to_string(d)) + ")");
  }
  return byHead(masks);
}

Preset longformer() {
  return {
      "longformer",
      "Beltagy et al., Longformer (2020)",
      "fixed, memory",
      "O(N (window + globals))",
      /*decodes=*/true,
      {Setting::list("window", "256", 0, "keys on each side of the query; one number, or one for each head in turn"),
       Setting::list("dilation", "1", 1, "steps between these keys; one number, or one for each head in turn"),
       causalSetting(),
       Setting::word("globals", {"shared", "separate", "none"},
                     "global tokens see all with the same projections; with their own, in a function of its own "
                     "whose rows replace theirs; there are none")},
      [](const Settings &set) -> llvm::Expected<std::string> {
        std::string local = windows(set), causally = causalAnd(set).str();
        if (set.is("globals", "none"))
          return attention("longformer", "mask(" + causally + local + ")");
        std::string seen = local + " or column_in(%global : !g)";
        if (set.is("globals", "shared"))
          seen += " or row_in(%global : !g)";
        std::string spec =
            "!g = tensor<?x?xi32>      // [batch, global tokens], -1: none\n\n" +
            attention("longformer", "mask(" + causally + (causally.empty() ? seen : "(" + seen + ")") + ")",
                      ", %global: !g");
        if (set.is("globals", "shared"))
          return spec;
        std::string rows = causally.empty() ? "" : R"(align(top_left) mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %token = tensor.extract %global[%b, %i] : !g
    %place = arith.index_cast %token : i32 to index
    %keep = arith.cmpi sle, %j, %place : index
    attn.yield %keep : i1
  })";
        return spec +
               "\n// The rows of the global tokens, with their own projections: query [batch, heads, global tokens, "
               "head_dim].\n" +
               attention("longformer_global", rows, causally.empty() ? "" : ", %global: !g");
      }};
}

} // namespace attn::presets
