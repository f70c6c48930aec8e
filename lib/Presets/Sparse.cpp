//===- Sparse.cpp - Sparse Transformer ---------------------------------------===//
#include "Systems.h"
#include <algorithm>

namespace attn::presets {

static constexpr char kSource[] = "Child et al., Generating Long Sequences with Sparse Transformers (2019)";

static Setting combineSetting() {
  return Setting::word("combine", {"union", "per_head", "local", "summary"},
                       "both patterns in one mask; in turns over the heads; or one alone, for layers in turns");
}

/// The two patterns, combined as asked for; `summaries` holds one for each head in turn.
static std::string combine(const Settings &set, const std::string &local, std::vector<std::string> summaries) {
  if (set.is("combine", "local"))
    return local;
  if (set.is("combine", "summary"))
    return byHead(summaries);
  if (set.is("combine", "union"))
    return "(" + local + " or " + byHead(summaries) + ")";
  std::vector<std::string> turns;
  for (const std::string &summary : summaries)
    turns.insert(turns.end(), {local, summary});
  return byHead(turns);
}

Preset sparseStrided() {
  return {"sparse-strided",
          std::string(kSource) + ": strided",
          "fixed",
          "O(N sqrt(N)), with stride near sqrt(N)",
          /*decodes=*/true,
          {Setting::number("stride", 128, 1,
                           "keys of the local pattern, a query's own among them; one key in so many "
                           "of the summary"),
           Setting::word("inclusive", {"off", "on"}, "one more local key, as the paper's formula has it"),
           combineSetting()},
          [](const Settings &set) -> llvm::Expected<std::string> {
            int64_t left = set.number("stride") - (set.isOn("inclusive") ? 0 : 1);
            std::string local = "window(left = " + std::to_string(left) + ")";
            return attention("sparse_strided",
                             "mask(causal and " + combine(set, local, {set.fill("stride(size = $stride)")}) + ")");
          }};
}

Preset sparseFixed() {
  return {"sparse-fixed",
          std::string(kSource) + ": fixed",
          "fixed",
          "O(N sqrt(N)), with stride near sqrt(N)",
          /*decodes=*/true,
          {Setting::number("stride", 128, 1, "tokens of a block"),
           Setting::number("columns", 32, 1, "summary tokens at the end of each block"),
           Setting::number("distinct", 1, 1,
                           "heads that take summary tokens of their own, each `columns` further to the "
                           "front"),
           combineSetting()},
          [](const Settings &set) -> llvm::Expected<std::string> {
            int64_t stride = set.number("stride"), columns = set.number("columns"), distinct = set.number("distinct");
            if (columns * distinct > stride)
              return llvm::createStringError("columns * distinct = %lld should be at most stride = %lld",
                                             (long long)(columns * distinct), (long long)stride);
            std::vector<std::string> summaries;
            for (int64_t s = 0; s < distinct; ++s) {
              auto last = [&](int64_t count) {
                return "last_columns(block = " + std::to_string(stride) + ", count = " + std::to_string(count) + ")";
              };
              std::string summary = last((s + 1) * columns);
              summaries.push_back(s == 0 ? summary : "(" + summary + " and not " + last(s * columns) + ")");
            }
            return attention("sparse_fixed", "mask(causal and " +
                                                 combine(set, set.fill("same_block(size = $stride)"), summaries) + ")");
          }};
}

} // namespace attn::presets
