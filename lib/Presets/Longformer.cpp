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

// Global tokens have projections of their own: their rows are computed from these, and replace what the local ones
// gave.
static constexpr char kSeparate[] = R"(!g = tensor<?x?x?xi32>    // [batch, heads, global tokens], -1: none

// Of queries qg there are the global tokens' alone, of keys and values all.
func.func @longformer(%q: !t, %k: !t, %v: !t, %global: !g, %qg: !t, %kg: !t, %vg: !t) -> !t {
  %local = attn.attention %q, %k, %v mask($seen) : !t, !t, !t -> !t
  %rows = attn.attention %qg, %kg, %vg $past: !t, !t, !t -> !t
  %places = attn.invert_rows %global like %q, %k : !g, !t, !t -> !g
  %out = attn.scatter_rows %rows[%places] into %local : !t, !g, !t -> !t
  return %out : !t
}
)";

static constexpr char kPast[] = R"(mask {
  ^bb0(%b: index, %h: index, %i: index, %j: index):
    %token = tensor.extract %global[%b, %h, %i] : !g
    %place = arith.index_cast %token : i32 to index
    %keep = arith.cmpi sle, %j, %place : index
    attn.yield %keep : i1
  } )";

static std::string write(const Settings &set) {
  std::string local = windows(set), causally = causalAnd(set).str();
  if (set.is("globals", "none"))
    return attention("longformer", "mask(" + causally + local + ")");
  std::string seen = local + " or column_in(%global : !g)";
  if (set.is("globals", "shared"))
    seen += " or row_in(%global : !g)";
  seen = causally + (causally.empty() ? seen : "(" + seen + ")");
  if (set.is("globals", "separate"))
    return set.fill(kSeparate, {{"seen", seen}, {"past", causally.empty() ? "" : kPast}});
  return "!g = tensor<?x?xi32>      // [batch, global tokens], -1: none\n\n" +
         attention("longformer", "mask(" + seen + ")", ", %global: !g");
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
                     "global tokens see all with the same projections; with their own, which needs all tokens at "
                     "once; there are none")},
      [](const Settings &set) -> llvm::Expected<std::string> { return write(set); }};
}

} // namespace attn::presets
